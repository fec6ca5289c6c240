//! A folder of one test, and processes that know nothing but it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use crate::cable::NetworkEnd;

/// The folder of one test: gone when the test is over, kept and named when it fails.
#[derive(Debug, Clone)]
pub struct Scratch(Arc<Folder>);

#[derive(Debug)]
struct Folder {
    dir: TempDir,
    keep: AtomicBool,
}

impl Scratch {
    /// An empty folder with a home and a temporary folder in it. Its path is short: sockets
    /// live below it.
    pub fn new() -> Self {
        let dir = TempDir::with_prefix("tidings-").expect("a temporary folder");
        let scratch = Self(Arc::new(Folder {
            dir,
            keep: AtomicBool::new(false),
        }));
        scratch.folder("home");
        scratch.folder("tmp");
        scratch
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.dir.path()
    }

    /// Leaves the folder where it is when the test is over.
    pub fn keep(&self) {
        self.0.keep.store(true, Ordering::Relaxed);
    }

    /// The home of every process of this test.
    pub fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// The temporary folder of every process of this test.
    pub fn tmp(&self) -> PathBuf {
        self.path().join("tmp")
    }

    /// A folder inside, made if need be.
    pub fn folder(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(&path).expect("a folder in the scratch folder");
        path
    }

    /// Runs `program` with nothing of this machine's environment but the search path.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("TMPDIR", self.tmp())
            .env("RUST_BACKTRACE", "1")
            .current_dir(self.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

impl Scratch {
    /// The same at an end of a cable, where one is given.
    pub(crate) fn command_at(&self, end: Option<&NetworkEnd>, program: &Path) -> Command {
        let Some(end) = end else {
            return self.command(program);
        };
        let mut command = self.command(Path::new("ip"));
        command.args(end.arguments(program));
        command
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() || self.keep.load(Ordering::Relaxed) {
            self.dir.disable_cleanup(true);
        }
    }
}

/// The regular files below `folder`.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let entry = entry.expect("a readable folder");
            let kind = entry.file_type().expect("a file's type");
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files
}

/// The files of `files` that contain `bytes`. One that was removed since, as a file is that
/// takes the place of another once it is written, contains nothing.
pub fn containing(files: Vec<PathBuf>, bytes: &[u8]) -> Vec<PathBuf> {
    let contains = |path: &PathBuf| match fs::read(path) {
        Ok(content) => content.windows(bytes.len()).any(|window| window == bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => panic!("{}: {error}", path.display()),
    };
    files.into_iter().filter(contains).collect()
}

#[test]
fn a_search_finds_bytes_wherever_they_are_in_a_folder() {
    let scratch = Scratch::new();
    let folder = scratch.folder("a/b");
    fs::write(folder.join("yes"), b"\xff\x00needle\n").expect("a file");
    fs::write(folder.join("no"), b"need le").expect("a file");
    let files = files(scratch.path());
    assert_eq!(files.len(), 2);
    fs::remove_file(folder.join("no")).expect("removed");
    assert_eq!(containing(files, b"needle"), [folder.join("yes")]);
}
