//! A whole record behind a torn one, at the end of a line that does not fit into a window.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use memchr::memmem::Finder;
use tidings_protocol::Catalog;

use super::long::{LongPiece, LongWhat};
use super::reduce::{Fed, Reducer};
use crate::classify::{has_known_type, last_record, trimmed_len};

/// How much of the line's end is looked at in memory.
const MAX_END_BYTES: u64 = 1024 * 1024;
/// How many beginnings of a longer record are tried.
const MAX_RETRIES: usize = 64;
const CHUNK_BYTES: usize = 256 * 1024;

/// The record that ends a line, behind what is torn from `start` on; the line ends at `end`.
pub(super) fn find(
    file: &File,
    catalog: Catalog,
    start: u64,
    end: u64,
) -> io::Result<Option<LongPiece>> {
    let from = (start + 1).max(end.saturating_sub(MAX_END_BYTES)).min(end);
    let tail = read(file, from, end)?;
    let kept = trimmed_len(&tail);
    let record_end = from + kept as u64;
    if let Some(at) = last_record(catalog, &tail[..kept]) {
        return Ok(Some(LongPiece {
            start: from + at as u64,
            end: record_end,
            what: LongWhat::Record(tail[at..kept].to_vec()),
        }));
    }
    let mut tries = 0;
    let mut at = start + 1;
    while at < from && tries < MAX_RETRIES {
        let chunk = read(file, at, record_end.min(at + CHUNK_BYTES as u64))?;
        for begin in Finder::new("{\"")
            .find_iter(&chunk)
            .take(MAX_RETRIES - tries)
        {
            tries += 1;
            let begin = at + begin as u64;
            if let Some(record) = reduce(file, begin, record_end)?
                && has_known_type(catalog, &record)
            {
                return Ok(Some(LongPiece {
                    start: begin,
                    end: record_end,
                    what: LongWhat::Record(record),
                }));
            }
        }
        // The last byte may be the first of the two that are looked for.
        at += (chunk.len() as u64).saturating_sub(1).max(1);
    }
    Ok(None)
}

/// The object between `begin` and `end`, reduced; `None` where it is not one object.
fn reduce(file: &File, begin: u64, end: u64) -> io::Result<Option<Vec<u8>>> {
    let mut reducer = Reducer::new();
    let mut at = begin;
    while at < end {
        let chunk = read(file, at, end.min(at + CHUNK_BYTES as u64))?;
        at += chunk.len() as u64;
        match reducer.feed(&chunk) {
            Fed::All => {}
            Fed::Complete(length) if at == end && length == chunk.len() => {
                return Ok(reducer.into_record());
            }
            Fed::Complete(_) | Fed::Broken => return Ok(None),
        }
    }
    Ok(None)
}

fn read(file: &File, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(to.saturating_sub(from)).unwrap_or_default();
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}
