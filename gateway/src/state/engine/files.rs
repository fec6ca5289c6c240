//! Whether the files that are open are still those at their paths. What is written to a file
//! that was deleted, or that another was put in the place of, is found by nobody again.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::checkpoint::log_path;
use crate::state::StateError;

/// The database and its log, as they were opened.
#[derive(Debug)]
pub(crate) struct Files {
    database: File,
    log: File,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    identity: Identity,
}

/// What a file is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Files {
    /// The files of a database that has just been opened and read.
    pub(crate) fn of(database: &Path) -> io::Result<Self> {
        Ok(Self {
            database: File::at(database.to_owned())?,
            log: File::at(log_path(database))?,
        })
    }

    /// The database.
    pub(crate) fn database(&self) -> &Path {
        &self.database.path
    }

    /// Looks at the paths. They are not opened: closing a file drops the locks that this
    /// process holds on it.
    pub(crate) fn check(&self) -> Result<(), StateError> {
        self.database.check()?;
        self.log.check()
    }
}

impl File {
    fn at(path: PathBuf) -> io::Result<Self> {
        let identity = identity(&path)?;
        Ok(Self { path, identity })
    }

    fn check(&self) -> Result<(), StateError> {
        let replaced = match identity(&self.path) {
            Ok(found) => found != self.identity,
            // What cannot be looked at may still be there.
            Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        if replaced {
            let path = self.path.clone();
            return Err(StateError::Replaced { path });
        }
        Ok(())
    }
}

fn identity(path: &Path) -> io::Result<Identity> {
    let metadata = fs::metadata(path)?;
    Ok(Identity {
        device: metadata.dev(),
        inode: metadata.ino(),
    })
}
