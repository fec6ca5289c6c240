//! Where everything is in a transcript, without holding any of it: made in one pass of bounded
//! memory, continued where the file has grown.

use std::collections::HashMap;
use std::io::{self, Read};

use memchr::memchr;

use super::line::{self, Kind, Line, Parent};

/// How much is read at once.
const BLOCK_BYTES: usize = 256 * 1024;
/// A longer line is not kept whole while it is read.
const MAX_KEPT_BYTES: usize = 1024 * 1024;
/// Of such a line this much is looked at.
const HEAD_BYTES: usize = 16 * 1024;
/// So many bytes before the end tell whether the file is still the same.
const TAIL_BYTES: usize = 1024;

/// An entry of one index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryRef(u32);

/// Where an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Where its line begins.
    pub offset: u64,
    /// How long that is, without the line end.
    pub length: u64,
    /// What it is.
    pub kind: Kind,
}

/// How much there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries, the header not counted.
    pub entries: u64,
    /// Messages of a person.
    pub user: u64,
    /// Messages of the model.
    pub assistant: u64,
    /// Results of tools.
    pub tool_results: u64,
    /// Compactions.
    pub compactions: u64,
    /// Lines that are no records: skipped.
    pub broken: u64,
}

/// What the model sees of a branch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Visible {
    /// The compaction whose summary comes first.
    pub summary: Option<EntryRef>,
    /// The entries that follow, in order.
    pub entries: Vec<EntryRef>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Slot {
    place: Place,
    parent: Option<EntryRef>,
    first_kept: Option<EntryRef>,
}

/// Where everything is in a transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    slots: Vec<Slot>,
    by_id: HashMap<Box<str>, EntryRef>,
    header: Option<Place>,
    counts: Counts,
    // How far the file was read: behind the last whole line.
    end: u64,
    // The last line has no line end yet.
    is_open: bool,
    tail: Vec<u8>,
}

impl Index {
    /// Reads a transcript from its beginning.
    pub fn read(file: &mut impl Read) -> io::Result<Self> {
        let mut index = Self::default();
        index.read_on(file)?;
        Ok(index)
    }

    /// Reads on from [`Index::end`].
    pub(super) fn read_on(&mut self, file: &mut impl Read) -> io::Result<()> {
        let mut block = vec![0; BLOCK_BYTES];
        let mut line = Gathered::at(self.end);
        loop {
            let length = match file.read(&mut block) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let mut rest = &block[..length];
            while let Some(at) = memchr(b'\n', rest) {
                line.take(&rest[..at]);
                self.add_line(&line);
                self.advance(&line, b"\n");
                line = Gathered::at(self.end);
                rest = &rest[at + 1..];
            }
            line.take(rest);
        }
        self.is_open = !line.is_blank() && line.read().is_some();
        if self.is_open {
            self.add_line(&line);
            self.advance(&line, b"");
        }
        Ok(())
    }

    fn advance(&mut self, line: &Gathered, line_end: &[u8]) {
        self.end += line.length + line_end.len() as u64;
        self.tail.extend_from_slice(line.last());
        self.tail.extend_from_slice(line_end);
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
    }

    fn add_line(&mut self, gathered: &Gathered) {
        if gathered.is_blank() {
            return;
        }
        let Some(line) = gathered.read() else {
            self.counts.broken += 1;
            return;
        };
        let place = Place {
            offset: gathered.offset,
            length: gathered.length,
            kind: line.kind,
        };
        if line.kind == Kind::Session {
            self.header.get_or_insert(place);
            return;
        }
        self.count(line.kind);
        let previous = self.leaf();
        let slot = Slot {
            place,
            parent: self.parent_of(&line, previous),
            first_kept: line.first_kept.as_deref().and_then(|id| self.find(id)),
        };
        // Four thousand million lines would be a file of a terabyte.
        let Ok(number) = u32::try_from(self.slots.len()) else {
            return;
        };
        self.slots.push(slot);
        if let Some(id) = line.id {
            self.by_id.insert(id.into(), EntryRef(number));
        }
    }

    /// An entry that does not say what it follows, or names what is not there, follows the
    /// line before it: so a transcript of an older layout is one branch, and one that lost a
    /// line does not lose all before it. A parent stands before its child, so there is no
    /// circle.
    fn parent_of(&self, line: &Line<'_>, previous: Option<EntryRef>) -> Option<EntryRef> {
        match &line.parent {
            Parent::Nothing => None,
            Parent::Entry(id) => self.find(id).or(previous),
            Parent::Unsaid => previous,
        }
    }

    fn count(&mut self, kind: Kind) {
        self.counts.entries += 1;
        match kind {
            Kind::User => self.counts.user += 1,
            Kind::Assistant => self.counts.assistant += 1,
            Kind::ToolResult => self.counts.tool_results += 1,
            Kind::Compaction => self.counts.compactions += 1,
            _ => {}
        }
    }

    /// How far the file was read.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// True where `before` stands before the end, and `next` right behind it: then the file
    /// has only grown.
    pub(super) fn is_continued_by(&self, before: &[u8], next: Option<u8>) -> bool {
        before == self.tail && (!self.is_open || next.is_none_or(|next| next == b'\n'))
    }

    /// How many bytes before the end [`Index::is_continued_by`] asks for.
    pub(super) fn tail_bytes(&self) -> usize {
        self.tail.len()
    }

    /// How much there is.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The header, where there is one.
    #[must_use]
    pub fn header(&self) -> Option<Place> {
        self.header
    }

    /// The entry with this id; the last one where several have it.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<EntryRef> {
        self.by_id.get(id).copied()
    }

    /// Where an entry is.
    #[must_use]
    pub fn place(&self, entry: EntryRef) -> Option<Place> {
        self.slot(entry).map(|slot| slot.place)
    }

    /// The last entry: the active branch ends there.
    #[must_use]
    pub fn leaf(&self) -> Option<EntryRef> {
        let last = self.slots.len().checked_sub(1)?;
        u32::try_from(last).ok().map(EntryRef)
    }

    /// The entry whose line ends here.
    #[must_use]
    pub fn ending_at(&self, end: u64) -> Option<EntryRef> {
        let ends = |slot: &Slot| slot.place.offset + slot.place.length;
        let at = self.slots.binary_search_by_key(&end, ends).ok()?;
        u32::try_from(at).ok().map(EntryRef)
    }

    /// The branch that ends in an entry, from its beginning.
    #[must_use]
    pub fn branch(&self, leaf: EntryRef) -> Vec<EntryRef> {
        let mut branch = Vec::new();
        let mut at = Some(leaf);
        while let Some((entry, slot)) = at.and_then(|at| Some((at, self.slot(at)?))) {
            branch.push(entry);
            at = slot.parent;
        }
        branch.reverse();
        branch
    }

    /// The branch that the next message continues.
    #[must_use]
    pub fn active_branch(&self) -> Vec<EntryRef> {
        self.leaf()
            .map(|leaf| self.branch(leaf))
            .unwrap_or_default()
    }

    /// The entries that follow an entry directly: more than one where a branch begins.
    #[must_use]
    pub fn children(&self, parent: Option<EntryRef>) -> Vec<EntryRef> {
        let numbered = (0..).map(EntryRef).zip(&self.slots);
        let of_parent = numbered.filter(|(_, slot)| slot.parent == parent);
        of_parent.map(|(entry, _)| entry).collect()
    }

    /// What the model sees of a branch: the newest summary, what was kept beside it, and what
    /// came after.
    #[must_use]
    pub fn visible(&self, branch: &[EntryRef]) -> Visible {
        let kind = |entry: &EntryRef| self.slot(*entry).map(|slot| slot.place.kind);
        let is_seen = |entry: &EntryRef| kind(entry).is_some_and(Kind::is_in_context);
        let compaction = |entry: &EntryRef| kind(entry) == Some(Kind::Compaction);
        let Some(at) = branch.iter().rposition(compaction) else {
            return Visible {
                summary: None,
                entries: branch.iter().copied().filter(is_seen).collect(),
            };
        };
        let first_kept = self.slot(branch[at]).and_then(|slot| slot.first_kept);
        let kept_from = branch[..at]
            .iter()
            .position(|entry| Some(*entry) == first_kept)
            .unwrap_or(at);
        let kept = branch[kept_from..at].iter().chain(&branch[at + 1..]);
        Visible {
            summary: Some(branch[at]),
            entries: kept.copied().filter(is_seen).collect(),
        }
    }

    fn slot(&self, entry: EntryRef) -> Option<&Slot> {
        self.slots.get(entry.0 as usize)
    }
}

/// One line while it is read.
struct Gathered {
    offset: u64,
    length: u64,
    // The whole line, or the beginning of a long one.
    bytes: Vec<u8>,
    // The last bytes of a long one.
    end: Vec<u8>,
}

impl Gathered {
    fn at(offset: u64) -> Self {
        Self {
            offset,
            length: 0,
            bytes: Vec::new(),
            end: Vec::new(),
        }
    }

    fn take(&mut self, more: &[u8]) {
        self.length += more.len() as u64;
        if !self.is_long() {
            self.bytes.extend_from_slice(more);
            return;
        }
        if self.end.is_empty() {
            self.end = self.bytes.split_off(self.bytes.len().min(HEAD_BYTES));
        }
        self.end.extend_from_slice(more);
        let surplus = self.end.len().saturating_sub(TAIL_BYTES);
        self.end.drain(..surplus);
    }

    fn is_long(&self) -> bool {
        self.length > MAX_KEPT_BYTES as u64
    }

    fn last(&self) -> &[u8] {
        let bytes = if self.is_long() {
            &self.end
        } else {
            &self.bytes
        };
        &bytes[bytes.len().saturating_sub(TAIL_BYTES)..]
    }

    fn is_blank(&self) -> bool {
        !self.is_long() && self.bytes.trim_ascii().is_empty()
    }

    fn read(&self) -> Option<Line<'_>> {
        if !self.is_long() {
            let bytes = &self.bytes;
            return line::read(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
        }
        // Whether the middle is JSON is seen by whoever needs it.
        let is_whole = self.end.trim_ascii_end().ends_with(b"}");
        line::skim(&self.bytes[..self.bytes.len().min(HEAD_BYTES)]).filter(|_| is_whole)
    }
}
