//! The file of a transcript.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::clock::epoch_ms;

/// Where a human turn stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    /// The file's name.
    pub file: String,
    /// Where the record begins.
    pub start: u64,
    /// Where it ends, its line end not included.
    pub end: u64,
}

/// A file that grows by whole lines.
#[derive(Debug)]
pub(super) struct TranscriptFile {
    path: PathBuf,
    file: File,
    len: u64,
}

impl TranscriptFile {
    /// A new, empty file in a folder that is made for it.
    pub(super) fn create(path: &Path) -> Self {
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder of a transcript");
        let file = OpenOptions::new().create_new(true).append(true).open(path);
        Self {
            path: path.to_owned(),
            file: file.expect("a new transcript"),
            len: 0,
        }
    }

    /// Appends one line, in one write, as agent programs do. Where it stands.
    pub(super) fn append(&mut self, line: &str) -> Turn {
        self.append_all(&[line.to_owned()]).remove(0)
    }

    /// Appends lines, all in one write. Where they stand.
    pub(super) fn append_all(&mut self, lines: &[String]) -> Vec<Turn> {
        let bytes: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        let written = self.file.write_all(bytes.as_bytes());
        written.expect("a transcript takes lines");
        let name = self.path.file_name().expect("a file name");
        let mut turns = Vec::new();
        for line in lines {
            let end = self.len + line.len() as u64;
            turns.push(Turn {
                file: name.to_string_lossy().into_owned(),
                start: self.len,
                end,
            });
            self.len = end + 1;
        }
        turns
    }

    /// Appends bytes as they are, in one write.
    pub(super) fn append_bytes(&mut self, bytes: &[u8]) {
        let written = self.file.write_all(bytes);
        written.expect("a transcript takes bytes");
        self.len += bytes.len() as u64;
    }

    /// Another file stands in its place now, or it was cut: what is written next goes to the
    /// end of what is there.
    pub(super) fn reopen(&mut self) {
        let file = OpenOptions::new().append(true).open(&self.path);
        self.file = file.expect("a transcript");
        self.len = fs::metadata(&self.path).expect("a transcript").len();
    }

    /// It is in another folder from now on.
    pub(super) fn move_to(&mut self, folder: &Path) {
        fs::create_dir_all(folder).expect("the folder of a transcript");
        let path = folder.join(self.path.file_name().expect("a file name"));
        fs::rename(&self.path, &path).expect("a transcript moves");
        self.path = path;
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// When it was last written to, in epoch milliseconds.
    pub(super) fn written_at(&self) -> i64 {
        let metadata = fs::metadata(&self.path).expect("a transcript");
        epoch_ms(metadata.modified().expect("a file's time"))
    }
}
