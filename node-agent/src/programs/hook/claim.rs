//! Which hook waits for the news of a conversation: one small file per conversation names it.
//! The newest takes the place of the one before, and a conversation that goes on by itself
//! takes it from all.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tidings_protocol::{Catalog, ThreadId};

use super::super::process::ProcessId;

/// The folder in a state directory.
const FOLDER: &str = "waiters";
/// How many files one sweep looks at.
const MAX_SWEPT: usize = 4_096;

/// The place of the one that waits.
#[derive(Debug)]
pub(super) struct Claim {
    file: PathBuf,
    own: ProcessId,
}

impl Claim {
    /// Takes the place. `None` where there is no state directory, or none of whose processes
    /// can be told apart.
    pub(super) fn take(
        state_dir: &Path,
        catalog: Catalog,
        thread: &ThreadId,
    ) -> io::Result<Option<Self>> {
        let Some(own) = ProcessId::own() else {
            return Ok(None);
        };
        match fs::create_dir(state_dir.join(FOLDER)) {
            // A state directory that nobody has made yet is not made by a hook.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let claim = Self {
            file: file(state_dir, catalog, thread),
            own,
        };
        claim.write()?;
        Ok(Some(claim))
    }

    fn write(&self) -> io::Result<()> {
        let temporary = self.file.with_extension(format!("{}.new", self.own.pid));
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        serde_json::to_writer(options.open(&temporary)?, &self.own)?;
        fs::rename(&temporary, &self.file)
    }

    /// False once another has taken the place, or the conversation has gone on.
    pub(super) fn stands(&self) -> bool {
        read(&self.file).is_some_and(|holder| holder == self.own)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.stands() {
            // What stays is swept up once the process has ended.
            let _ = fs::remove_file(&self.file);
        }
    }
}

/// Takes the place from whoever waits.
pub(super) fn end(state_dir: &Path, catalog: Catalog, thread: &ThreadId) {
    // Mostly nobody waits.
    let _ = fs::remove_file(file(state_dir, catalog, thread));
}

/// Removes what is left of processes that have ended.
pub(in super::super) fn sweep(state_dir: &Path) {
    let Ok(entries) = fs::read_dir(state_dir.join(FOLDER)) else {
        return;
    };
    for entry in entries.flatten().take(MAX_SWEPT) {
        let path = entry.path();
        if read(&path).is_none_or(|holder| !holder.runs()) {
            // Another sweep may have been faster.
            let _ = fs::remove_file(path);
        }
    }
}

fn file(state_dir: &Path, catalog: Catalog, thread: &ThreadId) -> PathBuf {
    let name = format!("{catalog}-{}.json", thread.key_part());
    state_dir.join(FOLDER).join(name)
}

fn read(file: &Path) -> Option<ProcessId> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(id: &str) -> ThreadId {
        ThreadId::parse(id).expect("a thread")
    }

    fn take(dir: &Path, id: &str) -> Claim {
        let taken = Claim::take(dir, Catalog::Claude, &thread(id));
        taken.expect("written").expect("a place")
    }

    #[test]
    fn the_place_is_the_newest_ones_until_the_conversation_goes_on() {
        let dir = tempfile::tempdir().expect("scratch");
        let (first, beside) = (take(dir.path(), "a"), take(dir.path(), "b"));
        assert!(first.stands() && beside.stands());
        let newer = ProcessId {
            started: "later".to_owned(),
            ..first.own.clone()
        };
        fs::write(&first.file, serde_json::to_vec(&newer).expect("JSON")).expect("taken");
        assert!(!first.stands());
        let file = first.file.clone();
        drop(first);
        assert!(file.exists(), "it is another's");
        end(dir.path(), Catalog::Claude, &thread("a"));
        end(dir.path(), Catalog::Claude, &thread("nobody"));
        assert!(!file.exists() && beside.stands());
        let file = beside.file.clone();
        drop(beside);
        assert!(!file.exists());
    }

    #[test]
    fn a_sweep_removes_what_nobody_holds_any_more() {
        let dir = tempfile::tempdir().expect("scratch");
        let held = take(dir.path(), "a");
        for (name, content) in [
            ("claude-x.json", "{\"pid\":1,\"started\":\"never\"}"),
            ("claude-y.9.new", ""),
        ] {
            fs::write(dir.path().join(FOLDER).join(name), content).expect("a file");
        }
        sweep(dir.path());
        assert!(held.stands());
        let left = fs::read_dir(dir.path().join(FOLDER)).expect("a folder");
        assert_eq!(left.count(), 1);
    }

    #[test]
    fn no_state_directory_is_made() {
        let dir = tempfile::tempdir().expect("scratch");
        let missing = dir.path().join("missing");
        let taken = Claim::take(&missing, Catalog::Claude, &thread("a")).expect("no fault");
        assert!(taken.is_none() && !missing.exists());
    }
}
