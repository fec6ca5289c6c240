//! Files, places and shorthands for the other modules.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidings_node::tail::{Page, Places, Probe, Reading, Tailer, open_at_end};
use tidings_protocol::marker::FileHint;
use tidings_protocol::report::{Echo, Evidence};
use tidings_protocol::{Catalog, EpochMs, Marker, ThreadId};

pub(crate) const NOW: EpochMs = 1_800_000_000_000;
/// Longer than the file must have been still.
pub(crate) const LATER: Duration = Duration::from_mins(1);

/// Everything below one directory.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) dir: PathBuf,
    pub(crate) is_as_last_seen: AtomicBool,
    pub(crate) stored_otherwise: AtomicBool,
}

impl Root {
    pub(crate) fn at(dir: &Path) -> Self {
        Self {
            dir: dir.canonicalize().expect("directory"),
            is_as_last_seen: AtomicBool::new(true),
            stored_otherwise: AtomicBool::new(false),
        }
    }
}

impl Places for Root {
    fn candidates(
        &self,
        _: Catalog,
        thread: &ThreadId,
        hint: FileHint,
        not: &Path,
    ) -> Vec<PathBuf> {
        use std::os::unix::fs::MetadataExt;
        let mut found = Vec::new();
        let mut open = vec![self.dir.clone()];
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(&dir).expect("read dir").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    open.push(path);
                    continue;
                }
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_same = entry.metadata().is_ok_and(|m| m.ino() == hint.inode);
                let fits = name.contains(thread.as_str()) || is_same;
                let is_transcript = path.extension().is_some_and(|end| end == "jsonl");
                if fits && is_transcript && path != not {
                    found.push(path);
                }
            }
        }
        found
    }

    fn is_inside(&self, _: Catalog, path: &Path) -> bool {
        path.starts_with(&self.dir)
    }

    fn root_is_as_last_seen(&self, _: Catalog, _: &Path) -> bool {
        self.is_as_last_seen.load(Ordering::Relaxed)
    }

    fn found(&self, _: Catalog, _: &Path) {}

    fn is_stored_otherwise(&self, _: Catalog, _: &ThreadId, _: &Path) -> bool {
        self.stored_otherwise.load(Ordering::Relaxed)
    }
}

pub(crate) fn thread_of(path: &Path) -> ThreadId {
    let stem = path.file_stem().expect("name").to_string_lossy();
    ThreadId::parse(&stem).expect("thread id")
}

pub(crate) fn probe(places: &dyn Places, monotonic: Duration) -> Probe<'_> {
    Probe {
        places,
        now: NOW,
        monotonic,
    }
}

pub(crate) fn page(reading: Reading) -> Page {
    match reading {
        Reading::Page(page) => page,
        other => panic!("no page: {other:?}"),
    }
}

/// Reads until nothing more is there, the file counted as still.
pub(crate) fn read_all(tailer: &mut Tailer, places: &dyn Places) -> Vec<Page> {
    let mut pages = vec![page(tailer.read(&probe(places, Duration::ZERO)))];
    loop {
        let page = page(tailer.read(&probe(places, LATER)));
        let is_last = !page.more;
        pages.push(page);
        if is_last {
            return pages;
        }
    }
}

pub(crate) fn tailer_at_start(catalog: Catalog, path: &Path) -> Tailer {
    let marker = Marker::at_start(0);
    Tailer::new(
        catalog,
        thread_of(path),
        path.into(),
        marker,
        Echo::default(),
    )
}

/// The beginning of 2026-09-10, when the records of these tests are from.
pub(crate) const DAY: EpochMs = 1_788_998_400_000;

/// The time stamp of a number of milliseconds into that day.
pub(crate) fn stamp(ms: i64) -> String {
    let (seconds, ms) = (ms / 1000, ms % 1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("2026-09-10T{hours:02}:{minutes:02}:{seconds:02}.{ms:03}Z")
}

/// A prompt as Claude Code writes it, with its LF.
pub(crate) fn prompt(id: &str, text: &str, ms: i64) -> String {
    let line = serde_json::json!({
        "type": "user", "uuid": id, "timestamp": stamp(ms), "sessionId": "s",
        "message": {"role": "user", "content": text},
    });
    format!("{line}\n")
}

/// An assistant's record, with its LF.
pub(crate) fn reply(id: &str, ms: i64) -> String {
    let line = serde_json::json!({
        "type": "assistant", "uuid": id, "timestamp": stamp(ms), "sessionId": "s",
        "version": "2.1.250", "message": {"role": "assistant", "content": []},
    });
    format!("{line}\n")
}

/// A directory with one transcript of Claude Code, and a tailer that follows it.
pub(crate) struct Followed {
    /// Removed at the end.
    _dir: tempfile::TempDir,
    pub(crate) root: Root,
    pub(crate) path: PathBuf,
    pub(crate) tailer: Tailer,
    monotonic: Duration,
}

impl Followed {
    /// Adopts a transcript with this content.
    pub(crate) fn adopted(content: &str) -> Self {
        Self::adopted_as(Catalog::Claude, content)
    }

    /// The same for another program.
    pub(crate) fn adopted_as(catalog: Catalog, content: &str) -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let root = Root::at(dir.path());
        let path = root.dir.join("project").join("thread.jsonl");
        std::fs::create_dir(path.parent().expect("parent")).expect("directory");
        std::fs::write(&path, content).expect("write");
        let thread = thread_of(&path);
        let (marker, _) = open_at_end(catalog, &thread, &path, &root, DAY).expect("adopt");
        let tailer = Tailer::new(catalog, thread, path.clone(), marker, Echo::default());
        Self {
            _dir: dir,
            root,
            path,
            tailer,
            monotonic: Duration::ZERO,
        }
    }

    /// Adds to the end of the file.
    pub(crate) fn append(&self, content: impl AsRef<[u8]>) {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(&self.path)
            .expect("open");
        file.write_all(content.as_ref()).expect("append");
    }

    /// Puts another file in its place.
    pub(crate) fn replace(&self, content: impl AsRef<[u8]>) {
        let new = self.path.with_extension("new");
        std::fs::write(&new, content).expect("write");
        std::fs::rename(&new, &self.path).expect("rename");
    }

    /// One look.
    pub(crate) fn look(&mut self) -> Reading {
        self.tailer.read(&probe(&self.root, self.monotonic))
    }

    /// Time goes by.
    pub(crate) fn wait(&mut self, time: Duration) {
        self.monotonic += time;
    }

    /// Looks until nothing more is there; the ids of the turns.
    pub(crate) fn turns(&mut self) -> Vec<String> {
        let turns = self.evidence().into_iter();
        turns
            .map(|turn| turn.record_id.unwrap_or_default())
            .collect()
    }

    /// Looks until nothing more is there; the turns.
    pub(crate) fn evidence(&mut self) -> Vec<Evidence> {
        let mut turns = Vec::new();
        loop {
            let page = page(self.look());
            page.marker.check().expect("a marker within its limits");
            assert!(page.turns.len() + page.echoed.len() <= 50);
            turns.extend(page.turns);
            if !page.more {
                return turns;
            }
        }
    }
}

/// Says loudly that a test could not be run here.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
pub(crate) fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}
