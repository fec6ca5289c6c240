//! Files and folders that others than their owner may use, and should not.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// What others than the owner may do.
const OTHERS: u32 = 0o077;

/// Something that others than its owner may use.
#[derive(Debug, PartialEq, Eq)]
pub struct Open {
    /// Where it is.
    pub path: PathBuf,
    /// Its permissions.
    pub mode: u32,
    /// What they should be.
    pub wanted: u32,
}

impl Open {
    /// What is at `path`, where it is open to others. A missing file is not open.
    pub fn at(path: PathBuf, wanted: u32) -> Option<Self> {
        // A symbolic link has no permissions of its own; what it names may be somebody else's.
        let metadata = fs::symlink_metadata(&path).ok()?;
        let mode = metadata.permissions().mode() & 0o7777;
        let is_open = !metadata.is_symlink() && mode & OTHERS != 0;
        is_open.then_some(Self { path, mode, wanted })
    }

    /// Takes from others what they should not have.
    pub fn close(&self) -> io::Result<()> {
        fs::set_permissions(&self.path, Permissions::from_mode(self.wanted))
    }
}
