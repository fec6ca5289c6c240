//! Opens transcripts and nothing else.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;
use tidings_protocol::marker::FileHint;
use tidings_protocol::{Catalog, EpochMs};

use super::{Places, TailError};

/// An open regular file and what it was when it was opened.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: File,
    pub(crate) size: u64,
    pub(crate) modified: EpochMs,
    pub(crate) hint: FileHint,
}

/// Opens a regular file without ever waiting for somebody at the other end.
pub(crate) fn open_regular(path: &Path) -> Result<OpenFile, TailError> {
    let failed = |source| error_of(path, source);
    // Looked at first, so that no device is opened; and once more behind the open.
    check_regular(path, &std::fs::metadata(path).map_err(failed)?)?;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    check_regular(path, &metadata)?;
    Ok(OpenFile {
        file,
        size: metadata.len(),
        modified: modified_ms(&metadata),
        hint: hint_of(&metadata),
    })
}

/// Opens a regular file that is, all links resolved, inside a root of the catalog.
pub(crate) fn open_inside(
    catalog: Catalog,
    path: &Path,
    places: &dyn Places,
) -> Result<OpenFile, TailError> {
    let open = open_regular(path)?;
    let failed = |source| error_of(path, source);
    let resolved = std::fs::canonicalize(path).map_err(failed)?;
    let metadata = std::fs::metadata(&resolved).map_err(failed)?;
    // Another inode by now: the path was exchanged while it was opened.
    if hint_of(&metadata) != open.hint || !places.is_inside(catalog, &resolved) {
        return Err(TailError::OutsideRoots { path: path.into() });
    }
    Ok(open)
}

fn check_regular(path: &Path, metadata: &Metadata) -> Result<(), TailError> {
    if metadata.is_file() {
        Ok(())
    } else {
        Err(TailError::NotRegular { path: path.into() })
    }
}

fn hint_of(metadata: &Metadata) -> FileHint {
    FileHint {
        device: metadata.dev(),
        inode: metadata.ino(),
    }
}

fn modified_ms(metadata: &Metadata) -> EpochMs {
    metadata
        .mtime()
        .saturating_mul(1000)
        .saturating_add(metadata.mtime_nsec() / 1_000_000)
}

fn error_of(path: &Path, source: io::Error) -> TailError {
    let path = path.into();
    let is_loop = source.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => TailError::Missing { path },
        _ if is_loop => TailError::NotRegular { path },
        _ => TailError::Io { path, source },
    }
}
