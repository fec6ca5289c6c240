//! Load on a gateway through its socket: callers that ask for everything that changes a
//! watch or the log, and people who type. Each keeps what it was answered.

mod caller;
mod expected;
mod ledger;
mod scribe;

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tidings_protocol::session_api::{Request, SignalsRecord};
use tidings_protocol::{SessionKey, SignalKind};

use crate::audit::{Audit, Snapshot, audit, snapshot};
use crate::clock::{DEADLINE, until};
use crate::dice::Dice;
use crate::door::DoorClient;
use crate::gateway::Gateway;
pub(crate) use caller::Caller;
use scribe::Scribe;

/// How many callers there are.
const CALLERS: usize = 8;
/// The sessions that they all speak of.
const TARGETS: usize = 4;

/// Callers and people, at rest.
#[derive(Debug, Default)]
pub struct Load {
    callers: Vec<Caller>,
    scribe: Option<Scribe>,
    before: Snapshot,
}

/// Callers and people at work.
#[derive(Debug)]
pub struct RunningLoad {
    callers: Vec<JoinHandle<Caller>>,
    scribe: Option<JoinHandle<Scribe>>,
    progress: Arc<Progress>,
    before: Snapshot,
}

impl Load {
    /// Callers, as these dice decide.
    pub fn of_callers(dice: &mut Dice) -> Self {
        Self {
            callers: (0..CALLERS)
                .map(|number| Caller::new(number, dice.split(), targets().to_vec()))
                .collect(),
            scribe: None,
            before: Snapshot::default(),
        }
    }

    /// Callers, and people who type into transcripts below `root`.
    pub fn of_callers_and_people(dice: &mut Dice, root: &Path) -> Self {
        Self {
            scribe: Some(Scribe::new(root.to_owned(), dice.split())),
            ..Self::of_callers(dice)
        }
    }

    /// Sets everybody to work on a gateway.
    pub fn start(self, gateway: &Gateway) -> RunningLoad {
        let mut first = DoorClient::connect(gateway.state_dir());
        for target in targets() {
            // A target exists once something has happened in it.
            first.try_ask(&something_happens(target));
        }
        let progress = Arc::new(Progress::default());
        let callers = self.callers.into_iter().map(|mut caller| {
            let mut door = DoorClient::connect(gateway.state_dir());
            let progress = Arc::clone(&progress);
            thread::spawn(move || {
                caller.ask_on(&mut door, &progress);
                caller
            })
        });
        let callers = callers.collect();
        let scribe = self.scribe.map(|mut scribe| {
            let mut door = DoorClient::connect(gateway.state_dir());
            let progress = Arc::clone(&progress);
            thread::spawn(move || {
                scribe.ask_on(&mut door, &progress);
                scribe
            })
        });
        RunningLoad {
            callers,
            scribe,
            progress,
            before: self.before,
        }
    }

    /// The highest sequence at the last comparison.
    pub fn head(&self) -> u64 {
        self.before.head()
    }

    /// People type on, whether a gateway runs or not.
    pub fn type_some(&mut self) {
        if let Some(scribe) = &mut self.scribe {
            scribe.type_some();
        }
    }

    /// Audits the state directory, and compares all that was answered with what is there.
    /// What is wrong, one line each.
    pub fn compare(&mut self, state_dir: &Path) -> Vec<String> {
        let audit = audit(state_dir);
        let mut wrong = self.compare_with(&audit);
        wrong.splice(0..0, audit.findings);
        self.before = audit.snapshot;
        wrong
    }

    /// The same once everything that was typed has been recorded.
    pub fn compare_when_recorded(&mut self, state_dir: &Path) -> Vec<String> {
        if let Some(scribe) = &self.scribe {
            until("everything typed is recorded", || {
                scribe.is_recorded(&snapshot(state_dir)).then_some(())
            });
        }
        self.compare(state_dir)
    }

    fn compare_with(&mut self, audit: &Audit) -> Vec<String> {
        let mut wrong = audit.snapshot.broken_since(&self.before);
        for caller in &mut self.callers {
            wrong.extend(caller.compare(&audit.snapshot));
        }
        if let Some(scribe) = &mut self.scribe {
            wrong.extend(scribe.compare(audit));
        }
        wrong
    }
}

impl RunningLoad {
    /// Waits until so many more requests have been answered, or this time has passed.
    pub fn work(&self, answers: u64, within: Duration) {
        self.progress.wait_for(answers, within);
    }

    /// Waits until so many more requests have been answered.
    #[track_caller]
    pub fn work_until(&self, answers: u64) {
        let done = self.progress.wait_for(answers, DEADLINE);
        assert!(done, "not {answers} answers within {DEADLINE:?}");
    }

    /// How many requests have been answered.
    pub fn answers(&self) -> u64 {
        self.progress.lock().answers
    }

    /// Has everybody stop, and waits for them. A gateway that was killed stops them too.
    #[track_caller]
    pub fn stop(self) -> Load {
        self.progress.lock().enough = true;
        let join = |caller: JoinHandle<Caller>| caller.join().expect("a caller");
        Load {
            callers: self.callers.into_iter().map(join).collect(),
            scribe: self.scribe.map(|scribe| scribe.join().expect("a scribe")),
            before: self.before,
        }
    }
}

/// How far everybody is.
#[derive(Debug, Default)]
struct Progress {
    count: Mutex<Count>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Count {
    answers: u64,
    enough: bool,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn goes_on(&self) -> bool {
        !self.lock().enough
    }

    fn one_more(&self) {
        self.lock().answers += 1;
        self.changed.notify_all();
    }

    /// False when the time passed first.
    fn wait_for(&self, answers: u64, within: Duration) -> bool {
        let began = Instant::now();
        let mut count = self.lock();
        let goal = count.answers + answers;
        while count.answers < goal {
            let left = within.saturating_sub(began.elapsed());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(count, left);
            count = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

fn targets() -> [SessionKey; TARGETS] {
    std::array::from_fn(|at| SessionKey::parse(&format!("agent:load:target-{at}")).expect("a key"))
}

fn something_happens(session: SessionKey) -> Request {
    Request::SignalsRecord(SignalsRecord {
        session,
        kind: SignalKind::Compacted,
        actor: "system".to_owned(),
        parent: None,
        channel: None,
        outcome: None,
        run_id: None,
        summary: None,
        dedupe_key: Some("the first of all".to_owned()),
    })
}
