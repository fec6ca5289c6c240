//! The newest records of a page. Lines that nobody needed to judge are only read for their
//! ids and times when that is sure to matter: once per page, and only the last of them.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::RangeInclusive;

use tidings_protocol::digest::{ShortDigest, short};
use tidings_protocol::marker::{MAX_REMEMBERED_IDS, Marker, ThreadFacts};
use tidings_protocol::{Catalog, EpochMs};

use super::backwards::Backwards;
use crate::classify::{Piece, Traces, note_traces, pieces, traces};

/// How many lines are looked at for ids, at most: about every second line of some programs
/// has none.
const MAX_LINES: usize = 2 * MAX_REMEMBERED_IDS;

#[derive(Debug, Clone, Copy)]
enum Entry {
    /// A record that was judged.
    Judged {
        id: Option<ShortDigest>,
        names_version: bool,
    },
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
    pub(super) fn judged(&mut self, id: Option<&str>, names_version: bool) {
        self.push(Entry::Judged {
            id: id.map(|id| short(id.as_bytes())),
            names_version,
        });
    }

    fn push(&mut self, entry: Entry) {
        if self.entries.len() == MAX_LINES {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    /// True when a record of this id was judged lately.
    pub(super) fn contains(&self, id: ShortDigest) -> bool {
        let is_it =
            |entry: &Entry| matches!(entry, Entry::Judged { id: own, .. } if *own == Some(id));
        self.entries.iter().any(is_it)
    }

    /// Keeps what the lines passed over since the last record with a version say about the
    /// thread.
    pub(super) fn catch_up(&self, file: &File, facts: &mut ThreadFacts) {
        if self.catalog != Catalog::Claude {
            return;
        }
        let mut lines_left = MAX_LINES;
        for entry in self.entries.iter().rev() {
            let (start, end) = match entry {
                Entry::Judged { names_version, .. } if *names_version => return,
                Entry::Judged { .. } => continue,
                Entry::Lines(start, end) => (*start, *end),
            };
            let mut lines = Backwards::new(file, start, end);
            while let Some(line) = lines.next().filter(|_| lines_left > 0) {
                lines_left -= 1;
                if let Some(found) = newest_version(self.catalog, line) {
                    return note_traces(&found, facts);
                }
            }
        }
    }

    /// Remembers the newest ids and the latest time in the marker.
    pub(super) fn remember(
        self,
        file: &File,
        plausible: &RangeInclusive<EpochMs>,
        now: EpochMs,
        marker: &mut Marker,
    ) {
        self.catch_up(file, &mut marker.carried.facts);
        let mut ids = Vec::with_capacity(MAX_REMEMBERED_IDS);
        let mut lines_left = MAX_LINES;
        for entry in self.entries.iter().rev() {
            if ids.len() == MAX_REMEMBERED_IDS {
                break;
            }
            let (start, end) = match entry {
                Entry::Judged { id, .. } => {
                    ids.extend(*id);
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
                let at = found
                    .at
                    .filter(|at| plausible.contains(at))
                    .map(|at| at.min(now));
                marker.newest_record_at = marker.newest_record_at.max(at);
            }
        }
        for id in ids.into_iter().rev() {
            marker.records.remember(id, MAX_REMEMBERED_IDS);
        }
    }
}

/// The traces of the last record on a line that names its version.
fn newest_version(catalog: Catalog, line: &[u8]) -> Option<Traces> {
    let traces_of = |piece| match piece {
        Piece::Record { start, end } => Some(traces(catalog, &line[start..end])),
        Piece::Bad { .. } => None,
    };
    let all = pieces(Some(catalog), line).filter_map(traces_of);
    all.filter(|found| found.version.is_some()).last()
}
