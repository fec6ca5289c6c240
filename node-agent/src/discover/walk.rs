//! One bounded walk over the directories of a root in which transcripts may stand.

use std::fs::{self, DirEntry};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};

use super::roots::Root;

/// How many directories one walk goes through, at most: ten times the largest home that we
/// know of; a loop or a mistaken root ends here.
const MAX_DIRECTORIES: usize = 100_000;

/// Something that a walk comes to.
pub(crate) enum Step<'a> {
    /// A directory, about to be read.
    Directory(&'a Path),
    /// A file that is a transcript by its name.
    Transcript(Transcript<'a>),
    /// Some other file in a directory that matters.
    Other(&'a Path),
    /// A directory that cannot be read, and why.
    Unreadable(&'a Path, &'a io::Error),
}

/// A file that is a transcript by its name.
pub(crate) struct Transcript<'a> {
    /// The file.
    pub(crate) path: &'a Path,
    /// Its inode, as its directory has it.
    pub(crate) inode: u64,
}

/// Walks the directory `from` (the root itself, or one in it) and what is below it. Links
/// to directories are not followed. What is seen goes to `visit`, which can end the walk.
pub(crate) fn walk(
    root: &Root,
    from: &Path,
    visit: &mut dyn FnMut(Step<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut waiting = vec![from.to_owned()];
    let mut entered = 0;
    while let Some(directory) = waiting.pop() {
        entered += 1;
        if entered > MAX_DIRECTORIES {
            tracing::warn!(root = %root.path.display(), limit = MAX_DIRECTORIES, "more directories than one walk goes through");
            return ControlFlow::Continue(());
        }
        visit(Step::Directory(&directory))?;
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) => {
                visit(Step::Unreadable(&directory, &error))?;
                continue;
            }
        };
        for entry in entries {
            match entry {
                Ok(entry) => look_at(root, &entry, &mut waiting, visit)?,
                Err(error) => {
                    visit(Step::Unreadable(&directory, &error))?;
                    break;
                }
            }
        }
    }
    ControlFlow::Continue(())
}

fn look_at(
    root: &Root,
    entry: &DirEntry,
    waiting: &mut Vec<PathBuf>,
    visit: &mut dyn FnMut(Step<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let path = entry.path();
    let Ok(relative) = path.strip_prefix(&root.path) else {
        return ControlFlow::Continue(());
    };
    // The kind comes with the entry: no look at the file itself.
    let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
    if is_directory {
        if root.layout.has_directory(relative) {
            waiting.push(path);
        }
        ControlFlow::Continue(())
    } else if root.layout.has_transcript(relative) {
        visit(Step::Transcript(Transcript {
            path: &path,
            inode: entry.ino(),
        }))
    } else {
        visit(Step::Other(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::{RootSet, Surroundings};

    fn seen(root: &Root) -> Vec<String> {
        let mut seen = Vec::new();
        let _ = walk(root, &root.path, &mut |step| {
            let (kind, path) = match step {
                Step::Directory(path) => ("d", path),
                Step::Transcript(transcript) => ("t", transcript.path),
                Step::Other(path) => ("o", path),
                Step::Unreadable(path, _) => ("!", path),
            };
            let relative = path.strip_prefix(&root.path).expect("inside");
            seen.push(format!("{kind} {}", relative.display()));
            ControlFlow::Continue(())
        });
        seen.sort();
        seen
    }

    #[test]
    fn a_walk_sees_what_matters_and_follows_no_link() {
        let scratch = tempfile::tempdir().expect("a directory");
        let base = scratch.path().join("projects");
        fs::create_dir_all(base.join("p/s1/subagents")).expect("directories");
        fs::create_dir_all(scratch.path().join("elsewhere")).expect("directories");
        std::os::unix::fs::symlink(scratch.path().join("elsewhere"), base.join("q"))
            .expect("a link");
        for file in [
            "p/s1.jsonl",
            "p/agent-1.jsonl",
            "p/s1/subagents/agent-2.jsonl",
        ] {
            fs::write(base.join(file), "").expect("write");
        }
        let argument = format!("claude={}", base.display()).parse().expect("root");
        let roots = RootSet::new(&Surroundings::default(), &[argument]).expect("roots");
        assert_eq!(
            seen(&roots.all()[0]),
            ["d ", "d p", "o p/agent-1.jsonl", "o q", "t p/s1.jsonl"]
        );
        fs::remove_dir_all(&base).expect("remove");
        assert_eq!(seen(&roots.all()[0]), ["! ", "d "]);
    }
}
