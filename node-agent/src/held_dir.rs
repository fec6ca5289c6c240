//! A state directory, and the lock that keeps a second process of the same kind out of it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::private_files::{self, FileError};

/// Who holds a state directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// A gateway.
    Gateway,
    /// A node agent.
    NodeAgent,
}

/// What stands in a state directory of ours, one or the other. The last is what a node's key
/// is written to before it is put in place: all there is where a first start was killed then.
const OUR_FILES: [&str; 7] = [
    "gateway.lock",
    "node.lock",
    "state.sqlite",
    "node.json",
    "node.key",
    "config.toml",
    "node.new",
];

/// True for a directory that is a state directory, or can become one: it is empty, or holds a
/// file of ours. Nothing else is ever closed to others: it may be somebody's `/tmp`.
#[must_use]
pub fn is_ours(dir: &Path) -> bool {
    let is_empty = || std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
    dir.is_dir() && (OUR_FILES.iter().any(|name| dir.join(name).exists()) || is_empty())
}

/// Makes a state directory where there is none, and closes one of ours to others.
pub fn prepare(dir: &Path) -> Result<(), FileError> {
    if dir.is_dir() && !is_ours(dir) {
        let foreign = std::io::Error::other("it holds files of others, and none of Tidings");
        return Err(FileError::at("use as a state directory", dir)(foreign));
    }
    private_files::create_dir(dir)
}

/// A state directory, held by this process until it is dropped.
#[derive(Debug)]
pub struct HeldDir {
    path: PathBuf,
    _lock: File,
}

/// Why the state directory cannot be held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HoldError {
    /// Another process holds it.
    #[error("another {} ({process}) holds {path}", .holder.name())]
    Held {
        /// The directory.
        path: PathBuf,
        /// What kind of process.
        holder: Holder,
        /// Which: its process id, as it wrote it.
        process: String,
    },
    /// It cannot be made, read or locked.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Holder {
    fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::NodeAgent => "node agent",
        }
    }

    fn lock_name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway.lock",
            Self::NodeAgent => "node.lock",
        }
    }
}

impl HeldDir {
    /// Makes the directory where it is missing and takes its lock. The kernel gives the lock
    /// back when the process ends, however it ends.
    pub fn hold(path: &Path, holder: Holder) -> Result<Self, HoldError> {
        prepare(path)?;
        let lock_path = path.join(holder.lock_name());
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock_path)
            .map_err(FileError::at("open", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(HoldError::Held {
                    path: path.to_owned(),
                    holder,
                    process: process(&mut lock),
                });
            }
            Err(TryLockError::Error(error)) => {
                return Err(FileError::at("lock", &lock_path)(error).into());
            }
        }
        lock.set_len(0)
            .and_then(|()| lock.seek(SeekFrom::Start(0)))
            .and_then(|_| write!(lock, "{}", std::process::id()))
            .map_err(FileError::at("write", &lock_path))?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn process(lock: &mut File) -> String {
    let mut pid = String::new();
    match lock.take(32).read_to_string(&mut pid) {
        Ok(_) if !pid.trim().is_empty() => format!("pid {}", pid.trim()),
        _ => "pid unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::NodeKey;

    #[test]
    fn a_directory_of_others_is_refused_and_left_as_it_is() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = tempfile::tempdir().expect("scratch");
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(scratch.path(), open).expect("open");
        std::fs::write(scratch.path().join("letter"), "").expect("file");
        let error = HeldDir::hold(scratch.path(), Holder::Gateway).expect_err("refused");
        assert!(
            error.to_string().contains("it holds files of others"),
            "{error}"
        );
        let mode = std::fs::metadata(scratch.path())
            .expect("there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o755);
        std::fs::write(scratch.path().join("config.toml"), "").expect("ours");
        HeldDir::hold(scratch.path(), Holder::Gateway).expect("ours now");
    }

    #[test]
    fn a_directory_in_which_a_first_start_was_killed_is_taken_again() {
        let scratch = tempfile::tempdir().expect("scratch");
        let key = scratch.path().join("node.key");
        // Half of a key, as the process that wrote it was killed.
        std::fs::write(key.with_extension("new"), "-----BEGIN").expect("file");
        NodeKey::load_or_create(scratch.path()).expect("a new key");
        assert!(key.exists());
        HeldDir::hold(scratch.path(), Holder::NodeAgent).expect("ours");
    }

    #[test]
    fn a_second_holder_is_refused_by_name_and_the_next_may_come_after_the_first() {
        let scratch = tempfile::tempdir().expect("scratch");
        let first = HeldDir::hold(scratch.path(), Holder::Gateway).expect("first");
        let error = HeldDir::hold(scratch.path(), Holder::Gateway)
            .expect_err("second")
            .to_string();
        let expected = format!("another gateway (pid {})", std::process::id());
        assert!(error.starts_with(&expected), "{error}");
        drop(first);
        HeldDir::hold(scratch.path(), Holder::Gateway).expect("after the first");
    }
}
