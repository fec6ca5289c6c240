//! Which conversation an agent program is in now: kept in one small file per process, written
//! by its hooks when it switches and read by its MCP server. It says nothing to a gateway and
//! survives one that is away.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidings_protocol::{Catalog, ThreadId};

use super::process::{self, ProcessId};

/// The folder in a state directory.
const FOLDER: &str = "programs";
/// The longest file, in bytes.
const MAX_BYTES: u64 = 64 * 1024;
/// How many conversations one line remembers: the newest.
const MAX_THREADS: usize = 32;
/// How many lines one process has: more than one only where a program starts conversations
/// side by side.
const MAX_LINES: usize = 16;
/// How many files of ended processes one sweep looks at.
const MAX_SWEPT: usize = 4_096;

/// How a conversation began, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Began {
    /// With its program, or beside another.
    Anew,
    /// In place of the one that the program was in.
    Instead,
    /// In place of the one that the program was in, which is over.
    Cleared,
}

/// The conversations of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Binding {
    process: ProcessId,
    lines: Vec<Line>,
}

/// Conversations that took each other's place, the newest last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    /// The first took the place of one that no hook has seen.
    #[serde(default)]
    headless: bool,
    threads: Vec<ThreadId>,
}

impl Binding {
    fn new(process: ProcessId) -> Self {
        Self {
            process,
            lines: Vec::new(),
        }
    }

    /// Notes that the process is in `thread` now; the conversation that it left for it.
    fn enter(&mut self, thread: &ThreadId, began: Began) -> Option<ThreadId> {
        let ends_in = |line: &Line| line.threads.last() == Some(thread);
        if self.lines.iter().any(ends_in) {
            return None;
        }
        // Where there are several, nobody says which of them was cleared away; to end the
        // watches of another would be worse than to let those of one that is over expire.
        let unclear = self.lines.len() > 1 && began == Began::Cleared;
        if began == Began::Anew || self.lines.is_empty() || unclear {
            self.lines.push(Line {
                headless: began == Began::Cleared,
                threads: vec![thread.clone()],
            });
            let surplus = self.lines.len().saturating_sub(MAX_LINES);
            self.lines.drain(..surplus);
            return None;
        }
        let line = self.lines.last_mut()?;
        let left = line.threads.last().cloned();
        line.threads.push(thread.clone());
        let surplus = line.threads.len().saturating_sub(MAX_THREADS);
        line.threads.drain(..surplus);
        left
    }

    /// Where the conversation that a program began in has led.
    fn now(&self, first: &ThreadId) -> Option<&ThreadId> {
        let known = |line: &&Line| line.threads.contains(first);
        let unseen = |line: &&Line| line.headless;
        let mut lines = self.lines.iter().rev();
        let line = self.lines.iter().rev().find(known);
        line.or_else(|| lines.find(unseen))?.threads.last()
    }
}

/// Notes in the state directory that the program which started this process is in `thread`
/// now. Answers the conversation that it left for it.
pub fn enter(
    state_dir: &Path,
    catalog: Catalog,
    (thread, began): (&ThreadId, Began),
) -> io::Result<Option<ThreadId>> {
    let Some(process) = process::of_program() else {
        return Ok(None);
    };
    let folder = state_dir.join(FOLDER);
    if !folder.is_dir() {
        // A state directory that nobody has made yet is not made by a hook.
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let file = file(&folder, catalog, &process);
    let mut binding = read(&file, &process).unwrap_or_else(|| Binding::new(process));
    let before = binding.clone();
    let left = binding.enter(thread, began);
    if binding != before {
        write(&file, &serde_json::to_vec(&binding)?)?;
    }
    Ok(left)
}

/// The conversation that the program which started this process is in now, given the one that
/// it was in when it did; that one, where no hook has told of another.
pub fn current(state_dir: &Path, catalog: Catalog, first: &ThreadId) -> ThreadId {
    let found = process::of_program().and_then(|process| {
        let file = file(&state_dir.join(FOLDER), catalog, &process);
        read(&file, &process)?.now(first).cloned()
    });
    found.unwrap_or_else(|| first.clone())
}

/// Removes what is left of processes that have ended.
pub fn sweep(state_dir: &Path) {
    let Ok(entries) = fs::read_dir(state_dir.join(FOLDER)) else {
        return;
    };
    for entry in entries.flatten().take(MAX_SWEPT) {
        let path = entry.path();
        if parse(&path).is_none_or(|binding| !binding.process.runs()) {
            // Another sweep may have been faster.
            let _ = fs::remove_file(path);
        }
    }
}

fn file(folder: &Path, catalog: Catalog, process: &ProcessId) -> PathBuf {
    folder.join(format!("{catalog}-{}.json", process.pid))
}

fn read(file: &Path, process: &ProcessId) -> Option<Binding> {
    parse(file).filter(|binding| binding.process == *process)
}

/// Puts the file in its place in one step. A crash may lose it, and then the conversation
/// that a program began in counts again: not worth making a hook wait for a disk.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(&temporary)?.write_all(content)?;
    fs::rename(&temporary, path)
}

fn parse(file: &Path) -> Option<Binding> {
    let mut text = Vec::new();
    let file = fs::File::open(file).ok()?;
    file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(id: &str) -> ThreadId {
        ThreadId::parse(id).expect("a thread")
    }

    fn binding() -> Binding {
        Binding::new(ProcessId {
            pid: 7,
            started: "1".to_owned(),
        })
    }

    #[test]
    fn a_program_is_followed_from_conversation_to_conversation() {
        let mut binding = binding();
        assert_eq!(binding.enter(&thread("a"), Began::Anew), None);
        assert_eq!(
            binding.enter(&thread("a"), Began::Instead),
            None,
            "compacted"
        );
        let left = binding.enter(&thread("b"), Began::Cleared);
        assert_eq!(left, Some(thread("a")));
        let left = binding.enter(&thread("c"), Began::Instead);
        assert_eq!(left, Some(thread("b")));
        for first in ["a", "b", "c"] {
            assert_eq!(binding.now(&thread(first)), Some(&thread("c")));
        }
        assert_eq!(binding.now(&thread("z")), None);
    }

    #[test]
    fn conversations_side_by_side_do_not_take_each_others_place() {
        let mut binding = binding();
        binding.enter(&thread("a"), Began::Anew);
        binding.enter(&thread("x"), Began::Anew);
        binding.enter(&thread("a"), Began::Instead);
        assert_eq!(binding.now(&thread("a")), Some(&thread("a")));
        assert_eq!(binding.now(&thread("x")), Some(&thread("x")));
    }

    #[test]
    fn a_clear_beside_other_conversations_ends_none_of_them() {
        let mut binding = binding();
        binding.enter(&thread("a"), Began::Anew);
        binding.enter(&thread("b"), Began::Anew);
        assert_eq!(binding.enter(&thread("c"), Began::Cleared), None);
        for first in ["a", "b", "c"] {
            assert_eq!(binding.now(&thread(first)), Some(&thread(first)));
        }
    }

    #[test]
    fn a_clear_that_is_the_first_thing_seen_still_tells_where_the_program_is() {
        let mut binding = binding();
        assert_eq!(binding.enter(&thread("n"), Began::Cleared), None);
        assert_eq!(binding.now(&thread("never seen")), Some(&thread("n")));
    }

    #[test]
    fn what_is_remembered_has_a_limit() {
        let mut binding = binding();
        for n in 0..100 {
            binding.enter(&thread(&format!("side-{n}")), Began::Anew);
            binding.enter(&thread(&format!("then-{n}")), Began::Instead);
        }
        for n in 0..100 {
            binding.enter(&thread(&format!("next-{n}")), Began::Instead);
        }
        assert_eq!(binding.lines.len(), MAX_LINES);
        assert!(
            binding
                .lines
                .iter()
                .all(|line| line.threads.len() <= MAX_THREADS)
        );
        let longest = serde_json::to_vec(&binding).expect("json").len() as u64;
        assert!(longest < MAX_BYTES);
    }

    #[test]
    fn a_hook_tells_an_mcp_server_of_the_same_program_and_a_sweep_keeps_it() {
        let dir = tempfile::tempdir().expect("scratch");
        let enter = |thread: &ThreadId, began| {
            enter(dir.path(), Catalog::Claude, (thread, began)).expect("noted")
        };
        assert_eq!(enter(&thread("a"), Began::Anew), None);
        assert_eq!(enter(&thread("b"), Began::Cleared), Some(thread("a")));
        fs::write(dir.path().join("programs/claude-1.json"), "{}").expect("a file");
        sweep(dir.path());
        assert!(!dir.path().join("programs/claude-1.json").exists());
        assert_eq!(
            current(dir.path(), Catalog::Claude, &thread("a")),
            thread("b")
        );
        assert_eq!(
            current(dir.path(), Catalog::Codex, &thread("a")),
            thread("a")
        );
    }

    #[test]
    fn a_hook_makes_no_state_directory() {
        let dir = tempfile::tempdir().expect("scratch");
        let missing = dir.path().join("nobody/made/it");
        let left = enter(&missing, Catalog::Claude, (&thread("a"), Began::Anew));
        assert_eq!(left.expect("nothing"), None);
        assert!(!dir.path().join("nobody").exists());
    }
}
