//! A log in a file beside stderr, bounded: when it is full it becomes the older one, and a new
//! one begins.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A log becomes the older one at this size: both together are some days of a busy gateway.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// A log file, open for its next line.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    limit: u64,
    /// The last line was not written whole: the disk was full.
    torn: bool,
}

impl LogFile {
    /// Goes on with the log at `path`, readable by its owner alone.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_with(path, MAX_BYTES)
    }

    fn open_with(path: &Path, limit: u64) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(path)?;
        Ok(Self {
            path: path.to_owned(),
            bytes: file.metadata()?.len(),
            file,
            limit,
            torn: false,
        })
    }

    /// Adds a line, its end included. One that cannot be written is left out; the next one
    /// stands on a line of its own all the same.
    pub fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.torn {
            self.file.write_all(b"\n")?;
            self.torn = false;
        }
        if self.bytes >= self.limit {
            std::fs::rename(&self.path, older(&self.path))?;
            *self = Self::open_with(&self.path, self.limit)?;
        }
        self.torn = true;
        self.file.write_all(line)?;
        self.torn = false;
        self.bytes = self.bytes.saturating_add(line.len() as u64);
        Ok(())
    }
}

/// Where the log before this one is.
pub fn older(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_full_log_becomes_the_older_one_and_both_are_their_owners_alone() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("gateway.log");
        for run in ["a", "b"] {
            let mut log = LogFile::open_with(&path, 20).expect("open");
            for line in 0..5 {
                log.append(format!("{run} line {line}\n").as_bytes())
                    .expect("written");
            }
        }
        let read = |path: &Path| std::fs::read_to_string(path).expect("a log");
        assert_eq!(read(&path), "b line 4\n");
        assert_eq!(read(&older(&path)), "b line 1\nb line 2\nb line 3\n");
        for path in [&path, &older(&path)] {
            let mode = std::fs::metadata(path).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_line_after_one_that_could_not_be_written_stands_by_itself() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("gateway.log");
        let mut log = LogFile::open(&path).expect("open");
        log.append(b"half of a li").expect("written");
        // As after an error in the middle of it.
        log.torn = true;
        log.append(b"the next\n").expect("written");
        log.append(b"and one more\n").expect("written");
        let text = std::fs::read_to_string(&path).expect("a log");
        assert_eq!(text, "half of a li\nthe next\nand one more\n");
    }
}
