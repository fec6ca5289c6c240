//! One link's place in its file.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidings_protocol::marker::FileHint;
use tidings_protocol::report::{Echo, Inconclusive};
use tidings_protocol::{Catalog, Marker, ThreadId};

use super::draft::{Counting, Draft, Setting, bar_of};
use super::lines::{KeptLong, Lines};
use super::locate::{Located, locate};
use super::open::OpenFile;
use super::reading::{End, read_page};
use super::resync::Scan;
use super::{Page, Probe, Reading};
use crate::classify::Source;

/// How many bytes one call reads, at most: a few hundredths of a second.
const MAX_READ_BYTES: u64 = 64 * 1024 * 1024;
/// A file that has not grown for so long has said what it had to say.
const STILL: Duration = Duration::from_secs(2);
/// When to look again at a file that changed while it was read.
const UNREST: Duration = Duration::from_millis(200);

/// Follows one link's file. Plain state in memory: the file is the queue and the marker the
/// acknowledgement.
pub struct Tailer {
    catalog: Catalog,
    thread: ThreadId,
    path: PathBuf,
    marker: Marker,
    echo: Echo,
    /// Deliveries that suppressed a turn, and where the page ended that reported it.
    used: Vec<(u64, u64)>,
    /// The file's size when it last grew, and when that was.
    size_since: Option<(u64, Duration)>,
    /// The place inside a long line.
    long: Option<KeptLong>,
    /// Looks through a rewritten file.
    scan: Option<Scan>,
}

impl Tailer {
    /// A tailer that goes on from `marker`.
    #[must_use]
    pub fn new(
        catalog: Catalog,
        thread: ThreadId,
        path: PathBuf,
        marker: Marker,
        echo: Echo,
    ) -> Self {
        Self {
            catalog,
            thread,
            path,
            marker,
            echo,
            used: Vec::new(),
            size_since: None,
            long: None,
            scan: None,
        }
    }

    /// The gateway delivered something: what to take for an echo from now on.
    pub fn set_echo(&mut self, echo: Echo) {
        self.used
            .retain(|(delivery, _)| echo.deliveries.iter().any(|d| d.id == *delivery));
        self.echo = echo;
    }

    /// How far the file has been classified, acknowledged or not.
    pub fn marker(&self) -> &Marker {
        &self.marker
    }

    /// Where the file was last seen.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The gateway says from where to go on; what was read beyond is read again.
    pub fn rewind(&mut self, marker: Marker, path: PathBuf) {
        self.used.retain(|(_, page_end)| *page_end <= marker.offset);
        self.marker = marker;
        self.path = path;
        self.long = None;
        self.scan = None;
    }

    /// Looks at the file and classifies what follows the marker: at most 50 items and a
    /// bounded number of bytes. Blocks while it reads.
    pub fn read(&mut self, probe: &Probe<'_>) -> Reading {
        let places = probe.places;
        let located = locate(self.catalog, &self.thread, &self.path, &self.marker, places);
        let read = match located {
            Located::Same(file, path) => {
                self.found_at(path, probe);
                self.go_on(&file, probe)
            }
            Located::Rewritten(file, path) => {
                self.found_at(path, probe);
                self.start_over(&file, probe)
            }
            Located::Gone => return self.gone(probe),
            Located::Unclear(reason) => return Reading::Inconclusive(reason),
        };
        match read {
            Ok(page) => Reading::Page(page),
            Err(_) => Reading::Inconclusive(Inconclusive::ReadFailed),
        }
    }

    fn found_at(&mut self, path: PathBuf, probe: &Probe<'_>) {
        probe.places.found(self.catalog, &path);
        self.path = path;
    }

    /// Nothing of the thread was found.
    fn gone(&mut self, probe: &Probe<'_>) -> Reading {
        self.size_since = None;
        let places = probe.places;
        if !places.root_is_as_last_seen(self.catalog, &self.path) {
            return Reading::Inconclusive(Inconclusive::RootUnavailable);
        }
        if self.marker.file == FileHint::default() {
            return Reading::Inconclusive(Inconclusive::NeverSeen);
        }
        if places.is_stored_otherwise(self.catalog, &self.thread, &self.path) {
            return Reading::Page(self.nothing_new(self.marker.offset));
        }
        Reading::Missing
    }

    /// The file is not what the marker knows: it is read from the start, behind a bar of
    /// what was known before.
    fn start_over(&mut self, file: &OpenFile, probe: &Probe<'_>) -> io::Result<Page> {
        let mut marker = Marker::at_start(self.marker.floor);
        marker.bar = Some(bar_of(&self.marker));
        // What waits was read and has not been reported: it counts now.
        let mut draft = Draft::new(self.setting(file, probe), self.marker.clone(), self.used());
        draft.settle();
        let (old, found) = draft.finish();
        marker.records = old.records;
        marker.human_records = old.human_records;
        marker.newest_record_at = old.newest_record_at;
        marker.carried.counted = old.carried.counted;
        marker.file = file.hint;
        self.marker = marker;
        self.long = None;
        self.scan = None;
        if found.turns.is_empty() && found.echoed.is_empty() {
            return self.go_on(file, probe);
        }
        self.note_used(&found.echoed);
        Ok(Page {
            turns: found.turns,
            echoed: found.echoed,
            more: true,
            ..self.nothing_new(file.size)
        })
    }

    /// Reads on from the marker.
    fn go_on(&mut self, file: &OpenFile, probe: &Probe<'_>) -> io::Result<Page> {
        let still_for = self.still_for(file.size, probe.monotonic);
        if self.marker.bar.is_some() {
            let scan = self
                .scan
                .get_or_insert_with(|| Scan::from(self.marker.offset));
            if !scan.run(self.catalog, file, &self.marker, MAX_READ_BYTES)? {
                return Ok(Page {
                    more: true,
                    ..self.nothing_new(file.size)
                });
            }
        }
        let mut lines = self.lines(file)?;
        let mut draft = Draft::new(self.setting(file, probe), self.marker.clone(), self.used());
        let end = read_page(&mut lines, &mut draft, still_for >= STILL)?;
        let (offset, before) = lines.mark();
        let is_waiting = draft.is_waiting();
        let (mut marker, found) = draft.finish();
        self.long = lines.into_long();
        marker.offset = offset;
        marker.before = before;
        marker.file = file.hint;
        if marker.bar.is_none() {
            self.scan = None;
        }
        self.marker = marker;
        self.note_used(&found.echoed);
        let wait = STILL.saturating_sub(still_for);
        let is_unsettled = end == End::Unsettled || is_waiting;
        Ok(Page {
            turns: found.turns,
            echoed: found.echoed,
            unclassified: found.unclassified,
            more: end == End::More,
            look_again: match end {
                End::Changed => Some(UNREST),
                _ if is_unsettled && !wait.is_zero() => Some(wait),
                _ => None,
            },
            ..self.nothing_new(file.size)
        })
    }

    /// The lines behind the marker, from inside a long one where its place was kept.
    fn lines<'f>(&mut self, file: &'f OpenFile) -> io::Result<Lines<'f>> {
        let catalog = Some(self.catalog);
        let offset = self.marker.offset;
        let kept = self.long.take().filter(|kept| kept.done() == offset);
        if let Some(kept) = kept
            && let Some(lines) = Lines::resume(file, catalog, kept, MAX_READ_BYTES)?
        {
            return Ok(lines);
        }
        Lines::from(file, catalog, offset, MAX_READ_BYTES)
    }

    fn setting<'a>(&'a self, file: &'a OpenFile, probe: &Probe<'_>) -> Setting<'a> {
        Setting {
            file: &file.file,
            source: Source::of(self.catalog, &self.path),
            modified: file.modified,
            now: probe.now,
            echo: &self.echo,
            counting: Counting::Turns,
            last_known: self.scan.as_ref().and_then(Scan::last_known),
        }
    }

    /// For how long the file has had this size.
    fn still_for(&mut self, size: u64, now: Duration) -> Duration {
        match self.size_since {
            Some((known, since)) if known == size => now.saturating_sub(since),
            _ => {
                self.size_since = Some((size, now));
                Duration::ZERO
            }
        }
    }

    fn used(&self) -> Vec<u64> {
        self.used.iter().map(|(message, _)| *message).collect()
    }

    fn note_used(&mut self, echoed: &[u64]) {
        let offset = self.marker.offset;
        let newly = echoed.iter().map(|message| (*message, offset));
        self.used.extend(newly);
    }

    fn nothing_new(&self, size: u64) -> Page {
        Page {
            marker: self.marker.clone(),
            path: self.path.clone(),
            size,
            turns: Vec::new(),
            echoed: Vec::new(),
            unclassified: 0,
            more: false,
            look_again: None,
        }
    }
}

impl std::fmt::Debug for Tailer {
    /// The link's key and what is held of a line stay out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tailer")
            .field("thread", &self.thread)
            .field("path", &self.path)
            .field("offset", &self.marker.offset)
            .finish_non_exhaustive()
    }
}
