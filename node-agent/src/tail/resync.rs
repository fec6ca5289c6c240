//! After a rewrite: where in the file the records end that were known before.

use std::io;

use tidings_protocol::digest::short;
use tidings_protocol::{Catalog, Marker};

use super::draft::is_known_before;
use super::lines::{KeptLong, Lines, Step, lines_of};
use super::long::LongWhat;
use super::open::OpenFile;
use crate::classify::{Piece, pieces, traces};

/// Looks through a rewritten file for the last record whose id is remembered; it goes on
/// where it stopped.
#[derive(Debug)]
pub(super) struct Scan {
    at: u64,
    long: Option<KeptLong>,
    last_known: Option<u64>,
}

impl Scan {
    /// A scan from `offset` on.
    pub(super) fn from(offset: u64) -> Self {
        Self {
            at: offset,
            long: None,
            last_known: None,
        }
    }

    /// Behind the last remembered record found so far.
    pub(super) fn last_known(&self) -> Option<u64> {
        self.last_known
    }

    /// Looks on, up to the file's end; at most `budget` bytes. True when it got there.
    pub(super) fn run(
        &mut self,
        catalog: Catalog,
        file: &OpenFile,
        marker: &Marker,
        budget: u64,
    ) -> io::Result<bool> {
        let resumed = match self.long.take() {
            Some(kept) => Lines::resume(file, Some(catalog), kept, budget)?,
            None => None,
        };
        let mut lines = match resumed {
            Some(lines) => lines,
            None => Lines::from(file, Some(catalog), self.at, budget)?,
        };
        let mut look = |record: &[u8], end: u64| {
            let id = traces(catalog, record).id;
            if id.is_some_and(|id| is_known_before(marker, short(id.as_bytes()))) {
                self.last_known = Some(end);
            }
        };
        let arrived = loop {
            match lines.next()? {
                Step::Run { start, bytes } => {
                    for (at, line) in lines_of(bytes) {
                        let start = start + at as u64;
                        for piece in pieces(Some(catalog), line) {
                            if let Piece::Record { start: from, end } = piece {
                                look(&line[from..end], start + end as u64);
                            }
                        }
                    }
                }
                Step::Long(piece) => {
                    if let LongWhat::Record(record) = &piece.what {
                        look(record, piece.end);
                    }
                }
                Step::LongEnd => {}
                Step::Tail { .. } => break true,
                Step::Pause | Step::Changed => break false,
            }
        };
        self.at = lines.mark().0;
        self.long = lines.into_long();
        Ok(arrived)
    }
}
