//! The fast path: finds the lines that must be parsed.
//!
//! Sound, not complete. A line is passed over only if no reading of it, however its keys are
//! ordered, escaped or repeated and however many records stand on it, can be a human record
//! or change what is carried: the bytes that such a record must contain are nowhere on the
//! line, not even behind escapes. Whole stretches are searched at once, so that a line that
//! does not matter is never looked for.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use memchr::memrchr;
use tidings_protocol::Catalog;
use tidings_protocol::marker::Carried;

use super::{claude, codex, openclaw};

/// Bytes that a record which matters may contain.
pub(super) type Needle = LazyLock<Finder<'static>>;

static ESCAPE: Needle = LazyLock::new(|| Finder::new("\\u00"));

/// What to look for.
pub(super) enum Wanted {
    /// Lines with one of these, the most common one first, and those where letters may hide
    /// behind escapes.
    Needles((&'static Needle, [Option<&'static Needle>; 3])),
    /// Every line.
    All,
    /// None.
    Nothing,
}

/// A search through one stretch of lines.
pub(crate) struct Sieve<'a> {
    catalog: Catalog,
    lines: &'a [u8],
    /// Where the first needle stands next; none stands between the last line that was
    /// looked for and here.
    first_at: Option<usize>,
}

impl<'a> Sieve<'a> {
    /// A search through `lines`, each of which ends with LF.
    pub(crate) fn new(catalog: Catalog, lines: &'a [u8]) -> Self {
        Self {
            catalog,
            lines,
            first_at: None,
        }
    }

    /// Where the next line begins, at `from` or behind it, that must be parsed; the end
    /// where there is none. `from` is the beginning of a line.
    pub(crate) fn next(&mut self, from: usize, carried: &Carried) -> usize {
        let wanted = match self.catalog {
            Catalog::Claude => claude::wanted(),
            Catalog::Codex => codex::wanted(carried),
            Catalog::Openclaw => openclaw::wanted(carried),
        };
        let needles = match wanted {
            Wanted::Needles(needles) => needles,
            Wanted::All => return from,
            Wanted::Nothing => return self.lines.len(),
        };
        let (first, others) = needles;
        if self.first_at.is_none_or(|at| at < from) {
            let found = first.find(&self.lines[from..]);
            self.first_at = Some(found.map_or(self.lines.len(), |at| from + at));
        }
        // Most bytes stand on lines with the first needle: the others are only looked for
        // before it.
        let mut next = self.line_start(from, self.first_at.unwrap_or(from));
        for needle in others.into_iter().flatten() {
            if let Some(found) = needle.find(&self.lines[from..next]) {
                next = self.line_start(from, from + found);
            }
        }
        if let Some(found) = next_hidden_letter(&self.lines[from..next]) {
            next = self.line_start(from, from + found);
        }
        next
    }

    fn line_start(&self, from: usize, at: usize) -> usize {
        if at == self.lines.len() {
            return at;
        }
        memrchr(b'\n', &self.lines[from..at]).map_or(from, |end| from + end + 1)
    }
}

/// Where an ASCII letter, digit, `-` or `_` may be written as an escape. No other escape can
/// stand for a byte of a name.
pub(super) fn next_hidden_letter(bytes: &[u8]) -> Option<usize> {
    ESCAPE
        .find_iter(bytes)
        .find(|at| matches!(bytes.get(at + 4), Some(b'2'..=b'7')))
}
