//! A new transcript that begins with another one's active branch.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::index::{EntryRef, Index};

/// How many bytes a token has, where nobody counted.
pub const BYTES_PER_TOKEN: u64 = 4;

/// How a child begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fork {
    /// With these entries of its parent.
    Branch(Vec<EntryRef>),
    /// With nothing: what it would inherit does not fit its context.
    Isolated {
        /// How many bytes that would have been.
        bytes: u64,
    },
}

/// Decides how a child with a context of `window_tokens` begins. It inherits what the model
/// sees of the active branch: the newest summary, what was kept beside it, and what followed.
#[must_use]
pub fn plan(parent: &Index, window_tokens: u64) -> Fork {
    let visible = parent.visible(&parent.active_branch());
    let mut entries: Vec<EntryRef> = visible.summary.into_iter().chain(visible.entries).collect();
    // As they stand in the file: kept entries before the summary, so each finds its parent.
    entries.sort_unstable();
    let lengths = entries.iter().filter_map(|entry| parent.place(*entry));
    let bytes: u64 = lengths.map(|place| place.length).sum();
    if bytes > window_tokens.saturating_mul(BYTES_PER_TOKEN) {
        return Fork::Isolated { bytes };
    }
    Fork::Branch(entries)
}

/// The lines of a child behind its header. They fit its context, so they fit into memory.
pub fn lines(file: &File, parent: &Index, entries: &[EntryRef]) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for place in entries.iter().filter_map(|entry| parent.place(*entry)) {
        let length = usize::try_from(place.length).map_err(io::Error::other)?;
        let begins = lines.len();
        lines.resize(begins + length, 0);
        file.read_exact_at(&mut lines[begins..], place.offset)?;
        lines.push(b'\n');
    }
    Ok(lines)
}
