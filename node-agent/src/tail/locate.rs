//! Where a link's file is now: the four steps of the marker's decision.

use std::io;
use std::path::{Path, PathBuf};

use tidings_protocol::report::Inconclusive;
use tidings_protocol::{Catalog, Marker, ThreadId};

use super::lines::Lines;
use super::open::{OpenFile, open_inside};
use super::{Places, TailError};

/// What a look at a link's places found.
pub(super) enum Located {
    /// The file the marker was made on, here or where it moved to.
    Same(OpenFile, PathBuf),
    /// The thread's file, but not with the bytes the marker knows.
    Rewritten(OpenFile, PathBuf),
    /// Nothing of the thread is where it could be.
    Gone,
    /// Nothing can be said.
    Unclear(Inconclusive),
}

/// Looks for the file of a thread.
pub(super) fn locate(
    catalog: Catalog,
    thread: &ThreadId,
    path: &Path,
    marker: &Marker,
    places: &dyn Places,
) -> Located {
    let here = match open_inside(catalog, path, places) {
        Ok(file) => match matches(&file, marker) {
            Ok(true) => return Located::Same(file, path.into()),
            Ok(false) => Some(file),
            Err(_) => return Located::Unclear(Inconclusive::ReadFailed),
        },
        Err(TailError::Missing { .. } | TailError::NotRegular { .. }) => None,
        Err(error) => return Located::Unclear(reason(&error)),
    };
    let mut named = None;
    for candidate in candidates(catalog, thread, path, marker, places) {
        // A candidate that cannot be opened is no proof of anything.
        let Ok(file) = open_inside(catalog, &candidate, places) else {
            continue;
        };
        let is_named = is_named_after(thread, &candidate);
        // The bytes before the very beginning are the same in every file.
        let can_tell = is_named || marker.offset > 0;
        if can_tell && matches(&file, marker).unwrap_or(false) {
            return Located::Same(file, candidate);
        }
        if is_named && named.is_none() {
            named = Some((file, candidate));
        }
    }
    match (here, named) {
        (Some(file), _) => Located::Rewritten(file, path.into()),
        (None, Some((file, candidate))) => Located::Rewritten(file, candidate),
        (None, None) => Located::Gone,
    }
}

/// True when the file holds what the marker was made behind.
fn matches(file: &OpenFile, marker: &Marker) -> io::Result<bool> {
    if file.size < marker.offset {
        return Ok(false);
    }
    match Lines::from(file, None, marker.offset, 0) {
        Ok(lines) => Ok(lines.mark().1 == marker.before),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// The places to look at, the one that was the same file last time first.
fn candidates(
    catalog: Catalog,
    thread: &ThreadId,
    path: &Path,
    marker: &Marker,
    places: &dyn Places,
) -> Vec<PathBuf> {
    let mut found = places.candidates(catalog, thread, marker.file, path);
    found.retain(|candidate| candidate != path);
    found.sort();
    found.sort_by_key(|candidate| !is_named_after(thread, candidate));
    found
}

fn is_named_after(thread: &ThreadId, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.contains(thread.as_str())
}

/// Why a file that cannot be read says nothing.
fn reason(error: &TailError) -> Inconclusive {
    match error {
        TailError::OutsideRoots { .. } => Inconclusive::PermissionDenied,
        TailError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            Inconclusive::PermissionDenied
        }
        _ => Inconclusive::ReadFailed,
    }
}
