//! Classifies a whole file, for people who want to know why.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tidings_protocol::Catalog;
use tidings_protocol::digest::short;
use tidings_protocol::marker::{Carried, Digests, MAX_REMEMBERED_IDS, ThreadFacts};

use super::recognise::recognise;
use super::{
    Before, Earlier, Piece, Record, Ruling, Source, Verdict, another_follows, judge, pieces, settle,
};
use crate::tail::{Lines, LongPiece, LongWhat, OpenFile, Step, TailError, lines_of, open_regular};

#[cfg(test)]
mod windows;

/// How many bytes are looked at for a record that shows which program wrote the file.
const MAX_RECOGNISE_BYTES: u64 = 8 * 1024 * 1024;

const UNKNOWN_FORMAT: Ruling = Ruling::not("unknown-format");

/// Every record of a file with its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileClassification {
    /// The catalog it was read as; none where no known program wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog: Option<Catalog>,
    /// The records, in file order.
    pub records: Vec<ClassifiedRecord>,
}

/// One record and its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassifiedRecord {
    /// The physical line it begins on, from 1; blank lines count.
    pub line: u64,
    /// Where it begins in the file.
    pub byte_start: u64,
    /// Where it ends, its line end not included.
    pub byte_end: u64,
    /// The verdict.
    pub verdict: Verdict,
    /// The rule that gave it.
    pub rule: &'static str,
    /// The program's own id of the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_id: Option<String>,
}

/// Why a file cannot be classified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClassifyFileError {
    /// A directory, a FIFO, a device.
    #[error("{} is not a regular file", path.display())]
    NotRegular {
        /// The file.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something wrote over the file meanwhile; trying again helps.
    #[error("{} changed while it was read", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

/// Classifies every record of the file at `path`, as a transcript of `catalog` or of the
/// program its records show. The end of the file counts as settled.
pub fn classify_file(
    path: &Path,
    catalog: Option<Catalog>,
) -> Result<FileClassification, ClassifyFileError> {
    let open = open_regular(path).map_err(|error| match error {
        TailError::NotRegular { path } => ClassifyFileError::NotRegular { path },
        TailError::Io { path, source } => ClassifyFileError::Io { path, source },
        _ => ClassifyFileError::Io {
            path: path.into(),
            source: io::Error::new(io::ErrorKind::NotFound, "no such file"),
        },
    })?;
    let failed = |source| ClassifyFileError::Io {
        path: path.into(),
        source,
    };
    let catalog = match catalog {
        Some(catalog) => Some(catalog),
        None => catalog_of(&open).map_err(failed)?,
    };
    let mut reader = Reader::new(catalog.map(|catalog| Source::of(catalog, path)));
    let lines = Lines::from(&open, catalog, 0, u64::MAX).map_err(failed)?;
    match reader.read(lines).map_err(failed)? {
        Read::Whole => Ok(FileClassification {
            catalog,
            records: reader.records,
        }),
        Read::Changed => Err(ClassifyFileError::Changed { path: path.into() }),
    }
}

/// The catalog of the first record that shows it.
fn catalog_of(open: &OpenFile) -> io::Result<Option<Catalog>> {
    let mut lines = Lines::from(open, None, 0, MAX_RECOGNISE_BYTES)?;
    loop {
        let found = match lines.next()? {
            Step::Run { bytes, .. } => lines_of(bytes).find_map(|(_, line)| recognise_line(line)),
            Step::Long(piece) => match &piece.what {
                LongWhat::Record(record) => recognise(record),
                LongWhat::Bad(_) => None,
            },
            Step::LongEnd => None,
            Step::Tail { bytes, .. } => return Ok(recognise_line(bytes)),
            Step::Pause | Step::Changed => return Ok(None),
        };
        if found.is_some() {
            return Ok(found);
        }
    }
}

fn recognise_line(line: &[u8]) -> Option<Catalog> {
    pieces(None, line).find_map(|piece| match piece {
        Piece::Record { start, end } => recognise(&line[start..end]),
        Piece::Bad { .. } => None,
    })
}

enum Read {
    Whole,
    Changed,
}

/// Reads a file and judges its records one by one.
struct Reader {
    source: Option<Source>,
    carried: Carried,
    known: Known,
    /// The number of the line that is being read, from 1.
    number: u64,
    records: Vec<ClassifiedRecord>,
}

impl Reader {
    fn new(source: Option<Source>) -> Self {
        Self {
            source,
            carried: Carried::default(),
            known: Known::default(),
            number: 1,
            records: Vec::new(),
        }
    }

    fn read(&mut self, mut lines: Lines<'_>) -> io::Result<Read> {
        loop {
            match lines.next()? {
                Step::Run { start, bytes } => {
                    for (at, line) in lines_of(bytes) {
                        self.line(start + at as u64, line);
                        self.number += 1;
                    }
                }
                Step::Long(piece) => self.long(&piece),
                Step::LongEnd => self.number += 1,
                Step::Tail { start, bytes } => {
                    self.tail(start, bytes);
                    break;
                }
                Step::Pause | Step::Changed => return Ok(Read::Changed),
            }
        }
        if let Some(piece) = lines.long_tail() {
            self.long(&piece);
        }
        if let Some(piece) = lines.unfinished() {
            self.long(&piece);
        }
        while let Some(earlier) = settle(&mut self.carried) {
            self.decided(&earlier);
        }
        Ok(Read::Whole)
    }

    fn line(&mut self, start: u64, line: &[u8]) {
        let catalog = self.source.map(|source| source.catalog);
        for piece in pieces(catalog, line) {
            self.piece(start, line, piece);
        }
    }

    /// The last line, which has no LF: what breaks off may have been meant to go on.
    fn tail(&mut self, start: u64, tail: &[u8]) {
        for piece in pieces(None, tail) {
            let piece = match piece {
                Piece::Bad {
                    start,
                    end,
                    rule: "not-json",
                } => Piece::Bad {
                    start,
                    end,
                    rule: "incomplete",
                },
                piece => piece,
            };
            self.piece(start, tail, piece);
        }
    }

    fn piece(&mut self, start: u64, line: &[u8], piece: Piece) {
        match piece {
            Piece::Record { start: from, end } => {
                let (byte_start, byte_end) = (start + from as u64, start + end as u64);
                self.record(byte_start, byte_end, &line[from..end]);
            }
            Piece::Bad {
                start: from,
                end,
                rule,
            } => self.bad(start + from as u64, start + end as u64, rule),
        }
    }

    fn long(&mut self, piece: &LongPiece) {
        match &piece.what {
            LongWhat::Record(bytes) => self.record(piece.start, piece.end, bytes),
            LongWhat::Bad(rule) => self.bad(piece.start, piece.end, rule),
        }
    }

    fn bad(&mut self, start: u64, end: u64, rule: &'static str) {
        let ruling = if self.source.is_some() {
            Ruling::not(rule)
        } else {
            UNKNOWN_FORMAT
        };
        self.push(start, end, ruling, None);
        for earlier in another_follows(&mut self.carried) {
            self.decided(&earlier);
        }
    }

    fn record(&mut self, start: u64, end: u64, bytes: &[u8]) {
        let Some(source) = self.source else {
            return self.push(start, end, UNKNOWN_FORMAT, None);
        };
        let record = Record { bytes, start, end };
        let judged = judge(source, record, &self.known, &mut self.carried);
        if let Some(id) = &judged.id {
            self.known.remember(id, judged.ruling);
        }
        for earlier in &judged.earlier {
            self.decided(earlier);
        }
        self.push(start, end, judged.ruling, judged.id);
    }

    /// A record that waited has its verdict.
    fn decided(&mut self, earlier: &Earlier) {
        let start = earlier.record.byte_start;
        let waiting = self.records.iter_mut().rev();
        if let Some(record) = waiting.into_iter().find(|own| own.byte_start == start) {
            record.verdict = earlier.ruling.verdict;
            record.rule = earlier.ruling.rule;
        }
    }

    fn push(&mut self, start: u64, end: u64, ruling: Ruling, id: Option<String>) {
        self.records.push(ClassifiedRecord {
            line: self.number,
            byte_start: start,
            byte_end: end,
            verdict: ruling.verdict,
            rule: ruling.rule,
            record_id: id,
        });
    }
}

/// The newest ids, as a marker keeps them.
#[derive(Default)]
struct Known {
    records: Digests,
    human_records: Digests,
}

impl Known {
    fn remember(&mut self, id: &str, ruling: Ruling) {
        let id = short(id.as_bytes());
        self.records.remember(id, MAX_REMEMBERED_IDS);
        if ruling.is_human() {
            self.human_records.remember(id, MAX_REMEMBERED_IDS);
        }
    }
}

impl Before for Known {
    fn knows(&self, id: &str) -> bool {
        let id = short(id.as_bytes());
        self.records.contains(id) || self.human_records.contains(id)
    }

    /// Here every record is judged.
    fn catch_up(&self, _: &mut ThreadFacts) {}
}
