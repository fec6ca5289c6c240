//! The newest records of a page. Lines that nobody needed to judge are only read for their
//! ids and times when that is sure to matter: once per page, and only the last of them.

use std::collections::VecDeque;
use std::fs::File;

use tidings_protocol::digest::{ShortDigest, short};
use tidings_protocol::marker::{MAX_REMEMBERED_IDS, Marker, ThreadFacts};
use tidings_protocol::{Catalog, EpochMs};

use super::backwards::Backwards;
use crate::classify::{note_traces, traces};

/// How many lines are looked at for ids, at most: about every second line of some programs
/// has none.
const MAX_LINES: usize = 2 * MAX_REMEMBERED_IDS;

#[derive(Debug, Clone, Copy)]
enum Entry {
    /// A record that was judged, by its id.
    Judged(ShortDigest),
    /// Lines that were passed over.
    Lines(u64, u64),
}

/// The newest records, oldest first.
#[derive(Debug)]
pub(super) struct Recent {
    catalog: Catalog,
    entries: VecDeque<Entry>,
}

impl Recent {
    pub(super) fn new(catalog: Catalog) -> Self {
        Self {
            catalog,
            entries: VecDeque::new(),
        }
    }

    /// Whole lines were passed over.
    #[inline]
    pub(super) fn passed_over(&mut self, start: u64, end: u64) {
        match self.entries.back_mut() {
            Some(Entry::Lines(_, known_end)) if *known_end == start => *known_end = end,
            _ => self.push(Entry::Lines(start, end)),
        }
    }

    /// A record was judged.
    pub(super) fn judged(&mut self, id: Option<&str>) {
        if let Some(id) = id {
            self.push(Entry::Judged(short(id.as_bytes())));
        }
    }

    fn push(&mut self, entry: Entry) {
        if self.entries.len() == MAX_LINES {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    /// True when a record of this id was judged lately.
    pub(super) fn contains(&self, id: ShortDigest) -> bool {
        let is_it = |entry: &Entry| matches!(entry, Entry::Judged(own) if *own == id);
        self.entries.iter().any(is_it)
    }

    /// Keeps what the lines passed over since the last judged record say about the thread.
    pub(super) fn refresh(&self, file: &File, facts: &mut ThreadFacts) {
        if self.catalog != Catalog::Claude {
            return;
        }
        let Some(Entry::Lines(start, end)) = self.entries.back() else {
            return;
        };
        let mut lines = Backwards::new(file, *start, *end);
        for _ in 0..MAX_LINES {
            let Some(line) = lines.next() else { return };
            let found = traces(self.catalog, line);
            if found.version.is_some() {
                return note_traces(&found, facts);
            }
        }
    }

    /// Remembers the newest ids and the latest time in the marker.
    pub(super) fn remember(self, file: &File, latest: EpochMs, marker: &mut Marker) {
        self.refresh(file, &mut marker.carried.facts);
        let mut ids = Vec::with_capacity(MAX_REMEMBERED_IDS);
        let mut lines_left = MAX_LINES;
        for entry in self.entries.iter().rev() {
            if ids.len() == MAX_REMEMBERED_IDS {
                break;
            }
            let (start, end) = match entry {
                Entry::Judged(id) => {
                    ids.push(*id);
                    continue;
                }
                Entry::Lines(start, end) => (*start, *end),
            };
            let mut lines = Backwards::new(file, start, end);
            while ids.len() < MAX_REMEMBERED_IDS && lines_left > 0 {
                let Some(line) = lines.next() else { break };
                lines_left -= 1;
                let found = traces(self.catalog, line);
                ids.extend(found.id.map(|id| short(id.as_bytes())));
                let at = found.at.filter(|at| *at <= latest);
                marker.newest_record_at = marker.newest_record_at.max(at);
            }
        }
        for id in ids.into_iter().rev() {
            marker.records.remember(id, MAX_REMEMBERED_IDS);
        }
    }
}
