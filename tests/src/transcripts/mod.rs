//! Transcripts as agent programs write them: their shapes, our words.

mod claude;
mod codex;
mod file;
mod openclaw;

use std::path::Path;

pub use claude::Claude;
pub use codex::Codex;
pub use file::Turn;
pub use openclaw::OpenClaw;

/// A transcript that a test appends to.
pub trait Transcript {
    /// Its catalog's name.
    fn catalog(&self) -> &'static str;
    /// The program's own id of the conversation.
    fn thread(&self) -> &str;
    /// How long the file is.
    fn len(&self) -> u64;
    /// True before the first byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The file.
    fn path(&self) -> &Path;
    /// A person types `text`. Where the turn stands in the file.
    fn human(&mut self, text: &str) -> Turn;
    /// Appends what the program writes without anybody having typed it, each with `text` in
    /// it.
    fn everything_but_a_human(&mut self, text: &str);
    /// Appends bytes as they are, in one write.
    fn append_bytes(&mut self, bytes: &[u8]);
    /// Another file stands in its place now, or it was cut: it goes on behind what is there.
    fn reopen(&mut self);
    /// The file moves into this folder.
    fn move_to(&mut self, folder: &Path);
}

/// Some id, other than any before it in this process.
fn fresh_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// `text` as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
