//! The transcript in which a compacted conversation goes on: its header, the state of
//! extensions, what was kept, and the summary. What made it stands in its header; no copy of
//! what was before is made, because the transcript before it stays as an archive.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde_json::{Value, json};
use tidings_protocol::EpochMs;

use crate::sessions::artefacts::COMPACTED;
use crate::sessions::transcript::entry;
use crate::sessions::transcript::fork;
use crate::sessions::transcript::index::{EntryRef, Index};
use crate::sessions::transcript::line::Kind;

/// So many bytes of the state of extensions go along, the newest first.
const MAX_STATE_BYTES: u64 = 4 * 1024 * 1024;
/// The longest header that is looked at.
const MAX_HEADER_BYTES: u64 = 64 * 1024;

/// What a successor says of the compaction that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint<'a> {
    /// The session's id: it stays.
    pub session_id: &'a str,
    /// The transcript before it, where it will be.
    pub before: &'a str,
    /// Why the conversation was compacted.
    pub trigger: &'static str,
    /// How many tokens the context had.
    pub tokens_before: u64,
    /// The entry with the summary.
    pub compaction_id: &'a str,
    /// When.
    pub at: EpochMs,
}

/// The name of a transcript's successor.
#[must_use]
pub fn name(transcript: &str, compaction_id: &str) -> String {
    let stem = transcript.strip_suffix(".jsonl").unwrap_or(transcript);
    let stem = stem.split_once(COMPACTED).map_or(stem, |(stem, _)| stem);
    format!("{stem}{COMPACTED}{compaction_id}.jsonl")
}

/// The lines of the successor of a transcript that ends in a compaction.
pub fn content(file: &File, index: &Index, checkpoint: &Checkpoint<'_>) -> io::Result<Vec<u8>> {
    let branch = index.active_branch();
    let visible = index.visible(&branch);
    let mut entries: Vec<EntryRef> = visible.summary.into_iter().chain(visible.entries).collect();
    entries.extend(state(index, &branch));
    entries.sort_unstable();
    entries.dedup();
    let mut content = header(file, index, checkpoint)?.to_string().into_bytes();
    content.push(b'\n');
    content.extend(fork::lines(file, index, &entries)?);
    Ok(content)
}

/// The newest entries of a branch that hold the state of extensions.
fn state(index: &Index, branch: &[EntryRef]) -> Vec<EntryRef> {
    let mut room = MAX_STATE_BYTES;
    let of_state = branch.iter().rev().filter(|entry| {
        let place = index.place(**entry);
        place.is_some_and(|place| matches!(place.kind, Kind::Custom | Kind::Other))
    });
    let fitting = of_state.take_while(|entry| {
        let length = index.place(**entry).map_or(0, |place| place.length);
        let left = room.checked_sub(length);
        room = left.unwrap_or(0);
        left.is_some()
    });
    fitting.copied().collect()
}

fn header(file: &File, index: &Index, checkpoint: &Checkpoint<'_>) -> io::Result<Value> {
    let before = match index.header() {
        Some(place) if place.length <= MAX_HEADER_BYTES => {
            let mut line = vec![0; usize::try_from(place.length).map_err(io::Error::other)?];
            file.read_exact_at(&mut line, place.offset)?;
            serde_json::from_slice(&line).unwrap_or_default()
        }
        _ => Value::Null,
    };
    let cwd = before["cwd"].as_str().unwrap_or_default();
    let parent = Some(checkpoint.before);
    let mut header = entry::header(checkpoint.session_id, cwd, checkpoint.at, parent);
    header["checkpoint"] = json!({
        "trigger": checkpoint.trigger,
        "tokensBefore": checkpoint.tokens_before,
        "compactionId": checkpoint.compaction_id,
        "createdAt": checkpoint.at,
    });
    Ok(header)
}
