//! What each directory was when a followed file was last found in it. It is kept in a file of
//! the node's own: whether a thread's file is gone or its root is, an agent started anew
//! could not tell without it. It says nothing about any thread.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::private_files::{self, FileError};

/// The file's name in a node's directory.
pub const SEEN_FILE: &str = "directories-seen.json";
/// How many directories are remembered: one per root, or per agent under
/// [`super::files::Layout::Agents`]. Beyond that nothing in them is ever said to be gone.
const MAX_SEEN: usize = 4096;
/// The largest file that is read: that many directories with long paths.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Device and inode: what makes a directory the same directory.
pub(super) type Identity = (u64, u64);

/// The directories, and where they are remembered.
#[derive(Debug, Default)]
pub(super) struct SeenDirectories {
    directories: HashMap<PathBuf, Identity>,
    file: Option<PathBuf>,
}

/// A directory as the file has it.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SeenDirectories {
    /// Those that are remembered in `file`, where there is one that can be read.
    pub(super) fn remembered_in(file: PathBuf) -> Self {
        let directories = match private_files::read(&file, MAX_FILE_BYTES) {
            Ok(content) => serde_json::from_slice(&content).unwrap_or_else(|_| {
                tracing::warn!(file = %file.display(), "not the list of directories seen before; it is made anew");
                Vec::new()
            }),
            Err(error) => {
                if !error.is_not_found() {
                    tracing::warn!(%error, "directories seen before are not known");
                }
                Vec::new()
            }
        };
        let directories = directories.into_iter().take(MAX_SEEN);
        let directories = directories
            .map(|entry: Entry| (entry.path, (entry.device, entry.inode)))
            .collect();
        Self {
            directories,
            file: Some(file),
        }
    }

    /// What the directory was.
    pub(super) fn get(&self, directory: &Path) -> Option<Identity> {
        self.directories.get(directory).copied()
    }

    /// True when a followed file was ever found below `root`.
    pub(super) fn any_below(&self, root: &Path) -> bool {
        self.directories.keys().any(|seen| seen.starts_with(root))
    }

    /// A followed file was found in the directory. Where that is new, it is written down.
    pub(super) fn found(&mut self, directory: PathBuf, identity: Identity) {
        let known = self.get(&directory);
        if known == Some(identity) || (known.is_none() && self.directories.len() >= MAX_SEEN) {
            return;
        }
        self.directories.insert(directory, identity);
        if let Some(file) = &self.file
            && let Err(error) = self.write(file)
        {
            // Known in memory all the same; only the next agent will have to wait.
            tracing::warn!(%error, "directories seen are not remembered");
        }
    }

    fn write(&self, file: &Path) -> Result<(), FileError> {
        let mut entries: Vec<Entry> = self
            .directories
            .iter()
            .filter(|(path, _)| path.to_str().is_some())
            .map(|(path, (device, inode))| Entry {
                path: path.clone(),
                device: *device,
                inode: *inode,
            })
            .collect();
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        let content = serde_json::to_vec(&entries)
            .map_err(|error| FileError::at("write", file)(error.into()))?;
        private_files::replace(file, &content)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_seen_is_known_to_the_next_agent() {
        let scratch = tempfile::tempdir().expect("a directory");
        let file = scratch.path().join("seen.json");
        let mut seen = SeenDirectories::remembered_in(file.clone());
        assert_eq!(seen.get(Path::new("/r")), None);
        seen.found("/r".into(), (1, 2));
        seen.found("/q/s".into(), (1, 3));
        seen.found("/r".into(), (1, 4));
        let next = SeenDirectories::remembered_in(file);
        assert_eq!(next.get(Path::new("/r")), Some((1, 4)));
        assert!(next.any_below(Path::new("/q")) && !next.any_below(Path::new("/p")));
    }

    #[test]
    fn a_file_that_is_none_of_ours_is_made_anew_and_nothing_is_taken_for_seen() {
        let scratch = tempfile::tempdir().expect("a directory");
        let file = scratch.path().join("seen.json");
        for content in ["", "{}", "[{\"path\":7}]", "\u{0}"] {
            fs::write(&file, content).expect("write");
            let mut seen = SeenDirectories::remembered_in(file.clone());
            assert!(!seen.any_below(Path::new("/")), "{content:?}");
            seen.found("/r".into(), (1, 2));
            let next = SeenDirectories::remembered_in(file.clone());
            assert_eq!(next.get(Path::new("/r")), Some((1, 2)));
        }
        // A folder in its place is no reason to stop.
        fs::remove_file(&file).expect("remove");
        fs::create_dir(&file).expect("a directory");
        let mut seen = SeenDirectories::remembered_in(file);
        seen.found("/r".into(), (1, 2));
        assert_eq!(seen.get(Path::new("/r")), Some((1, 2)));
    }
}
