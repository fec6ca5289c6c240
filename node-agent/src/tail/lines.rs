//! A file line by line, through a window of bounded size.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use memchr::{memchr_iter, memrchr};
use tidings_protocol::Catalog;
use tidings_protocol::marker::{DIGEST_SPAN_BYTES, digest_before};

use super::long::{LongLine, LongPiece, Taken};
use super::open::OpenFile;
use crate::classify::trimmed_len;

/// The longest line that is held in memory; a longer one is read as a stream.
const MAX_WINDOW_BYTES: usize = 1024 * 1024;
/// How much is read at once: small enough that the bytes are still in the processor's cache
/// when they are looked at.
const READ_BYTES: usize = 256 * 1024;
/// How much before a window is read again to see that nothing changed meanwhile.
const SPAN_BYTES: usize = 1024;
const _: () = assert!(SPAN_BYTES as u64 == DIGEST_SPAN_BYTES);

/// How much is held in memory and read at once.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    window: usize,
    read: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            window: MAX_WINDOW_BYTES,
            read: READ_BYTES,
        }
    }
}

/// What comes next in a file.
pub(crate) enum Step<'l> {
    /// Whole lines, each with its LF.
    Run {
        /// Where they begin.
        start: u64,
        /// What they hold.
        bytes: &'l [u8],
    },
    /// A piece of a line that is too long for a window.
    Long(LongPiece),
    /// The end of such a line.
    LongEnd,
    /// The end, and what stands behind the last LF.
    Tail {
        /// Where it begins.
        start: u64,
        /// What it holds; nothing where it is too long for a window.
        bytes: &'l [u8],
    },
    /// Enough was read for one call.
    Pause,
    /// The file changed while it was read: what was handed out before is still true.
    Changed,
}

/// The lines of a run, without their LFs, and where each begins in it.
pub(crate) fn lines_of(run: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut start = 0;
    memchr_iter(b'\n', run).map(move |end| {
        let line = (start, &run[start..end]);
        start = end + 1;
        line
    })
}

/// A place in a file.
pub(crate) struct Lines<'f> {
    file: &'f File,
    catalog: Option<Catalog>,
    /// Nothing behind this is read.
    size: u64,
    budget: u64,
    sizes: Sizes,
    window: Vec<u8>,
    /// How much of the window holds bytes of the file.
    filled: usize,
    /// Where the window begins in the file.
    base: u64,
    /// The first byte in the window that was not handed out.
    start: usize,
    /// No LF stands between `start` and here.
    searched: usize,
    long: Option<LongLine>,
    /// Pieces of a long line's end that wait to be handed out, the last one first.
    pieces: Vec<LongPiece>,
    /// A long line has ended, and that was not said yet.
    long_ended: bool,
}

impl<'f> Lines<'f> {
    /// The lines from `offset` on, up to the end the file had when it was opened; at most
    /// `budget` bytes are read.
    pub(crate) fn from(
        open: &'f OpenFile,
        catalog: Option<Catalog>,
        offset: u64,
        budget: u64,
    ) -> io::Result<Self> {
        let span = offset.min(DIGEST_SPAN_BYTES);
        let base = offset - span;
        let mut window = vec![0; usize::try_from(span).unwrap_or(SPAN_BYTES)];
        open.file.read_exact_at(&mut window, base)?;
        let start = window.len();
        Ok(Self {
            file: &open.file,
            catalog,
            size: open.size,
            budget,
            sizes: Sizes::default(),
            window,
            filled: start,
            base,
            start,
            searched: start,
            long: None,
            pieces: Vec::new(),
            long_ended: false,
        })
    }

    /// The same through windows of another size, read in parts of another size.
    #[cfg(test)]
    pub(crate) fn through(mut self, window: usize, read: usize) -> Self {
        self.sizes = Sizes { window, read };
        self
    }

    /// Goes on inside a long line whose place was kept.
    pub(super) fn resume(
        open: &'f OpenFile,
        catalog: Option<Catalog>,
        kept: KeptLong,
        budget: u64,
    ) -> io::Result<Option<Self>> {
        if open.size < kept.long.at {
            return Ok(None);
        }
        let mut lines = Self::from(open, catalog, kept.long.at, budget)?;
        if lines.span() != kept.span {
            return Ok(None);
        }
        lines.long = Some(kept.long);
        Ok(Some(lines))
    }

    /// Behind everything that was handed out, and the digest of the bytes before it.
    pub(super) fn mark(&self) -> (u64, [u8; 16]) {
        match &self.long {
            Some(long) => (long.done, long.before),
            None => (self.base + self.start as u64, digest_before(self.span())),
        }
    }

    /// The place inside a long line, if the window's end is inside one.
    pub(super) fn into_long(mut self) -> Option<KeptLong> {
        let long = self.long.take().filter(|_| self.pieces.is_empty())?;
        let span = self.span().to_vec();
        Some(KeptLong { long, span })
    }

    /// Goes back to `offset`, inside what was handed out last; or takes a part of the tail.
    pub(crate) fn go_to(&mut self, offset: u64) {
        let at = usize::try_from(offset - self.base).unwrap_or(self.start);
        self.start = at.min(self.filled);
        self.searched = self.start;
    }

    /// True when something behind the last LF was not handed out.
    pub(super) fn has_tail(&self) -> bool {
        self.long.is_some() || trimmed_len(&self.window[self.start..self.filled]) > 0
    }

    /// What a long last line ends with that is no record, as far as it goes.
    pub(crate) fn unfinished(&self) -> Option<LongPiece> {
        self.long.as_ref()?.unfinished()
    }

    /// The record that ends a long tail, if it is complete.
    pub(crate) fn long_tail(&mut self) -> Option<LongPiece> {
        let piece = self.long.as_mut()?.ended()?;
        self.is_out(&piece);
        Some(piece)
    }

    /// What comes next.
    pub(crate) fn next(&mut self) -> io::Result<Step<'_>> {
        loop {
            if let Some(step) = self.next_long()? {
                return Ok(step);
            }
            if self.long.is_none() {
                let unsearched = &self.window[self.searched..self.filled];
                if let Some(last) = memrchr(b'\n', unsearched) {
                    let start = self.start;
                    self.start = self.searched + last + 1;
                    self.searched = self.start;
                    return Ok(Step::Run {
                        start: self.base + start as u64,
                        bytes: &self.window[start..self.start],
                    });
                }
                self.searched = self.filled;
            }
            if self.base + self.filled as u64 >= self.size {
                return Ok(self.tail());
            }
            if self.long.is_none() && self.filled - self.start >= self.sizes.window {
                let (start, before) = self.mark();
                self.long = Some(LongLine::new(start, before));
                continue;
            }
            if self.budget == 0 {
                return Ok(Step::Pause);
            }
            if !self.fill()? {
                return Ok(Step::Changed);
            }
        }
    }

    /// Goes on in a long line, as far as the window reaches.
    fn next_long(&mut self) -> io::Result<Option<Step<'static>>> {
        if std::mem::take(&mut self.long_ended) {
            return Ok(Some(Step::LongEnd));
        }
        let Some(long) = &mut self.long else {
            return Ok(None);
        };
        if self.pieces.is_empty() {
            match long.feed(&self.window[self.start..self.filled]) {
                Taken::All => {
                    self.start = self.filled;
                    self.searched = self.filled;
                    return Ok(None);
                }
                Taken::Piece(used, piece) => {
                    self.start += used;
                    self.is_out(&piece);
                    return Ok(Some(Step::Long(piece)));
                }
                Taken::LineEnd(used) => {
                    self.start += used;
                    self.pieces = long.finish(self.file, self.catalog)?;
                    self.pieces.reverse();
                }
            }
        }
        let piece = self.pieces.pop();
        if self.pieces.is_empty() {
            // Behind the LF it goes on line by line.
            self.long = None;
            self.start += 1;
            self.searched = self.start;
            self.long_ended = piece.is_some();
        }
        Ok(Some(piece.map_or(Step::LongEnd, Step::Long)))
    }

    /// The piece, which ends at the window's `start`, counts as handed out.
    fn is_out(&mut self, piece: &LongPiece) {
        let before = digest_before(self.span());
        if let Some(long) = &mut self.long {
            long.done = piece.end;
            long.before = before;
        }
    }

    fn tail(&self) -> Step<'_> {
        let bytes = if self.long.is_some() {
            &[][..]
        } else {
            &self.window[self.start..self.filled]
        };
        Step::Tail {
            start: self.mark().0,
            bytes,
        }
    }

    /// The bytes before the first one that was not handed out.
    fn span(&self) -> &[u8] {
        &self.window[self.start.saturating_sub(SPAN_BYTES)..self.start]
    }

    /// Reads on. False when the file is no longer what it was; nothing was taken then.
    fn fill(&mut self) -> io::Result<bool> {
        let surplus = self.start.saturating_sub(SPAN_BYTES);
        self.window.copy_within(surplus..self.filled, 0);
        self.base += surplus as u64;
        self.filled -= surplus;
        self.start -= surplus;
        self.searched -= surplus;

        let held = self.filled - self.start;
        let left = self.size - (self.base + self.filled as u64);
        let Sizes { window, read } = self.sizes;
        let wanted = read
            .min(window.saturating_sub(held).max(1))
            .min(usize::try_from(left).unwrap_or(read));
        if self.window.len() < self.filled + wanted {
            self.window.resize(self.filled + wanted, 0);
        }
        let at = self.base + self.filled as u64;
        let target = &mut self.window[self.filled..self.filled + wanted];
        let read = self.file.read_at(target, at)?;
        if read == 0 || !self.is_unchanged()? {
            return Ok(false);
        }
        self.filled += read;
        self.budget = self.budget.saturating_sub(read as u64);
        Ok(true)
    }

    /// Reads the beginning of the window once more and compares.
    fn is_unchanged(&self) -> io::Result<bool> {
        let mut again = [0; SPAN_BYTES];
        let length = self.filled.min(SPAN_BYTES);
        let again = &mut again[..length];
        match self.file.read_exact_at(again, self.base) {
            Ok(()) => Ok(again == &self.window[..length]),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// A place inside a long line, and the bytes before it.
pub(super) struct KeptLong {
    long: LongLine,
    span: Vec<u8>,
}

impl KeptLong {
    /// Behind everything that was handed out of the line.
    pub(super) fn done(&self) -> u64 {
        self.long.done
    }
}

impl std::fmt::Debug for KeptLong {
    /// The bytes are what somebody wrote.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptLong")
            .field("at", &self.long.at)
            .finish_non_exhaustive()
    }
}
