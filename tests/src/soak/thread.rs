//! One thread: its transcript, what is done to its file, and what must be counted of it.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tidings_protocol::SessionKey;

use super::expected::Expected;
use super::pace::Pace;
use crate::audit::{self, EvidenceRow, Snapshot};
use crate::clock::now_ms;
use crate::dice::Dice;
use crate::transcripts::Transcript;

/// In every text that a person or a program writes: it must be found nowhere else.
pub(super) const CANARY: &str = "Axolotl9pomegranate";
/// No two neighbours of so many turns are equally long.
const LENGTHS: u64 = 97;
/// How much what is done in pieces waits between them, at the most.
const PIECE_US: u64 = 20_000;

/// A thread that has been, or is to be, adopted.
pub(super) struct Thread {
    transcript: Box<dyn Transcript + Send>,
    /// The session it becomes.
    pub(super) session: SessionKey,
    /// True once its adoption was answered.
    pub(super) adopted: bool,
    /// Messages given to it since it was last seen to be recorded as a whole.
    pub(super) given: usize,
    expected: Expected,
    /// How many things were typed.
    typed: u64,
    /// The longest that the file has been.
    longest: u64,
    /// When it was last written to.
    written_ms: i64,
    aside: Option<Aside>,
}

/// A file that is not in its place for a while.
struct Aside {
    path: PathBuf,
    until: Instant,
}

impl Thread {
    /// The thread of a transcript on the host of this name.
    pub(super) fn new(transcript: Box<dyn Transcript + Send>, host: &str) -> Self {
        let (catalog, thread) = (transcript.catalog(), transcript.thread());
        let key = format!("agent:main:adopted:{catalog}:{host}:{thread}");
        Self {
            session: SessionKey::parse(&key).expect("a key"),
            adopted: false,
            given: 0,
            expected: Expected::default(),
            typed: 0,
            longest: 0,
            written_ms: now_ms(),
            aside: None,
            transcript,
        }
    }

    pub(super) fn transcript(&self) -> &dyn Transcript {
        &*self.transcript
    }

    /// How many turns were typed.
    pub(super) fn turns(&self) -> usize {
        self.expected.len()
    }

    /// True while its file can be written to: it comes back when its time has come.
    pub(super) fn is_in_place(&mut self) -> bool {
        if self
            .aside
            .as_ref()
            .is_some_and(|aside| aside.until <= Instant::now())
        {
            self.come_back();
        }
        self.aside.is_none()
    }

    /// Its file comes back.
    pub(super) fn come_back(&mut self) {
        if let Some(aside) = self.aside.take() {
            fs::rename(aside.path, self.transcript.path()).expect("a transcript comes back");
        }
    }

    /// A person types; the log must count it.
    pub(super) fn human(&mut self) {
        self.is_later();
        let text = self.text();
        let before = self.transcript.len();
        let turn = self.transcript.human(&text);
        let mut places = vec![EvidenceRow {
            start: turn.start,
            end: turn.end,
        }];
        if turn.start > before {
            // Codex writes a turn as an item first. While its event is not there, or is cut
            // off, the item is the turn.
            places.push(EvidenceRow {
                start: before,
                end: turn.start - 1,
            });
        }
        self.expected.typed(places);
        self.written();
    }

    /// The program writes what the gateway gave it as if somebody had typed it.
    pub(super) fn writes_given(&mut self, body: &str) {
        self.is_later();
        self.transcript.human(body);
        self.written();
    }

    /// The program writes what nobody typed.
    pub(super) fn program(&mut self) {
        self.is_later();
        let text = self.text();
        self.transcript.everything_but_a_human(&text);
        self.written();
    }

    /// Its file moves to another folder.
    pub(super) fn move_to(&mut self, folder: &Path) {
        self.transcript.move_to(folder);
    }

    /// Its file is somewhere else for a while.
    pub(super) fn set_aside(&mut self, path: PathBuf, time: Duration) {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::rename(self.transcript.path(), &path).expect("a transcript goes");
        self.aside = Some(Aside {
            path,
            until: Instant::now() + time,
        });
    }

    /// Another file, with the same bytes behind `before`, stands in its place at once.
    pub(super) fn replace(&mut self, before: &[u8]) {
        let content = self.content();
        let path = self.transcript.path();
        let new = path.with_extension("new");
        fs::write(&new, [before, &*content].concat()).expect("a copy");
        fs::rename(&new, path).expect("in its place");
        self.rewritten(before);
    }

    /// The file is emptied, and written again piece by piece with `before` in front.
    pub(super) fn rewrite(&mut self, before: &[u8], dice: &mut Dice, pace: &Pace) {
        let content = [before, &*self.content()].concat();
        let path = self.transcript.path();
        let file = OpenOptions::new().write(true).truncate(true).open(path);
        let mut file = file.expect("an emptied transcript");
        let len = u64::try_from(content.len()).expect("a small file");
        let piece = usize::try_from(1 + len / (1 + dice.below(4))).expect("a small file");
        for piece in content.chunks(piece) {
            file.write_all(piece).expect("a piece");
            pace.rest(Duration::from_micros(dice.below(PIECE_US)));
        }
        self.rewritten(before);
    }

    /// The file is cut. What the log counts by now must stay counted; what it does not, and
    /// is cut off, may have been read in time or not. What is wrong, one line each.
    pub(super) fn cut(&mut self, state_dir: &Path, dice: &mut Dice) -> Vec<String> {
        let counted = audit::counted(state_dir, self.session.as_str());
        let wrong = counted.map(|counted| self.expected.counted(&counted));
        let end = self.cut_at(dice);
        let file = OpenOptions::new().write(true).open(self.transcript.path());
        file.expect("a transcript").set_len(end).expect("cut");
        self.expected.cut(end);
        self.transcript.reopen();
        wrong.unwrap_or_default()
    }

    /// Where to cut: before one of the last records, or anywhere in the file, its beginning
    /// included; in the middle of a record as well.
    fn cut_at(&self, dice: &mut Dice) -> u64 {
        let content = self.content();
        let ends = content.iter().enumerate();
        let ends = ends.filter(|(_, byte)| **byte == b'\n');
        let mut ends: Vec<u64> = ends.map(|(at, _)| at as u64 + 1).collect();
        ends.insert(0, 0);
        let lately = ends.len().saturating_sub(8);
        match dice.below(8) {
            0 => 0,
            1 => dice.below(content.len() as u64 + 1),
            2 | 3 => *dice.pick(&ends),
            _ => *dice.pick(&ends[lately..]),
        }
    }

    /// The file grows beyond everything it has ever been, by what nobody typed; and then
    /// somebody types: what is counted by then is counted for good.
    pub(super) fn grow_in_the_end(&mut self) {
        self.come_back();
        // A record that was cut in its middle ends here.
        self.transcript.append_bytes(b"\n");
        let longest = self.longest;
        while self.transcript.len() <= longest {
            self.program();
        }
        self.human();
    }

    /// True when the log's marker stands at its end.
    pub(super) fn is_recorded(&self, snapshot: &Snapshot) -> bool {
        let link = snapshot.links.get(self.session.as_str());
        link.is_some_and(|link| link.offset == self.transcript.len())
    }

    /// What is wrong in the end, one line each.
    pub(super) fn compare(&mut self, snapshot: &Snapshot) -> Vec<String> {
        let counted = snapshot.evidence.get(self.session.as_str());
        let counted = counted.map_or(&[][..], Vec::as_slice);
        let mut wrong = self.expected.counted_in_the_end(counted);
        for line in &mut wrong {
            let _ = write!(line, " in {}", self.transcript.path().display());
        }
        wrong
    }

    fn content(&self) -> Vec<u8> {
        fs::read(self.transcript.path()).expect("a transcript")
    }

    fn rewritten(&mut self, before: &[u8]) {
        if !before.is_empty() {
            self.expected.shifted(before.len() as u64);
        }
        self.transcript.reopen();
        self.written();
    }

    /// A text like no other, of another length than those around it.
    fn text(&mut self) -> String {
        self.typed += 1;
        let length = usize::try_from(self.typed % LENGTHS).expect("a small number");
        format!("{CANARY} {:>8} {}", self.typed, "x".repeat(length))
    }

    /// Waits until its next record is later than the one before it: where a program writes no
    /// ids, the time alone tells after a rewrite which records are new.
    fn is_later(&self) {
        while now_ms() <= self.written_ms {
            std::thread::yield_now();
        }
    }

    fn written(&mut self) {
        self.written_ms = now_ms();
        self.longest = self.longest.max(self.transcript.len());
    }
}
