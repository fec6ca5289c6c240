//! Lines from the last to the first.

use std::fs::File;
use std::os::unix::fs::FileExt;

use memchr::memrchr;

/// How much is read at first; then twice as much each time.
const FIRST_BYTES: u64 = 16 * 1024;
/// Up to here: every line is shorter.
const MAX_BYTES: u64 = 1024 * 1024;

/// The lines of a stretch of a file, the last one first.
pub(super) struct Backwards<'f> {
    file: &'f File,
    start: u64,
    /// Where the block begins in the file.
    base: u64,
    /// Lines that have not been handed out; the first may have its beginning before `base`.
    block: Vec<u8>,
    handed_out: Vec<u8>,
    next_bytes: u64,
}

impl<'f> Backwards<'f> {
    /// The lines between `start` and `end`, where whole lines stand.
    pub(super) fn new(file: &'f File, start: u64, end: u64) -> Self {
        Self {
            file,
            start,
            base: end,
            block: Vec::new(),
            handed_out: Vec::new(),
            next_bytes: FIRST_BYTES,
        }
    }

    /// The line before the last one, without its LF; `None` at the beginning, or where the
    /// file cannot be read any more.
    pub(super) fn next(&mut self) -> Option<&[u8]> {
        loop {
            if self.block.last() == Some(&b'\n') {
                self.block.pop();
            }
            let begins = match memrchr(b'\n', &self.block) {
                Some(end) => Some(end + 1),
                None if self.base == self.start && !self.block.is_empty() => Some(0),
                None => None,
            };
            if let Some(begins) = begins {
                self.handed_out = self.block.split_off(begins);
                return Some(&self.handed_out);
            }
            self.read_on()?;
        }
    }

    fn read_on(&mut self) -> Option<()> {
        let length = self.next_bytes.min(self.base - self.start);
        if length == 0 {
            return None;
        }
        self.next_bytes = MAX_BYTES.min(self.next_bytes * 2);
        let mut block = vec![0; usize::try_from(length).ok()?];
        self.file
            .read_exact_at(&mut block, self.base - length)
            .ok()?;
        block.append(&mut self.block);
        self.block = block;
        self.base -= length;
        Some(())
    }
}
