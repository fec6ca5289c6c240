//! Directories and files that only their owner may read: keys, certificates, identities.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A file operation that failed, and where.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}: {source}")]
pub struct FileError {
    /// What was tried.
    pub action: &'static str,
    /// On which path.
    pub path: PathBuf,
    /// What went wrong.
    pub source: io::Error,
}

impl FileError {
    /// Says where an I/O error happened.
    pub fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self {
            action,
            path,
            source,
        }
    }

    /// True when the file was not there.
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

/// Makes `dir` (and what leads to it) and closes it to everybody but its owner.
pub fn create_dir(dir: &Path) -> Result<(), FileError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(FileError::at("create the directory", dir))?;
    let mode = fs::metadata(dir)
        .map_err(FileError::at("read the permissions of", dir))?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(dir, Permissions::from_mode(0o700))
            .map_err(FileError::at("set the permissions of", dir))?;
    }
    Ok(())
}

/// Replaces `path` with `content` in one step: after a crash the old or the new content is
/// there, never a part. Only its owner may read it.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), FileError> {
    let temporary = path.with_extension("new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(FileError::at("create", &temporary))?;
    file.write_all(content)
        .and_then(|()| file.sync_all())
        .map_err(FileError::at("write", &temporary))?;
    fs::rename(&temporary, path).map_err(FileError::at("put in place", path))?;
    if let Some(dir) = path.parent() {
        File::open(dir)
            .and_then(|dir| dir.sync_all())
            .map_err(FileError::at("make durable", dir))?;
    }
    Ok(())
}

/// Reads a file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    use std::io::Read;

    let file = File::open(path).map_err(FileError::at("open", path))?;
    let mut content = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut content)
        .map_err(FileError::at("read", path))?;
    if content.len() as u64 > limit {
        let too_large = io::Error::other(format!("it has more than {limit} bytes"));
        return Err(FileError::at("read", path)(too_large));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_its_owners_alone_and_so_is_its_directory() {
        let scratch = tempfile::tempdir().expect("scratch");
        let dir = scratch.path().join("a/b");
        create_dir(&dir).expect("dir");
        let file = dir.join("key");
        replace(&file, b"one").expect("write");
        replace(&file, b"two").expect("write again");
        assert_eq!(read(&file, 3).expect("read"), b"two");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(&file)), (0o700, 0o600));
    }

    #[test]
    fn an_open_directory_is_closed_and_a_large_file_is_refused() {
        let scratch = tempfile::tempdir().expect("scratch");
        fs::set_permissions(scratch.path(), Permissions::from_mode(0o755)).expect("open it");
        create_dir(scratch.path()).expect("dir");
        let mode = fs::metadata(scratch.path())
            .expect("there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        let file = scratch.path().join("f");
        replace(&file, b"four").expect("write");
        let error = read(&file, 3).expect_err("too large").to_string();
        assert!(error.contains(file.to_str().expect("text")), "{error}");
    }
}
