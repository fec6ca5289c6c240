//! An agent program and its people: threads of all catalogs on some machines, and everything
//! that happens to their files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tidings_protocol::session_api::{
    Adopt, LeaseRef, PrivateText, Reply, Request, SessionsSend, SpeakerRef,
};
use tidings_protocol::{Catalog, SessionKey, ThreadId};

use super::pace::Pace;
use super::tally::Tally;
use super::thread::Thread;
use super::watching::Watched;
use crate::audit::Snapshot;
use crate::dice::Dice;
use crate::door::DoorClient;
use crate::node::Node;
use crate::transcripts::{Claude, Codex, OpenClaw, Transcript};

/// Who watches every thread from its adoption on, and takes no turn before the end.
pub(super) const KEEPER: &str = "agent:keeper:main";
/// Who sends the threads what nobody typed.
const SENDER: &str = "agent:sender:main";
/// How long it rests between two things, at the most.
const REST_US: u64 = 60_000;
/// How long a file is out of its place, at the most: too short for it to count as gone.
const ASIDE_MS: u64 = 1_500;
/// How many lines are typed at once in a burst: more than a report takes.
const BURST: u64 = 120;
/// How many messages a thread is given that it may not have recorded: a link remembers ten.
const MAX_GIVEN: usize = 6;
/// How many threads are begun while others are under way, on each machine.
const MAX_LATER_THREADS: usize = 3;

/// One machine as the programs on it see it.
#[derive(Debug)]
pub(super) struct Machine {
    name: String,
    claude: PathBuf,
    codex: PathBuf,
    openclaw: PathBuf,
    later_threads: usize,
    /// The clock of its agent is set, and that of its programs is not: what was given to a
    /// program cannot be told from words of before.
    has_two_times: bool,
}

impl Machine {
    /// The machine of this node, with a root for OpenClaw added to it.
    pub(super) fn of(node: &mut Node) -> Self {
        Self {
            name: node.name().to_owned(),
            claude: node.claude(),
            codex: node.codex(),
            openclaw: node.add_root("openclaw", "openclaw"),
            later_threads: 0,
            has_two_times: false,
        }
    }

    /// The same with an agent whose clock is set.
    pub(super) fn with_two_times(self) -> Self {
        Self {
            has_two_times: true,
            ..self
        }
    }

    fn begin_thread(&self, catalog: Catalog) -> Thread {
        let transcript: Box<dyn Transcript + Send> = match catalog {
            Catalog::Claude => Box::new(Claude::create(&self.claude)),
            Catalog::Codex => Box::new(Codex::create(&self.codex)),
            Catalog::Openclaw => Box::new(OpenClaw::create(&self.openclaw)),
        };
        Thread::new(transcript, &self.name)
    }

    /// Another folder for a transcript of this catalog.
    fn folder(&self, catalog: Catalog, dice: &mut Dice) -> PathBuf {
        let number = dice.below(4);
        match catalog {
            Catalog::Claude => self.claude.join(format!("-home-ada-mill-{number}")),
            Catalog::Codex => self.codex.join(format!("2026/11/{:02}", number + 1)),
            Catalog::Openclaw => self.openclaw.join(format!("mill-{number}")),
        }
    }

    /// Where the file of a thread may be for a while: compressed, archived beside the root,
    /// or away altogether.
    fn aside(&self, thread: &Thread, dice: &mut Dice) -> (PathBuf, &'static str) {
        let path = thread.transcript().path();
        let name = path.file_name().expect("a name").to_string_lossy();
        let is_codex = thread.transcript().catalog() == Catalog::Codex.as_str();
        match dice.below(3) {
            0 if is_codex => (
                path.with_file_name(format!("{name}.zst")),
                "files compressed",
            ),
            1 if is_codex => {
                let archive = self.codex.with_file_name("archived_sessions");
                (archive.join(&*name), "files archived")
            }
            _ => (path.with_extension("aside"), "files taken away"),
        }
    }
}

/// Writes on some machines.
pub(super) struct Writer {
    machines: Vec<Machine>,
    /// Each with the place of its machine.
    threads: Vec<(usize, Thread)>,
    dice: Dice,
    state_dir: PathBuf,
    watched: Arc<Watched>,
    tally: Arc<Tally>,
    wrong: Vec<String>,
}

impl Writer {
    /// A writer on these machines, with a thread of each catalog on each, all adopted.
    pub(super) fn begin(
        machines: Vec<Machine>,
        dice: Dice,
        state_dir: &Path,
        (watched, tally): (&Arc<Watched>, &Arc<Tally>),
    ) -> Self {
        let mut writer = Self {
            machines,
            threads: Vec::new(),
            dice,
            state_dir: state_dir.to_owned(),
            watched: Arc::clone(watched),
            tally: Arc::clone(tally),
            wrong: Vec::new(),
        };
        let mut door = DoorClient::connect(state_dir);
        for at in 0..writer.machines.len() {
            for catalog in Catalog::ALL {
                let thread = writer.machines[at].begin_thread(catalog);
                writer.threads.push((at, thread));
                let last = writer.threads.len() - 1;
                assert!(writer.adopt(&mut door, last), "a gateway that answers");
            }
        }
        writer
    }

    /// Writes until it is enough.
    pub(super) fn work(mut self, pace: &Pace) -> Self {
        let mut door = None;
        while pace.rest(Duration::from_micros(self.dice.below(REST_US))) {
            let count = u64::try_from(self.threads.len()).expect("a small number");
            let at = usize::try_from(self.dice.below(count)).expect("a small number");
            if !self.threads[at].1.is_in_place() {
                continue;
            }
            door = door.or_else(|| DoorClient::try_connect(&self.state_dir));
            if !self.threads[at].1.adopted {
                let answered = door.as_mut().is_some_and(|door| self.adopt(door, at));
                door = door.filter(|_| answered);
                continue;
            }
            match self.dice.below(100) {
                0..=54 => self.types(at),
                55..=74 => self.program(at),
                75..=79 => self.moves(at),
                80..=83 => self.sets_aside(at),
                84..=90 => self.rewrites(at, pace),
                91..=95 => self.cuts(at),
                96 => self.begins_thread(at),
                _ => {
                    let given = door
                        .as_mut()
                        .is_some_and(|door| self.gives(door, at).is_some());
                    door = door.filter(|_| given);
                }
            }
        }
        self
    }

    fn types(&mut self, at: usize) {
        let lines = if self.dice.once_in(300) {
            BURST
        } else {
            1 + self.dice.below(3)
        };
        for _ in 0..lines {
            self.threads[at].1.human();
        }
        self.tally.did_times("turns typed", lines);
    }

    fn program(&mut self, at: usize) {
        self.threads[at].1.program();
        self.tally
            .did("times that programs wrote what nobody typed");
    }

    fn moves(&mut self, at: usize) {
        let (machine, thread) = &mut self.threads[at];
        let catalog = catalog_of(thread);
        let folder = self.machines[*machine].folder(catalog, &mut self.dice);
        thread.move_to(&folder);
        self.tally.did("files moved to another folder");
    }

    fn sets_aside(&mut self, at: usize) {
        let (machine, thread) = &mut self.threads[at];
        let (path, what) = self.machines[*machine].aside(thread, &mut self.dice);
        let time = Duration::from_millis(self.dice.below(ASIDE_MS));
        thread.set_aside(path, time);
        self.tally.did(what);
    }

    fn rewrites(&mut self, at: usize, pace: &Pace) {
        let length = usize::try_from(self.dice.below(40)).expect("a small number");
        let blank = " ".repeat(length) + "\n";
        let before = if self.dice.once_in(2) { &*blank } else { "" };
        let thread = &mut self.threads[at].1;
        if self.dice.once_in(2) {
            thread.replace(before.as_bytes());
            self.tally.did("files replaced");
        } else {
            thread.rewrite(before.as_bytes(), &mut self.dice, pace);
            self.tally.did("files rewritten piece by piece");
        }
    }

    fn cuts(&mut self, at: usize) {
        let thread = &mut self.threads[at].1;
        let wrong = thread.cut(&self.state_dir, &mut self.dice);
        self.wrong.extend(wrong);
        self.tally.did("files cut");
    }

    /// Another thread on the same machine; it is adopted when its turn comes.
    fn begins_thread(&mut self, at: usize) {
        let machine = self.threads[at].0;
        if self.machines[machine].later_threads < MAX_LATER_THREADS {
            self.machines[machine].later_threads += 1;
            let catalog = *self.dice.pick(&Catalog::ALL);
            let thread = self.machines[machine].begin_thread(catalog);
            self.threads.push((machine, thread));
        }
    }

    /// Adopts a thread; false when the gateway has gone. Nothing is written to it before it
    /// is done, so asking again is asking for the same.
    fn adopt(&mut self, door: &mut DoorClient, at: usize) -> bool {
        let (machine, thread) = &mut self.threads[at];
        let request = Request::Adopt(Adopt {
            catalog: catalog_of(thread),
            host: self.machines[*machine].name.clone(),
            thread_id: ThreadId::parse(thread.transcript().thread()).expect("a thread id"),
            agent: None,
            watch_by: Some(key(KEEPER)),
        });
        match door.try_ask(&request) {
            Some(Reply::Adopt(adopted)) => {
                let (is, should) = (&adopted.session_key, &thread.session);
                let (offset, length) = (adopted.link.offset, thread.transcript().len());
                if is != should || offset != length {
                    let line = format!("{should} of {length} bytes is {is} at {offset}");
                    self.wrong.push(line);
                }
                thread.adopted = true;
                self.watched.add(thread.session.clone());
                self.tally.did("threads adopted");
                true
            }
            // Its node may be away.
            Some(Reply::Error(_)) => true,
            Some(reply) => {
                self.wrong.push(format!("{reply:?} to an adoption"));
                true
            }
            None => false,
        }
    }

    /// The gateway gives a thread a message, which its program writes down as if somebody had
    /// typed it. `None` when the gateway has gone.
    fn gives(&mut self, door: &mut DoorClient, at: usize) -> Option<()> {
        let (machine, thread) = &mut self.threads[at];
        if self.machines[*machine].has_two_times {
            return Some(());
        }
        if crate::audit::offset(&self.state_dir, thread.session.as_str())
            == Some(thread.transcript().len())
        {
            thread.given = 0;
        }
        if thread.given >= MAX_GIVEN {
            return Some(());
        }
        let number = self.tally.of("messages given");
        door.try_ask(&Request::SessionsSend(SessionsSend {
            session_key: thread.session.clone(),
            agent: None,
            message: PrivateText::from(format!("Start the mill again, {number}")),
            sender: Some(key(SENDER)),
            watch: None,
            expected_session_id: None,
        }))?;
        let begun = door.try_ask(&Request::TurnBegin(SpeakerRef {
            session_key: Some(thread.session.clone()),
            agent: None,
        }))?;
        let Reply::TurnBegin(begun) = begun else {
            return Some(());
        };
        for message in &begun.messages {
            thread.writes_given(&message.body);
            thread.given += 1;
            self.tally.did("messages given");
        }
        let token = begun.token?;
        door.try_ask(&Request::TurnConfirm(LeaseRef { token }))?;
        Some(())
    }

    /// Everything is in its place again, and everything grows.
    pub(super) fn end(&mut self) {
        for (_, thread) in &mut self.threads {
            thread.come_back();
            if thread.adopted {
                thread.grow_in_the_end();
                self.tally.did("turns typed");
            }
        }
    }

    /// The threads that were adopted.
    pub(super) fn threads(&self) -> impl Iterator<Item = &Thread> {
        self.threads
            .iter()
            .map(|(_, thread)| thread)
            .filter(|thread| thread.adopted)
    }

    /// What is wrong in the end, one line each.
    pub(super) fn compare(&mut self, snapshot: &Snapshot) -> Vec<String> {
        let mut wrong = std::mem::take(&mut self.wrong);
        let adopted = self.threads.iter_mut().filter(|(_, thread)| thread.adopted);
        wrong.extend(adopted.flat_map(|(_, thread)| thread.compare(snapshot)));
        wrong
    }
}

fn catalog_of(thread: &Thread) -> Catalog {
    Catalog::parse(thread.transcript().catalog()).expect("a catalog")
}

fn key(text: &str) -> SessionKey {
    SessionKey::parse(text).expect("a key")
}
