//! People who type: transcripts on the gateway's own machine, adopted while the load runs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tidings_protocol::session_api::{Adopt, Reply, Request, SessionRef};
use tidings_protocol::{Catalog, SessionKey, ThreadId};

use super::Progress;
use crate::audit::{Audit, EvidenceRow, Snapshot};
use crate::dice::Dice;
use crate::door::DoorClient;
use crate::transcripts::{Claude, Transcript, Turn};

/// How many transcripts there are, at most: enough that adoptions and reports meet.
const MAX_THREADS: usize = 12;
/// How many lines are typed at once, at most.
const MAX_LINES: u64 = 4;
/// Who watches all of them.
const WATCHER: &str = "agent:scribe:main";

/// Everybody who types.
#[derive(Debug)]
pub(super) struct Scribe {
    root: PathBuf,
    dice: Dice,
    threads: Vec<Thread>,
    problems: Vec<String>,
}

#[derive(Debug)]
struct Thread {
    transcript: Claude,
    key: String,
    adopted: bool,
    /// What a human typed since the adoption.
    turns: Vec<Turn>,
}

impl Scribe {
    pub(super) fn new(root: PathBuf, dice: Dice) -> Self {
        Self {
            root,
            dice,
            threads: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Types and adopts until the gateway has gone, or until nobody wants more.
    pub(super) fn ask_on(&mut self, door: &mut DoorClient, progress: &Progress) {
        while progress.goes_on() {
            let waiting = self.threads.iter().position(|thread| !thread.adopted);
            let answered = match waiting {
                Some(at) => self.adopt(door, at),
                None if self.threads.len() < MAX_THREADS && self.dice.once_in(8) => {
                    self.begin_thread();
                    continue;
                }
                None => {
                    self.type_some();
                    // Told of what was typed before; and no faster than the gateway answers.
                    door.try_ask(&drain()).is_some()
                }
            };
            if !answered {
                return;
            }
            progress.one_more();
        }
    }

    /// Types in some thread; nothing while there is none.
    pub(super) fn type_some(&mut self) {
        let lines = 1 + self.dice.below(MAX_LINES);
        let mut adopted: Vec<&mut Thread> = self
            .threads
            .iter_mut()
            .filter(|thread| thread.adopted)
            .collect();
        if adopted.is_empty() {
            return;
        }
        let count = u64::try_from(adopted.len()).expect("a small number");
        let at = usize::try_from(self.dice.below(count)).expect("a small number");
        for _ in 0..lines {
            let turn = adopted[at].transcript.human("Stop the mill.");
            adopted[at].turns.push(turn);
        }
    }

    fn begin_thread(&mut self) {
        let transcript = Claude::create(&self.root);
        let key = format!("agent:main:adopted:claude:local:{}", transcript.thread());
        self.threads.push(Thread {
            transcript,
            key,
            adopted: false,
            turns: Vec::new(),
        });
    }

    /// Adopts a thread; false when there was no answer. It is asked again until it is done:
    /// adopting twice is adopting once.
    fn adopt(&mut self, door: &mut DoorClient, at: usize) -> bool {
        let thread = &mut self.threads[at];
        let request = Request::Adopt(Adopt {
            catalog: Catalog::Claude,
            host: "local".to_owned(),
            thread_id: ThreadId::parse(thread.transcript.thread()).expect("a thread id"),
            agent: None,
            watch_by: Some(watcher()),
        });
        match door.try_ask(&request) {
            Some(Reply::Adopt(adopted)) => {
                thread.adopted = true;
                let offset = thread.transcript.len();
                if adopted.session_key.as_str() != thread.key || adopted.link.offset != offset {
                    self.problems
                        .push(format!("adopted otherwise: {adopted:?}"));
                }
                true
            }
            // The machine's own node agent may not be back yet.
            Some(Reply::Error(_)) => true,
            Some(reply) => {
                self.problems.push(format!("{reply:?} to an adoption"));
                true
            }
            None => false,
        }
    }

    /// True when everything typed has been recorded, as far as the links say.
    pub(super) fn is_recorded(&self, snapshot: &Snapshot) -> bool {
        self.threads.iter().all(|thread| {
            let offset = snapshot.links.get(&thread.key).map(|link| link.offset);
            !thread.adopted || offset == Some(thread.transcript.len())
        })
    }

    /// What is wrong, one line each: every turn up to a link's place must be in the log,
    /// once, and none behind it.
    pub(super) fn compare(&mut self, audit: &Audit) -> Vec<String> {
        let mut wrong = std::mem::take(&mut self.problems);
        for thread in &self.threads {
            wrong.extend(thread.compare(&audit.snapshot));
        }
        let known: BTreeSet<&str> = self.threads.iter().map(|thread| &*thread.key).collect();
        let links = audit.snapshot.links.keys();
        let unknown = links.filter(|key| !known.contains(&***key));
        wrong.extend(unknown.map(|key| format!("a link of nobody: {key}")));
        wrong
    }
}

impl Thread {
    fn compare(&self, snapshot: &Snapshot) -> Vec<String> {
        let key = (WATCHER.to_owned(), self.key.clone());
        let watched = snapshot.cursors.contains_key(&key);
        let entry = snapshot.entries.contains(&self.key);
        let Some(link) = snapshot.links.get(&self.key) else {
            // An adoption that was not answered has not happened at all.
            return if self.adopted || watched || entry {
                vec![format!("half an adoption: {self:?}")]
            } else {
                Vec::new()
            };
        };
        let mut wrong = Vec::new();
        if !watched || !entry || link.thread != self.transcript.thread() {
            wrong.push(format!("half an adoption: {link:?} of {self:?}"));
        }
        let passed = self.turns.iter().filter(|turn| turn.end < link.offset);
        let expected: Vec<EvidenceRow> = passed
            .map(|turn| EvidenceRow {
                start: turn.start,
                end: turn.end,
            })
            .collect();
        let counted = snapshot.evidence.get(&self.key);
        let counted = counted.map_or(&[][..], Vec::as_slice);
        if counted != expected {
            wrong.push(format!(
                "{}: passed up to {}, counted {counted:?} instead of {expected:?}",
                self.key, link.offset
            ));
        }
        wrong
    }
}

fn drain() -> Request {
    Request::NoticesDrain(SessionRef {
        session_key: watcher(),
        agent: None,
    })
}

fn watcher() -> SessionKey {
    SessionKey::parse(WATCHER).expect("a key")
}
