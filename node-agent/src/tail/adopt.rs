//! Reads a thread once, to follow it from its end.

use std::io;
use std::path::Path;

use tidings_protocol::report::Echo;
use tidings_protocol::{Catalog, EpochMs, Marker, ThreadId};

use super::draft::{Counting, Draft, Setting};
use super::head::head_of;
use super::lines::{Lines, Step};
use super::open::{OpenFile, open_inside};
use super::{FirstPrompt, Places, TailError, ThreadHead};
use crate::classify::Source;

/// Reads a thread once up to the end of its last complete line and makes the marker for
/// following it from there. What is open then (queued prompts, waiting records) is carried
/// as not counting.
pub fn open_at_end(
    catalog: Catalog,
    thread: &ThreadId,
    path: &Path,
    places: &dyn Places,
    now: EpochMs,
) -> Result<(Marker, ThreadHead), TailError> {
    let failed = |source| TailError::Io {
        path: path.into(),
        source,
    };
    let open = open_inside(catalog, path, places)?;
    let marker = scan(catalog, path, &open, now).map_err(failed)?;
    let mut head = head_of(catalog, path, &open, FirstPrompt::Hide).map_err(failed)?;
    head.thread_id.get_or_insert_with(|| thread.clone());
    places.found(catalog, path);
    Ok((marker, head))
}

/// The marker at the end of an open file.
fn scan(catalog: Catalog, path: &Path, open: &OpenFile, now: EpochMs) -> io::Result<Marker> {
    let echo = Echo::default();
    let setting = Setting {
        file: &open.file,
        source: Source::of(catalog, path),
        modified: open.modified,
        now,
        echo: &echo,
        counting: Counting::Nothing,
        last_known: None,
    };
    let mut draft = Draft::new(setting, Marker::at_start(now), Vec::new());
    let mut lines = Lines::from(open, Some(catalog), 0, u64::MAX)?;
    loop {
        match lines.next()? {
            Step::Run { start, bytes } => {
                draft.run(start, bytes);
            }
            Step::Long(piece) => draft.long(&piece),
            Step::LongEnd => {}
            Step::Tail { .. } => break,
            Step::Pause | Step::Changed => {
                return Err(io::Error::other("it changed while it was read"));
            }
        }
    }
    let (offset, before) = lines.mark();
    let (mut marker, _) = draft.finish();
    marker.offset = offset;
    marker.before = before;
    marker.file = open.hint;
    for item in &mut marker.carried.queue.0 {
        item.counts = false;
    }
    for record in &mut marker.carried.waiting {
        record.counts = false;
    }
    Ok(marker)
}
