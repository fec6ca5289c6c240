//! What an error of the database engine means for the process.

use std::path::Path;

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;

use crate::state::StateError;

/// What to do after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing was written and there is no room: read only until there is.
    DiskFull,
    /// What is in the file is unknown or wrong: stop.
    Fatal,
    /// Another process is in the way.
    Locked,
    /// This statement only.
    Statement,
}

impl Fault {
    /// Judges an error.
    pub(crate) fn of(error: &rusqlite::Error) -> Self {
        let Some(engine) = error.sqlite_error() else {
            return Self::Statement;
        };
        match engine.code {
            ErrorCode::DiskFull => Self::DiskFull,
            // The shared-memory file could not grow: nothing but a full disk does that.
            ErrorCode::SystemIoFailure if engine.extended_code == SQLITE_IOERR_SHMSIZE => {
                Self::DiskFull
            }
            ErrorCode::SystemIoFailure
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::ReadOnly => Self::Fatal,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Locked,
            _ => Self::Statement,
        }
    }
}

/// An error of the engine, as an operation's caller sees it.
pub(crate) fn failure(path: &Path, error: &rusqlite::Error) -> StateError {
    let path = path.to_owned();
    match Fault::of(error) {
        Fault::DiskFull => StateError::DiskFull { path },
        Fault::Locked => StateError::Locked { path },
        Fault::Fatal => StateError::Fatal {
            path,
            detail: error.to_string(),
        },
        Fault::Statement => StateError::Database {
            path,
            detail: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn a_full_disk_waits_a_broken_one_stops_and_the_rest_concerns_one_statement() {
        for (code, fault) in [
            (ffi::SQLITE_FULL, Fault::DiskFull),
            (SQLITE_IOERR_SHMSIZE, Fault::DiskFull),
            (ffi::SQLITE_IOERR_FSYNC, Fault::Fatal),
            (ffi::SQLITE_IOERR_WRITE, Fault::Fatal),
            (ffi::SQLITE_CORRUPT, Fault::Fatal),
            (ffi::SQLITE_NOTADB, Fault::Fatal),
            (ffi::SQLITE_READONLY, Fault::Fatal),
            (ffi::SQLITE_BUSY, Fault::Locked),
            (ffi::SQLITE_CONSTRAINT_CHECK, Fault::Statement),
            (ffi::SQLITE_NOMEM, Fault::Statement),
        ] {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            assert_eq!(Fault::of(&error), fault, "{code}");
        }
        assert_eq!(
            Fault::of(&rusqlite::Error::QueryReturnedNoRows),
            Fault::Statement
        );
    }
}
