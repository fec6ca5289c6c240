//! Consistent copies of a database that is in use.

use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

/// Why a copy was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyError {
    /// Writing beside the target failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Reading the database failed.
    #[error("{0}")]
    Engine(#[from] rusqlite::Error),
    /// A path that SQLite cannot be told.
    #[error("the path is not valid UTF-8")]
    Path,
}

/// Writes a consistent copy to `target`, replacing what was there only once the copy is
/// whole and on disk. A copy that fails leaves nothing: its disk may be full because of it.
pub(crate) fn copy_database(conn: &Connection, target: &Path) -> Result<(), CopyError> {
    let partial = partial_path(target);
    match std::fs::remove_file(&partial) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let copied = copy_whole(conn, &partial, target);
    if copied.is_err() {
        // What cannot be removed either is named by the error that is given already.
        let _ = std::fs::remove_file(&partial);
    }
    copied
}

fn copy_whole(conn: &Connection, partial: &Path, target: &Path) -> Result<(), CopyError> {
    super::open::create_private(partial)?;
    let name = partial.to_str().ok_or(CopyError::Path)?;
    conn.execute("VACUUM INTO ?1", [name])?;
    File::open(partial)?.sync_all()?;
    std::fs::rename(partial, target)?;
    if let Some(directory) = target.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

fn partial_path(target: &Path) -> PathBuf {
    let mut partial = target.as_os_str().to_owned();
    partial.push(".partial");
    partial.into()
}
