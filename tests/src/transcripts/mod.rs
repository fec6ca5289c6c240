//! Transcripts as agent programs write them: their shapes, our words.

mod claude;
mod codex;
mod file;

pub use claude::Claude;
pub use codex::Codex;
pub use file::Turn;

use std::path::Path;

/// A transcript that a test appends to.
pub trait Transcript {
    /// Its catalog's name.
    fn catalog(&self) -> &'static str;
    /// The program's own id of the conversation.
    fn thread(&self) -> &str;
    /// The file.
    fn file(&self) -> &Path;
    /// How long the file is.
    fn len(&self) -> u64;
    /// True before the first byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// A person types `text`. Where the turn stands in the file.
    fn human(&mut self, text: &str) -> Turn;
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
