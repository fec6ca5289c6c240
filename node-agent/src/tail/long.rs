//! A line that does not fit into a window, read as a stream.

use std::fs::File;
use std::io;

use memchr::memchr;
use tidings_protocol::Catalog;

use super::glued;
use super::reduce::{Fed, Reducer, Scalar};
use crate::classify::trimmed_len;

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
    /// Behind the last byte that was neither a blank nor NUL.
    solid: u64,
    phase: Phase,
}

enum Phase {
    /// Between records.
    Between,
    /// In what began here and so far is a byte order mark, less this.
    Mark(u64, &'static [u8]),
    /// In a record that begins here, or in an array or a text.
    Record(u64, Box<Reducer>),
    /// Behind the end of one of them, which is handed out when more follows.
    Ended(u64, Box<Reducer>),
    /// In a number or literal that began here.
    Scalar(u64, Scalar),
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
            solid: start,
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
                Phase::Between => used += self.begin(rest),
                Phase::Mark(start, left) => {
                    let start = *start;
                    match left.split_first() {
                        Some((next, left)) if *next == byte => {
                            self.phase = Phase::Mark(start, left);
                            used += self.take(&rest[..1]);
                        }
                        Some(_) => self.phase = Phase::Torn(start),
                        None => self.phase = Phase::Between,
                    }
                }
                Phase::Record(start, reducer) => {
                    let start = *start;
                    let line = memchr(b'\n', rest).map_or(rest, |end| &rest[..end]);
                    match reducer.feed(line) {
                        Fed::Complete(length) => {
                            used += self.take(&line[..length]);
                            self.complete(start);
                        }
                        Fed::All if line.len() < rest.len() => {
                            used += self.take(line);
                            self.phase = Phase::Torn(start);
                        }
                        Fed::All => used += self.take(line),
                        Fed::Broken => self.phase = Phase::Torn(start),
                    }
                }
                Phase::Scalar(start, scalar) => {
                    let start = *start;
                    if Scalar::may_go_on_with(byte) {
                        self.phase = match scalar.then(byte) {
                            Some(scalar) => Phase::Scalar(start, scalar),
                            None => Phase::Torn(start),
                        };
                        used += self.take(&rest[..1]);
                    } else if scalar.is_whole() && may_follow_scalar(byte) {
                        let piece = LongPiece {
                            start,
                            end: self.at,
                            what: LongWhat::Bad("not-an-object"),
                        };
                        self.phase = Phase::Between;
                        return Taken::Piece(used, piece);
                    } else {
                        self.phase = Phase::Torn(start);
                    }
                }
                Phase::Torn(_) => {
                    let line = memchr(b'\n', rest).map_or(rest, |end| &rest[..end]);
                    used += self.take(line);
                    if line.len() < rest.len() {
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

    /// What stands at the end and is no record, as far as it goes.
    pub(super) fn unfinished(&self) -> Option<LongPiece> {
        let (start, rule) = match self.phase {
            Phase::Scalar(start, scalar) if scalar.is_whole() => (start, "not-an-object"),
            Phase::Mark(_, []) | Phase::Between | Phase::Ended(..) => return None,
            Phase::Mark(start, _)
            | Phase::Record(start, _)
            | Phase::Scalar(start, _)
            | Phase::Torn(start) => (start, "incomplete"),
        };
        Some(LongPiece {
            start,
            end: self.solid,
            what: LongWhat::Bad(rule),
        })
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
            end: glued.as_ref().map_or(self.solid, |piece| piece.start),
            what: LongWhat::Bad("not-json"),
        };
        Ok(std::iter::once(bad).chain(glued).collect())
    }

    /// Passes over bytes; gives how many.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let solid = trimmed_len(bytes);
        if solid > 0 {
            self.solid = self.at + solid as u64;
        }
        self.at += bytes.len() as u64;
        bytes.len()
    }

    /// Something begins, or a blank is passed over.
    fn begin(&mut self, bytes: &[u8]) -> usize {
        let byte = bytes[0];
        match byte {
            b'{' | b'[' | b'"' => self.phase = Phase::Record(self.at, Box::new(Reducer::new())),
            b' ' | b'\t' | b'\r' | 0 => return self.take(padding(bytes)),
            0xef => {
                self.phase = Phase::Mark(self.at, b"\xbb\xbf");
                return self.take(&bytes[..1]);
            }
            _ => match Scalar::begin(byte) {
                Some(scalar) => {
                    self.phase = Phase::Scalar(self.at, scalar);
                    return self.take(&bytes[..1]);
                }
                None => self.phase = Phase::Torn(self.at),
            },
        }
        0
    }

    fn complete(&mut self, start: u64) {
        if let Phase::Record(_, reducer) = std::mem::replace(&mut self.phase, Phase::Between) {
            self.phase = Phase::Ended(start, reducer);
        }
    }
}

/// The blanks and NULs at the beginning, up to the line's end.
fn padding(bytes: &[u8]) -> &[u8] {
    let is_padding = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | 0);
    let length = bytes.iter().position(|byte| !is_padding(byte));
    &bytes[..length.unwrap_or(bytes.len())]
}

/// As the parser of lines in memory has it: what may stand behind a number or literal.
fn may_follow_scalar(byte: u8) -> bool {
    b" \n\t\r\"[]{},:".contains(&byte)
}
