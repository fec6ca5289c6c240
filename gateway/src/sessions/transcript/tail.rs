//! The end of a transcript, in bounded memory: what is read first, and most often.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde_json::Value;

use super::line::{self, Kind, Parent};

/// How much is read at first; then as much again as there is.
const FIRST_BYTES: u64 = 64 * 1024;

/// How much of the end is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// So many entries of the active branch at most.
    pub entries: usize,
    /// So many bytes of the file at most.
    pub bytes: u64,
}

/// The end of a transcript.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tail {
    /// The last entries of the active branch, in order.
    pub entries: Vec<TailEntry>,
    /// True where more stands before.
    pub has_more: bool,
    /// True where an entry follows one that is not in what was read: it is taken to follow the
    /// line before it.
    pub is_guessed: bool,
    /// Lines in what was read that are no records: skipped.
    pub broken: u64,
}

/// One entry.
#[derive(Debug, Clone, PartialEq)]
pub struct TailEntry {
    /// Where its line begins.
    pub offset: u64,
    /// How long that is, without the line end.
    pub length: u64,
    /// What it is.
    pub kind: Kind,
    /// The whole of it.
    pub value: Value,
}

struct Found<'a> {
    offset: u64,
    bytes: &'a [u8],
    line: line::Line<'a>,
}

/// Reads the end of a transcript of `size` bytes.
pub fn read(file: &File, size: u64, wanted: Wanted) -> io::Result<Tail> {
    let limit = wanted.bytes.min(size);
    let mut length = FIRST_BYTES.min(limit);
    loop {
        let mut block = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        let begins = size - length;
        file.read_exact_at(&mut block, begins)?;
        let tail = tail_of(&block, begins, wanted.entries);
        let is_enough = tail.entries.len() >= wanted.entries;
        if is_enough || length == limit {
            return Ok(Tail {
                has_more: tail.has_more || begins > 0,
                ..tail
            });
        }
        length = (length * 2).min(limit);
    }
}

/// The tail that a block shows which begins at `begins` and goes to the end of the file.
fn tail_of(block: &[u8], begins: u64, entries: usize) -> Tail {
    let mut tail = Tail::default();
    let found = lines(block, begins, &mut tail.broken);
    let (branch, is_guessed) = active_branch(&found);
    tail.is_guessed = is_guessed;
    tail.has_more = branch.len() > entries;
    let first = branch.len().saturating_sub(entries);
    tail.entries = branch[first..]
        .iter()
        .filter_map(|found| {
            Some(TailEntry {
                offset: found.offset,
                length: found.bytes.len() as u64,
                kind: found.line.kind,
                value: serde_json::from_slice(found.bytes).ok()?,
            })
        })
        .collect();
    tail
}

/// The entries whose whole lines stand in a block.
fn lines<'a>(block: &'a [u8], begins: u64, broken: &mut u64) -> Vec<Found<'a>> {
    // Before the first line end the line may have begun earlier.
    let mut from = match (begins, block.iter().position(|byte| *byte == b'\n')) {
        (0, _) => 0,
        (_, Some(at)) => at + 1,
        (_, None) => return Vec::new(),
    };
    let mut found = Vec::new();
    for bytes in block[from..].split(|byte| *byte == b'\n') {
        let offset = begins + from as u64;
        from += bytes.len() + 1;
        let bom: &[u8] = if offset == 0 { b"\xef\xbb\xbf" } else { b"" };
        let bytes = bytes.strip_prefix(bom).unwrap_or(bytes);
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        match line::read(bytes) {
            Some(line) if line.kind == Kind::Session => {}
            Some(line) => found.push(Found {
                offset,
                bytes,
                line,
            }),
            // A torn last line is somebody's who is writing, or was.
            None if from > block.len() => {}
            None => *broken += 1,
        }
    }
    found
}

/// The last of the entries and those it follows, in order; and whether one of them follows
/// what is not in sight.
fn active_branch<'a, 'b>(found: &'b [Found<'a>]) -> (Vec<&'b Found<'a>>, bool) {
    let mut branch = Vec::new();
    let mut is_guessed = false;
    let mut before = found;
    while let Some((last, earlier)) = before.split_last() {
        branch.push(last);
        before = match &last.line.parent {
            Parent::Nothing => &[],
            Parent::Unsaid => earlier,
            // A parent that is not in sight is taken for the line before, as in an index.
            Parent::Entry(id) => {
                let is_parent = |found: &Found<'_>| found.line.id.as_ref() == Some(id);
                let at = earlier.iter().rposition(is_parent);
                is_guessed = is_guessed || (at.is_none() && !earlier.is_empty());
                at.map_or(earlier, |at| &earlier[..=at])
            }
        };
    }
    branch.reverse();
    (branch, is_guessed)
}
