//! Files, places and shorthands for the other modules.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidings_node::tail::{Page, Places, Probe, Reading, Tailer};
use tidings_protocol::marker::FileHint;
use tidings_protocol::report::Echo;
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
