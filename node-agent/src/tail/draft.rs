//! A page while it is being made: applies what the classifier finds to the marker.

use std::fs::File;

use memchr::memchr;
use tidings_protocol::digest::{ShortDigest, short};
use tidings_protocol::marker::{Bar, Digests, MAX_REMEMBERED_IDS, ThreadFacts};
use tidings_protocol::report::{Delivery, Echo, Evidence, MAX_RECORD_ID_BYTES, MAX_REPORT_ITEMS};
use tidings_protocol::{EpochMs, Marker};

use super::long::{LongPiece, LongWhat};
use super::recent::Recent;
use crate::classify::{
    Before, Earlier, Judged, Left, Piece, Record, Sieve, Source, Verdict, Words, another_follows,
    cannot_matter, judge, pieces, settle, trimmed_len,
};

/// A record time further ahead than this is a broken clock's.
const MAX_AHEAD_MS: i64 = 24 * 60 * 60 * 1000;
/// A record time before this (2001-09-09, the first of thirteen digits) is no time of any
/// agent program.
const EARLIEST_MS: i64 = 1_000_000_000_000;

/// Whether what is found counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    /// Human records are turns.
    Turns,
    /// Adoption: what was said before never signals.
    Nothing,
}

/// What a draft knows about the file and the world.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) file: &'a File,
    pub(super) source: Source,
    pub(super) modified: EpochMs,
    pub(super) now: EpochMs,
    pub(super) echo: &'a Echo,
    pub(super) counting: Counting,
    /// Behind the last record whose id was remembered before a rewrite.
    pub(super) last_known: Option<u64>,
}

/// What a page has so far.
pub(super) struct Draft<'a> {
    setting: Setting<'a>,
    marker: Marker,
    recent: Recent,
    /// Deliveries that have suppressed a turn already.
    used: Vec<u64>,
    found: Found,
}

/// What a page reports.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) turns: Vec<Evidence>,
    pub(super) echoed: Vec<u64>,
    pub(super) unclassified: u32,
}

impl<'a> Draft<'a> {
    pub(super) fn new(setting: Setting<'a>, marker: Marker, used: Vec<u64>) -> Self {
        Self {
            setting,
            marker,
            recent: Recent::new(setting.source.catalog),
            used,
            found: Found::default(),
        }
    }

    /// True when the next record might bring more items than the page has room for.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        // A waiting record may be decided beside it.
        let most = 1 + usize::from(!self.marker.carried.waiting.is_empty());
        self.items() + most > MAX_REPORT_ITEMS
    }

    fn items(&self) -> usize {
        let unclassified = usize::try_from(self.found.unclassified).unwrap_or(usize::MAX);
        self.found.turns.len() + self.found.echoed.len() + unclassified
    }

    /// True while a record waits for what follows it.
    pub(super) fn is_waiting(&self) -> bool {
        !self.marker.carried.waiting.is_empty()
    }

    /// Takes whole lines. Where the page is full before their end: from where to go on.
    pub(super) fn run(&mut self, start: u64, lines: &[u8]) -> Option<u64> {
        let catalog = self.setting.source.catalog;
        let mut sieve = Sieve::new(catalog, lines);
        let mut at = 0;
        while at < lines.len() {
            if self.is_full() {
                return Some(start + at as u64);
            }
            // Where every record has a part to play, none is passed over in a stretch.
            if self.marker.bar.is_none() && !self.is_waiting() {
                let next = sieve.next(at, &self.marker.carried);
                if next > at {
                    self.recent
                        .passed_over(start + at as u64, start + next as u64);
                    at = next;
                    continue;
                }
            }
            let end = memchr(b'\n', &lines[at..]).map_or(lines.len(), |length| at + length);
            if let Some(stopped) = self.line(start + at as u64, &lines[at..end]) {
                return Some(stopped);
            }
            at = end + 1;
        }
        None
    }

    /// Takes one line, without its LF.
    fn line(&mut self, start: u64, line: &[u8]) -> Option<u64> {
        let catalog = self.setting.source.catalog;
        if self.marker.bar.is_some() || !cannot_matter(catalog, line) {
            return self.parse(start, line);
        }
        self.recent
            .passed_over(start, start + line.len() as u64 + 1);
        if self.is_waiting() && trimmed_len(line) > 0 {
            self.follow();
        }
        None
    }

    fn parse(&mut self, start: u64, line: &[u8]) -> Option<u64> {
        for piece in pieces(Some(self.setting.source.catalog), line) {
            if self.is_full() {
                return Some(start + piece.start() as u64);
            }
            match piece {
                Piece::Record { start: from, end } => self.record(Record {
                    bytes: &line[from..end],
                    start: start + from as u64,
                    end: start + end as u64,
                }),
                Piece::Bad { .. } => self.follow(),
            }
        }
        None
    }

    /// Takes the complete objects of an unterminated last line that does not grow. Gives
    /// where the last one taken ends; what breaks off behind it may still go on.
    pub(super) fn tail(&mut self, start: u64, tail: &[u8]) -> Option<u64> {
        let mut taken = None;
        for piece in pieces(None, tail) {
            match piece {
                Piece::Record { start: from, end } if !self.is_full() => {
                    let end_in_file = start + end as u64;
                    self.record(Record {
                        bytes: &tail[from..end],
                        start: start + from as u64,
                        end: end_in_file,
                    });
                    taken = Some(end_in_file);
                }
                Piece::Record { .. } => break,
                Piece::Bad { .. } => {}
            }
        }
        taken
    }

    /// Takes a piece of a line that was too long for a window.
    pub(super) fn long(&mut self, piece: &LongPiece) {
        match &piece.what {
            LongWhat::Record(bytes) => self.record(Record {
                bytes,
                start: piece.start,
                end: piece.end,
            }),
            LongWhat::Bad(_) => self.follow(),
        }
    }

    /// Something follows that is no record, or one that nobody needs to judge.
    fn follow(&mut self) {
        for earlier in another_follows(&mut self.marker.carried) {
            self.decided(&earlier);
        }
    }

    /// Takes a complete record.
    pub(super) fn record(&mut self, record: Record<'_>) {
        let Setting { file, source, .. } = self.setting;
        let Marker {
            records,
            human_records,
            bar,
            carried,
            ..
        } = &mut self.marker;
        let before = Memory {
            file,
            recent: &self.recent,
            remembered: [
                Some(&*records),
                Some(&*human_records),
                bar.as_ref().map(|bar| &bar.records),
            ],
        };
        let judged = judge(source, record, &before, carried);
        self.apply(record, &judged);
    }

    fn apply(&mut self, record: Record<'_>, judged: &Judged) {
        let at = self.plausible(judged.at);
        let is_barred = self.is_barred(record.end, at);
        self.recent
            .judged(judged.id.as_deref(), judged.names_version);
        // Never after now: a clock that ran ahead must not hide what is said after a rewrite.
        let seen_at = at.map(|at| at.min(self.setting.now));
        self.marker.newest_record_at = self.marker.newest_record_at.max(seen_at);
        for earlier in &judged.earlier {
            self.decided(earlier);
        }
        self.left(judged, is_barred);
        if is_barred {
            // Neither what it says nor the room for the ids from before it is touched.
            return;
        }
        let counts = judged.counts && self.setting.counting == Counting::Turns;
        match judged.ruling.verdict {
            Verdict::NotHuman => {}
            Verdict::Unclassified => self.found.unclassified += u32::from(counts),
            Verdict::Human => {
                if let Some(id) = &judged.id {
                    let id = short(id.as_bytes());
                    self.marker.human_records.remember(id, MAX_REMEMBERED_IDS);
                }
                let at = at.unwrap_or(self.setting.modified);
                let echo_of = self.echo_of(&judged.words, at);
                let evidence = Evidence {
                    byte_start: record.start,
                    byte_end: record.end,
                    record_id: judged.id.as_deref().map(shown_id),
                    rule: judged.ruling.rule.to_owned(),
                    at,
                };
                self.turn(evidence, echo_of, counts);
            }
        }
    }

    /// A time stamp, unless no clock of ours can have shown it.
    fn plausible(&self, at: Option<EpochMs>) -> Option<EpochMs> {
        let latest = self.setting.now.saturating_add(MAX_AHEAD_MS);
        at.filter(|at| (EARLIEST_MS..=latest).contains(at))
    }

    /// What the record left behind in the carried state.
    fn left(&mut self, judged: &Judged, is_barred: bool) {
        let at = self.plausible(judged.at).unwrap_or(self.setting.modified);
        let echo_of = self.echo_of(&judged.words, at);
        let floor = self.marker.floor;
        let carried = &mut self.marker.carried;
        match judged.left {
            Left::Nothing => {}
            Left::QueueItem => {
                if let Some(item) = carried.queue.0.last_mut() {
                    // Its end may come without its text: then it is known to be an echo.
                    item.counts = echo_of.is_none() && (!is_barred || item.queued_at > floor);
                }
            }
            Left::Waiting => {
                if let Some(waiting) = carried.waiting.last_mut() {
                    waiting.echo_of = echo_of;
                    waiting.counts = !is_barred;
                }
            }
        }
    }

    /// A waiting record was decided.
    fn decided(&mut self, earlier: &Earlier) {
        if !earlier.ruling.is_human() {
            return;
        }
        let record = &earlier.record;
        let evidence = Evidence {
            byte_start: record.byte_start,
            byte_end: record.byte_end,
            record_id: None,
            rule: earlier.ruling.rule.to_owned(),
            at: self.plausible(record.at).unwrap_or(self.setting.modified),
        };
        let counts = record.counts && self.setting.counting == Counting::Turns;
        self.turn(evidence, record.echo_of, counts);
    }

    /// A human turn, or the echo of what the gateway said. Each delivery suppresses one.
    fn turn(&mut self, evidence: Evidence, echo_of: Option<u64>, counts: bool) {
        match echo_of.filter(|delivery| !self.used.contains(delivery)) {
            Some(delivery) => {
                self.used.push(delivery);
                self.found.echoed.push(delivery);
            }
            None if counts => self.found.turns.push(evidence),
            None => {}
        }
    }

    fn echo_of(&self, words: &Words, at: EpochMs) -> Option<u64> {
        let echo = self.setting.echo;
        if words.is_empty() || echo.deliveries.is_empty() {
            return None;
        }
        let digest = words.echo_digest(&echo.key);
        let is_echo =
            |d: &&Delivery| d.digest == digest && d.at <= at && !self.used.contains(&d.id);
        echo.deliveries.iter().find(is_echo).map(|d| d.id)
    }

    /// True for a record that a rewrite brought back. The bar falls behind the last record
    /// that is remembered, or before the first that is later than all of them.
    fn is_barred(&mut self, end: u64, at: Option<EpochMs>) -> bool {
        let Some(bar) = &self.marker.bar else {
            return false;
        };
        let (is_barred, falls) = if let Some(last) = self.setting.last_known {
            (true, end >= last)
        } else {
            let newest = bar.newest_record_at.unwrap_or(self.marker.floor);
            // One without a time is as old as the file, which says nothing of the others:
            // it passes the bar and leaves it standing.
            let is_later = at.unwrap_or(self.setting.modified) > newest;
            (!is_later, is_later && at.is_some())
        };
        if falls {
            self.marker.bar = None;
        }
        is_barred
    }

    /// Nothing follows for now: waiting records count, as far as the page has room.
    pub(super) fn settle(&mut self) {
        while self.items() < MAX_REPORT_ITEMS {
            let Some(earlier) = settle(&mut self.marker.carried) else {
                return;
            };
            self.decided(&earlier);
        }
    }

    /// The marker behind the page, but for its place, and what was found.
    pub(super) fn finish(mut self) -> (Marker, Found) {
        let now = self.setting.now;
        let plausible = EARLIEST_MS..=now.saturating_add(MAX_AHEAD_MS);
        self.recent
            .remember(self.setting.file, &plausible, now, &mut self.marker);
        (self.marker, self.found)
    }
}

/// What a page and its marker remember.
struct Memory<'a> {
    file: &'a File,
    recent: &'a Recent,
    remembered: [Option<&'a Digests>; 3],
}

impl Before for Memory<'_> {
    fn knows(&self, id: &str) -> bool {
        let id = short(id.as_bytes());
        let mut remembered = self.remembered.iter().flatten();
        remembered.any(|ids| ids.contains(id)) || self.recent.contains(id)
    }

    fn catch_up(&self, facts: &mut ThreadFacts) {
        self.recent.catch_up(self.file, facts);
    }
}

/// What a rewritten file must pass: what was remembered before it.
pub(super) fn bar_of(marker: &Marker) -> Bar {
    match &marker.bar {
        // Not passed yet: the older one still holds.
        Some(bar) => bar.clone(),
        None => Bar {
            records: marker.records.clone(),
            newest_record_at: marker.newest_record_at,
        },
    }
}

/// True when the id was remembered before a rewrite.
pub(super) fn is_known_before(marker: &Marker, id: ShortDigest) -> bool {
    let in_bar = marker.bar.as_ref();
    in_bar.is_some_and(|bar| bar.records.contains(id)) || marker.human_records.contains(id)
}

/// A record id as evidence: one line, cut to its limit.
fn shown_id(id: &str) -> String {
    let mut shown = String::new();
    for c in id.chars().filter(|c| !c.is_control()) {
        if shown.len() + c.len_utf8() > MAX_RECORD_ID_BYTES {
            break;
        }
        shown.push(c);
    }
    shown
}
