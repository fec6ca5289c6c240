//! Every file operation of the session store, in one place: so a test can count them and end
//! the process at each.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, DirEntry, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use tidings_node::private_files::{self, FileError};
use tidings_protocol::EpochMs;

/// The file operations of the session store.
#[derive(Clone, Default)]
pub struct Files {
    gate: Option<Arc<dyn Gate>>,
}

/// Stands before each operation that changes something.
pub trait Gate: Send + Sync {
    /// Lets an operation through, or fails in its place.
    fn pass(&self, action: &'static str) -> io::Result<()>;
}

/// What a file looked like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Its size in bytes.
    pub size: u64,
    /// When it last changed.
    pub modified: EpochMs,
    /// The fraction of that millisecond, and the file's number: they tell apart what was
    /// written within one.
    pub mark: (i64, u64),
}

/// One regular file of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// What it looked like.
    pub seen: Seen,
}

impl Files {
    /// Operations behind a gate.
    #[must_use]
    pub fn behind(gate: Arc<dyn Gate>) -> Self {
        Self { gate: Some(gate) }
    }

    /// Makes a directory, and closes it to others.
    pub fn create_dir(&self, dir: &Path) -> Result<(), FileError> {
        if dir.is_dir() {
            return Ok(());
        }
        self.pass("create the directory", dir)?;
        private_files::create_dir(dir)
    }

    /// Reads a regular file of at most `limit` bytes, and what it looked like; `None` where
    /// there is none.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Option<(Vec<u8>, Seen)>, FileError> {
        let Some(file) = self.open(path)? else {
            return Ok(None);
        };
        let seen = self.seen(&file, path)?;
        let mut content = Vec::new();
        file.take(limit + 1)
            .read_to_end(&mut content)
            .map_err(FileError::at("read", path))?;
        if content.len() as u64 > limit {
            let too_large = io::Error::other(format!("it has more than {limit} bytes"));
            return Err(FileError::at("read", path)(too_large));
        }
        Ok(Some((content, seen)))
    }

    /// Opens a regular file for reading, without ever waiting for somebody at the other end;
    /// `None` where there is none.
    pub fn open(&self, path: &Path) -> Result<Option<File>, FileError> {
        let Some(metadata) = found(fs::metadata(path)).map_err(FileError::at("look at", path))?
        else {
            return Ok(None);
        };
        check_regular(path, &metadata)?;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path);
        let Some(file) = found(opened).map_err(FileError::at("open", path))? else {
            return Ok(None);
        };
        let metadata = file.metadata().map_err(FileError::at("look at", path))?;
        check_regular(path, &metadata)?;
        Ok(Some(file))
    }

    /// The first bytes of a file, at most `limit`; none where there is no file.
    pub fn head(&self, path: &Path, limit: usize) -> Result<Vec<u8>, FileError> {
        let mut head = Vec::new();
        if let Some(file) = self.open(path)? {
            file.take(limit as u64)
                .read_to_end(&mut head)
                .map_err(FileError::at("read", path))?;
        }
        Ok(head)
    }

    /// What an open file looks like.
    pub fn seen(&self, file: &File, path: &Path) -> Result<Seen, FileError> {
        let metadata = file.metadata().map_err(FileError::at("look at", path))?;
        Ok(seen(&metadata))
    }

    /// What a file looks like; `None` where there is none.
    pub fn look(&self, path: &Path) -> Result<Option<Seen>, FileError> {
        let metadata = found(fs::metadata(path)).map_err(FileError::at("look at", path))?;
        Ok(metadata.as_ref().map(seen))
    }

    /// The regular files of a directory, by name; none where there is no such directory.
    /// Links are not followed.
    pub fn list(&self, dir: &Path) -> Result<Vec<Listed>, FileError> {
        let failed = || FileError::at("list", dir);
        let Some(entries) = found(fs::read_dir(dir)).map_err(failed())? else {
            return Ok(Vec::new());
        };
        let mut listed = Vec::new();
        for entry in entries {
            listed.extend(regular(&entry.map_err(failed())?).map_err(failed())?);
        }
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    /// The directories in a directory, by name; none where there is no such directory.
    pub fn list_dirs(&self, dir: &Path) -> Result<Vec<String>, FileError> {
        let failed = || FileError::at("list", dir);
        let Some(entries) = found(fs::read_dir(dir)).map_err(failed())? else {
            return Ok(Vec::new());
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed())?;
            if entry.file_type().map_err(failed())?.is_dir() {
                names.extend(entry.file_name().into_string().ok());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Everything that stands in a directory, by name; nothing where there is no such directory.
    /// Links are not followed.
    pub fn names(&self, dir: &Path) -> Result<Vec<(OsString, FileType)>, FileError> {
        let failed = || FileError::at("list", dir);
        let Some(entries) = found(fs::read_dir(dir)).map_err(failed())? else {
            return Ok(Vec::new());
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed())?;
            names.push((entry.file_name(), entry.file_type().map_err(failed())?));
        }
        names.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(names)
    }

    /// What stands at a place, a link not followed; `None` where nothing does.
    pub fn kind(&self, path: &Path) -> Result<Option<FileType>, FileError> {
        let metadata = found(fs::symlink_metadata(path)).map_err(FileError::at("look at", path))?;
        Ok(metadata.map(|metadata| metadata.file_type()))
    }

    /// Where a path leads, links followed; `None` where nothing stands there.
    pub fn real(&self, path: &Path) -> Result<Option<PathBuf>, FileError> {
        found(fs::canonicalize(path)).map_err(FileError::at("look at", path))
    }

    /// Writes a file that only its owner may read, and makes its content durable. What
    /// stood there before is gone.
    pub fn write(&self, path: &Path, content: &[u8]) -> Result<(), FileError> {
        self.pass("create", path)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
            .map_err(FileError::at("create", path))?;
        // In two halves, so that a test can end between them.
        let (first, second) = content.split_at(content.len() / 2);
        self.pass("write", path)?;
        file.write_all(first)
            .map_err(FileError::at("write", path))?;
        self.pass("write", path)?;
        file.write_all(second)
            .map_err(FileError::at("write", path))?;
        self.pass("make durable", path)?;
        file.sync_all().map_err(FileError::at("make durable", path))
    }

    /// Writes a file that nobody misses after a crash.
    pub fn note(&self, path: &Path, content: &[u8]) -> Result<(), FileError> {
        self.pass("write", path)?;
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
            .and_then(|mut file| file.write_all(content))
            .map_err(FileError::at("write", path))
    }

    /// Gives a file one more name. False where that name is taken.
    pub fn link(&self, from: &Path, to: &Path) -> Result<bool, FileError> {
        self.pass("put in place", to)?;
        match fs::hard_link(from, to) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(FileError::at("put in place", to)(error)),
        }
    }

    /// Appends to a file that only its owner may read, on a new line, and makes it durable;
    /// answers where the content begins and ends.
    pub fn append(&self, path: &Path, content: &[u8]) -> Result<(u64, u64), FileError> {
        self.pass("append to", path)?;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
            .map_err(FileError::at("append to", path))?;
        let metadata = file.metadata().map_err(FileError::at("look at", path))?;
        check_regular(path, &metadata)?;
        let size = metadata.len();
        let is_torn = ends_torn(&file, size).map_err(FileError::at("read", path))?;
        let torn_end: &[u8] = if is_torn { b"\n" } else { b"" };
        let whole = [torn_end, content].concat();
        // In one call, so that nothing can stand within it; a test ends in its middle.
        let (first, second) = match &self.gate {
            None => (whole.as_slice(), &[][..]),
            Some(_) => whole.split_at(whole.len() / 2),
        };
        file.write_all(first)
            .map_err(FileError::at("append to", path))?;
        self.pass("append to", path)?;
        file.write_all(second)
            .map_err(FileError::at("append to", path))?;
        self.pass("make durable", path)?;
        file.sync_data()
            .map_err(FileError::at("make durable", path))?;
        if size == 0
            && let Some(dir) = path.parent()
        {
            self.sync_dir(dir)?;
        }
        let begins = size + torn_end.len() as u64;
        Ok((begins, begins + content.len() as u64))
    }

    /// Copies a regular file to a place where none is, durable and in one step; answers how
    /// many bytes that were.
    pub fn copy(&self, from: &Path, to: &Path) -> Result<u64, FileError> {
        let Some(mut source) = self.open(from)? else {
            let gone = io::Error::from(io::ErrorKind::NotFound);
            return Err(FileError::at("read", from)(gone));
        };
        let mut temporary = to.as_os_str().to_owned();
        temporary.push(".new");
        let temporary = Path::new(&temporary);
        self.pass("create", temporary)?;
        let mut copy = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(temporary)
            .map_err(FileError::at("create", temporary))?;
        let bytes = io::copy(&mut source, &mut copy).map_err(FileError::at("write", temporary))?;
        self.pass("make durable", temporary)?;
        copy.sync_all()
            .map_err(FileError::at("make durable", temporary))?;
        self.rename(temporary, to)?;
        if let Some(dir) = to.parent() {
            self.sync_dir(dir)?;
        }
        Ok(bytes)
    }

    /// Gives a file another name, in the place of what stood under it.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        self.pass("put in place", to)?;
        fs::rename(from, to).map_err(FileError::at("put in place", to))
    }

    /// Removes a file. False where there was none.
    pub fn remove(&self, path: &Path) -> Result<bool, FileError> {
        self.pass("remove", path)?;
        let removed = found(fs::remove_file(path)).map_err(FileError::at("remove", path))?;
        Ok(removed.is_some())
    }

    /// Makes the names of a directory durable.
    pub fn sync_dir(&self, dir: &Path) -> Result<(), FileError> {
        self.pass("make durable", dir)?;
        File::open(dir)
            .and_then(|dir| dir.sync_all())
            .map_err(FileError::at("make durable", dir))
    }

    fn pass(&self, action: &'static str, path: &Path) -> Result<(), FileError> {
        match &self.gate {
            None => Ok(()),
            Some(gate) => gate.pass(action).map_err(FileError::at(action, path)),
        }
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.gate.is_some() {
            "Files(gated)"
        } else {
            "Files"
        })
    }
}

/// True where a file ends in the middle of a line.
fn ends_torn(file: &File, size: u64) -> io::Result<bool> {
    let Some(last) = size.checked_sub(1) else {
        return Ok(false);
    };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte != *b"\n")
}

fn check_regular(path: &Path, metadata: &Metadata) -> Result<(), FileError> {
    if metadata.is_file() {
        Ok(())
    } else {
        let other = io::Error::other("it is no regular file");
        Err(FileError::at("read", path)(other))
    }
}

fn regular(entry: &DirEntry) -> io::Result<Option<Listed>> {
    // It may go while the directory is read.
    let Some(metadata) = found(entry.metadata())?.filter(Metadata::is_file) else {
        return Ok(None);
    };
    let name = entry.file_name().into_string().ok();
    let seen = seen(&metadata);
    Ok(name.map(|name| Listed { name, seen }))
}

fn seen(metadata: &Metadata) -> Seen {
    let nanoseconds = metadata.mtime_nsec();
    Seen {
        size: metadata.len(),
        modified: metadata
            .mtime()
            .saturating_mul(1_000)
            .saturating_add(nanoseconds / 1_000_000),
        mark: (nanoseconds % 1_000_000, metadata.ino()),
    }
}

fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
pub(crate) mod ending {
    //! A process that ends at its n-th file operation.

    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Lets so many operations through, and none after them.
    pub(crate) struct Ending(AtomicUsize);

    impl Gate for Ending {
        fn pass(&self, _: &'static str) -> io::Result<()> {
            let left = |left: usize| left.checked_sub(1);
            match self
                .0
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, left)
            {
                Ok(_) => Ok(()),
                Err(_) => Err(io::Error::other("the process has ended")),
            }
        }
    }

    impl Files {
        /// Operations of a process that ends after `count` of them.
        pub(crate) fn ending_after(count: usize) -> Self {
            Self::behind(Arc::new(Ending(AtomicUsize::new(count))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read_and_listed_and_what_is_not_there_is_nothing() {
        let scratch = tempfile::tempdir().expect("scratch");
        let files = Files::default();
        let at = |name: &str| scratch.path().join(name);
        fs::create_dir(at("dir")).expect("dir");
        files.write(&at("b"), b"two").expect("written");
        files.write(&at("a"), b"one").expect("written");
        std::os::unix::fs::symlink(at("a"), at("link")).expect("link");
        let fifo = std::process::Command::new("mkfifo")
            .arg(at("fifo"))
            .status();
        assert!(fifo.expect("mkfifo").success());
        let listed = files.list(scratch.path()).expect("listed");
        let names: Vec<&str> = listed.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(files.list_dirs(scratch.path()).expect("dirs"), ["dir"]);
        let (content, seen) = files.read(&at("a"), 3).expect("read").expect("there");
        assert_eq!(
            (content.as_slice(), seen),
            (b"one".as_slice(), listed[0].seen)
        );
        for name in ["dir", "fifo"] {
            let error = files.read(&at(name), 3).expect_err(name).to_string();
            assert!(error.contains("no regular file"), "{error}");
        }
        assert!(files.read(&at("b"), 2).is_err(), "too large");
        assert_eq!(files.read(&at("none"), 3).expect("nothing"), None);
        assert_eq!(files.list(&at("none")).expect("nothing"), []);
        assert!(!files.remove(&at("none")).expect("nothing"));
    }

    #[test]
    fn behind_a_gate_nothing_happens_after_the_end() {
        let scratch = tempfile::tempdir().expect("scratch");
        let path = scratch.path().join("f");
        let files = Files::ending_after(2);
        let error = files.write(&path, b"abcd").expect_err("ended").to_string();
        assert!(error.contains("the process has ended"), "{error}");
        assert_eq!(fs::read(&path).expect("there"), b"ab");
        assert!(files.remove(&path).is_err());
        assert!(path.exists());
    }
}
