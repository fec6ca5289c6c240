//! What has changed, collected until somebody takes it: each file once, and when there are
//! too many, everything.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// How many changed files are kept apart. A burst over more costs less as one look at
/// everything that is followed.
pub(super) const MAX_FILES: usize = 4096;

/// Files that may have changed since they were last looked at.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// These.
    pub files: HashSet<PathBuf>,
    /// Any other file too.
    pub everything: bool,
}

/// Where changes are collected.
#[derive(Debug, Default)]
pub(super) struct Collected {
    changes: Mutex<Changes>,
    news: Notify,
}

impl Collected {
    /// A transcript may have changed, appeared or gone.
    pub(super) fn file(&self, path: &Path) {
        let mut changes = self.changes();
        if changes.everything || changes.files.contains(path) {
            return;
        }
        if changes.files.len() == MAX_FILES {
            changes.set_everything();
        } else {
            changes.files.insert(path.to_owned());
        }
        drop(changes);
        self.news.notify_one();
    }

    /// Any file may have changed.
    pub(super) fn everything(&self) {
        self.changes().set_everything();
        self.news.notify_one();
    }

    /// Nothing changed in a file, but a root is in another state.
    pub(super) fn stir(&self) {
        self.news.notify_one();
    }

    /// Waits until there is something new.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }

    /// Takes what has been collected.
    pub(super) fn take(&self) -> Changes {
        std::mem::take(&mut self.changes())
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        // A set of paths is whole after every statement, whoever panicked.
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Changes {
    fn set_everything(&mut self) {
        self.files = HashSet::new();
        self.everything = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_told_once_however_often_it_changes() {
        let collected = Collected::default();
        for _ in 0..3 {
            collected.file(Path::new("/a"));
        }
        collected.news().await;
        let once = Changes {
            files: HashSet::from(["/a".into()]),
            everything: false,
        };
        assert_eq!(collected.take(), once);
        assert_eq!(collected.take(), Changes::default());
    }

    #[test]
    fn too_many_files_become_everything() {
        let collected = Collected::default();
        for n in 0..=MAX_FILES {
            collected.file(Path::new(&format!("/{n}")));
        }
        collected.file(Path::new("/one-more"));
        let changes = collected.take();
        assert!(changes.everything && changes.files.is_empty());
    }
}
