//! Roots full of transcripts, for tests.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{RootPlaces, RootSet, Surroundings};

/// A root of each catalog.
pub(super) struct Scratch {
    pub(super) directory: tempfile::TempDir,
    pub(super) places: RootPlaces,
}

impl Scratch {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let given: Vec<_> = ["claude", "codex", "openclaw"]
            .iter()
            .map(|catalog| {
                let path = directory.path().join(catalog);
                fs::create_dir_all(&path).expect("a directory");
                format!("{catalog}={}", path.display())
                    .parse()
                    .expect("a root")
            })
            .collect();
        let roots = RootSet::new(&Surroundings::default(), &given).expect("roots");
        Self {
            places: RootPlaces::new(Arc::new(roots)),
            directory,
        }
    }

    /// Writes a file that was changed `at` seconds after 1970.
    pub(super) fn write(&self, path: &str, at: u64, text: &str) -> PathBuf {
        let path = self.directory.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(&path, text).expect("write");
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
        let file = File::options().append(true).open(&path).expect("open");
        file.set_modified(changed).expect("a time");
        path
    }
}

/// A transcript of OpenClaw with nothing but its header.
pub(super) fn openclaw(id: &str) -> String {
    format!("{{\"type\":\"session\",\"id\":\"{id}\"}}\n")
}
