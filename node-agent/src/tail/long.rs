//! A line that does not fit into a window, read as a stream.

use std::fs::File;
use std::io;

use memchr::memchr;
use tidings_protocol::Catalog;

use super::glued;
use super::reduce::{Fed, Reducer};

/// Something that a long line was found to hold.
pub(crate) struct LongPiece {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) what: LongWhat,
}

/// What a piece of a long line is.
pub(crate) enum LongWhat {
    /// A record, reduced to what decides.
    Record(Vec<u8>),
    /// Something else, and the name of what is wrong with it.
    Bad(&'static str),
}

/// The place inside a long line; it is kept between two looks at the file.
pub(super) struct LongLine {
    /// Behind the last piece that was handed out.
    pub(super) done: u64,
    /// The digest of the bytes before `done`, as a marker keeps it.
    pub(super) before: [u8; 16],
    /// The next byte to take.
    pub(super) at: u64,
    phase: Phase,
}

enum Phase {
    /// Between records.
    Between,
    /// In a record that begins here, or in an array or a text.
    Record(u64, Box<Reducer>),
    /// Behind the end of one of them, which is handed out when more follows.
    Ended(u64, Box<Reducer>),
    /// In something that is no record and began here.
    Scalar(u64),
    /// What began here is broken: only the line's end helps.
    Torn(u64),
}

/// What became of the bytes that were fed.
pub(super) enum Taken {
    /// All were taken.
    All,
    /// This many were, and a piece is through.
    Piece(usize, LongPiece),
    /// This many were, up to the line's end.
    LineEnd(usize),
}

impl LongLine {
    /// A long line that begins at `start`.
    pub(super) fn new(start: u64, before: [u8; 16]) -> Self {
        Self {
            done: start,
            before,
            at: start,
            phase: Phase::Between,
        }
    }

    /// Takes the next bytes of the file.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Taken {
        let mut used = 0;
        while let Some(&byte) = bytes.get(used) {
            let rest = &bytes[used..];
            match &mut self.phase {
                Phase::Ended(..) => {
                    if let Some(piece) = self.ended() {
                        return Taken::Piece(used, piece);
                    }
                }
                Phase::Between if byte == b'\n' => return Taken::LineEnd(used),
                Phase::Between => used += self.begin(byte),
                Phase::Record(start, reducer) => {
                    let start = *start;
                    let line = memchr(b'\n', rest).map_or(rest, |end| &rest[..end]);
                    match reducer.feed(line) {
                        Fed::Complete(length) => {
                            used += length;
                            self.advance(length);
                            self.complete(start);
                        }
                        Fed::All if line.len() < rest.len() => {
                            used += line.len();
                            self.advance(line.len());
                            self.phase = Phase::Torn(start);
                        }
                        Fed::All => {
                            used += line.len();
                            self.advance(line.len());
                        }
                        Fed::Broken => self.phase = Phase::Torn(start),
                    }
                }
                Phase::Scalar(start) => {
                    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.') {
                        used += 1;
                        self.advance(1);
                    } else {
                        let piece = LongPiece {
                            start: *start,
                            end: self.at,
                            what: LongWhat::Bad("not-an-object"),
                        };
                        self.phase = Phase::Between;
                        return Taken::Piece(used, piece);
                    }
                }
                Phase::Torn(_) => {
                    let length = memchr(b'\n', rest);
                    used += length.unwrap_or(rest.len());
                    self.advance(length.unwrap_or(rest.len()));
                    if length.is_some() {
                        return Taken::LineEnd(used);
                    }
                }
            }
        }
        Taken::All
    }

    /// The record that is complete, though nothing has followed it yet.
    pub(super) fn ended(&mut self) -> Option<LongPiece> {
        match std::mem::replace(&mut self.phase, Phase::Between) {
            Phase::Ended(start, reducer) => Some(LongPiece {
                start,
                end: self.at,
                what: reducer
                    .into_record()
                    .map_or(LongWhat::Bad("not-an-object"), LongWhat::Record),
            }),
            other => {
                self.phase = other;
                None
            }
        }
    }

    /// Where something stands that is not complete.
    pub(super) fn unfinished(&self) -> Option<(u64, u64)> {
        match self.phase {
            Phase::Record(start, _) | Phase::Scalar(start) | Phase::Torn(start) => {
                Some((start, self.at))
            }
            Phase::Between | Phase::Ended(..) => None,
        }
    }

    /// What is left at the line's end: a torn record, and maybe a whole one behind it.
    pub(super) fn finish(
        &mut self,
        file: &File,
        catalog: Option<Catalog>,
    ) -> io::Result<Vec<LongPiece>> {
        let Phase::Torn(start) = self.phase else {
            return Ok(Vec::new());
        };
        self.phase = Phase::Between;
        let glued = match catalog {
            Some(catalog) => glued::find(file, catalog, start, self.at)?,
            None => None,
        };
        let bad = LongPiece {
            start,
            end: glued.as_ref().map_or(self.at, |piece| piece.start),
            what: LongWhat::Bad("not-json"),
        };
        Ok(std::iter::once(bad).chain(glued).collect())
    }

    fn advance(&mut self, bytes: usize) {
        self.at += bytes as u64;
    }

    /// Something begins, or a blank is passed over.
    fn begin(&mut self, byte: u8) -> usize {
        match byte {
            b'{' | b'[' | b'"' => self.phase = Phase::Record(self.at, Box::new(Reducer::new())),
            b'-' | b'a'..=b'z' | b'0'..=b'9' => self.phase = Phase::Scalar(self.at),
            // A byte order mark is passed over byte by byte.
            b' ' | b'\t' | b'\r' | 0 | 0xef | 0xbb | 0xbf => {
                self.advance(1);
                return 1;
            }
            _ => self.phase = Phase::Torn(self.at),
        }
        0
    }

    fn complete(&mut self, start: u64) {
        if let Phase::Record(_, reducer) = std::mem::replace(&mut self.phase, Phase::Between) {
            self.phase = Phase::Ended(start, reducer);
        }
    }
}
