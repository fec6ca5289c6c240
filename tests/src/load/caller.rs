//! One caller: asks for one thing after the other, and keeps what it is answered.

use tidings_protocol::session_api::{
    LeaseRef, Request, SessionRef, SignalsRecord, SpeakerRef, StatusQuery, WatchPair,
};
use tidings_protocol::signal::RunOutcome;
use tidings_protocol::{SessionKey, SignalKind};

use super::Progress;
use super::expected::Turn;
use super::ledger::Ledger;
use crate::audit::Snapshot;
use crate::dice::Dice;
use crate::door::DoorClient;

/// How many watchers a caller has.
const WATCHERS: usize = 2;
/// How many dedupe keys all callers share: few, so that they meet.
const DEDUPE_KEYS: u64 = 40;

/// A caller.
#[derive(Debug)]
pub(crate) struct Caller {
    number: usize,
    dice: Dice,
    watchers: Vec<SessionKey>,
    /// The sessions that it speaks of.
    targets: Vec<SessionKey>,
    /// How many names it has made up.
    names: u64,
    ledger: Ledger,
}

impl Caller {
    pub(crate) fn new(number: usize, dice: Dice, targets: Vec<SessionKey>) -> Self {
        let mut caller = Self {
            number,
            dice,
            watchers: Vec::new(),
            targets,
            names: 0,
            ledger: Ledger::default(),
        };
        caller.watchers = (0..WATCHERS).map(|_| caller.fresh_key("watcher")).collect();
        caller
    }

    /// Asks until the gateway has gone, or until nobody wants more.
    pub(super) fn ask_on(&mut self, door: &mut DoorClient, progress: &Progress) {
        while progress.goes_on() && self.ask_once(door) {
            progress.one_more();
        }
    }

    /// Asks for one thing; false when the gateway has gone.
    pub(crate) fn ask_once(&mut self, door: &mut DoorClient) -> bool {
        self.replace_lost_watchers();
        let request = self.next();
        let Some(reply) = door.try_ask(&request) else {
            self.ledger.unanswered(&request);
            return false;
        };
        self.ledger.answered(&request, &reply);
        true
    }

    /// It may be told of one more session.
    pub(crate) fn hears_of(&mut self, target: SessionKey) {
        self.targets.push(target);
    }

    /// The gateway's clock was set: no lease is sure to stand, or to have ended.
    pub(crate) fn doubt_leases(&mut self) {
        for watcher in &self.watchers {
            self.ledger.doubt(watcher);
        }
    }

    /// What is wrong, one line each.
    pub(crate) fn compare(&mut self, snapshot: &Snapshot) -> Vec<String> {
        self.ledger.compare(snapshot)
    }

    /// A watcher whose token was lost with an answer is told nothing for half an hour: that
    /// is as it should be, and of no more use here.
    fn replace_lost_watchers(&mut self) {
        for at in 0..self.watchers.len() {
            if matches!(self.ledger.turn(&self.watchers[at]), Some(Turn::Lost)) {
                self.watchers[at] = self.fresh_key("watcher");
            }
        }
    }

    fn next(&mut self) -> Request {
        let watcher = self.dice.pick(&self.watchers).clone();
        let target = self.dice.pick(&self.targets).clone();
        match self.dice.below(20) {
            0..=9 => Request::SignalsRecord(self.signal(&watcher, target)),
            10..=11 => Request::WatchAdd(pair(watcher, target)),
            12 => Request::WatchRemove(pair(watcher, target)),
            13 => Request::NoticesDrain(session(watcher)),
            14..=15 => Request::TurnBegin(speaker(watcher)),
            16 => Request::SessionStatus(self.look(watcher, target)),
            _ => self.settle(&watcher).unwrap_or_else(|| {
                // Nothing to settle: something new to tell of.
                Request::SignalsRecord(self.signal(&watcher, self.targets[0].clone()))
            }),
        }
    }

    fn signal(&mut self, watcher: &SessionKey, target: SessionKey) -> SignalsRecord {
        let kind = *self.dice.pick(&SignalKind::ALL);
        let actor = match self.dice.below(4) {
            0 => watcher.to_string(),
            1 => "system".to_owned(),
            2 => "agent:somebody:main".to_owned(),
            _ => "human".to_owned(),
        };
        let spawned = kind == SignalKind::ChildSpawned;
        let session = if spawned && self.dice.once_in(2) {
            self.fresh_key("subagent")
        } else {
            target
        };
        let dedupe = self.dice.once_in(4);
        SignalsRecord {
            session,
            kind,
            actor,
            parent: spawned.then(|| watcher.clone()),
            channel: Some("telegram".to_owned()),
            outcome: (kind == SignalKind::RunFailed).then_some(RunOutcome::Timeout),
            run_id: Some(self.fresh_name("run")),
            summary: None,
            dedupe_key: dedupe.then(|| format!("once-{}", self.dice.below(DEDUPE_KEYS))),
        }
    }

    fn settle(&mut self, watcher: &SessionKey) -> Option<Request> {
        let token = self.ledger.turn(watcher)?.token()?.to_owned();
        let lease = LeaseRef { token };
        Some(if self.dice.once_in(3) {
            Request::TurnRelease(lease)
        } else {
            Request::TurnConfirm(lease)
        })
    }

    /// A look of a watcher at its target, since what its turn was told where it was.
    fn look(&self, reader: SessionKey, target: SessionKey) -> StatusQuery {
        let holds = self.ledger.turn(&reader).map_or(&[][..], Turn::holds);
        let told = holds.iter().find(|(held, _)| *held == target);
        let since = told.map_or(0, |(_, since)| *since);
        StatusQuery {
            session_key: target,
            agent: None,
            changes_since: Some(i64::try_from(since).expect("a small number")),
            reader: told.is_some().then_some(reader),
        }
    }

    fn fresh_key(&mut self, kind: &str) -> SessionKey {
        let name = self.fresh_name(kind);
        let key = format!("agent:caller{}:{kind}:{name}", self.number);
        SessionKey::parse(&key).expect("a key")
    }

    fn fresh_name(&mut self, kind: &str) -> String {
        self.names += 1;
        format!("{kind}-{}-{}", self.number, self.names)
    }
}

fn pair(watcher: SessionKey, target: SessionKey) -> WatchPair {
    WatchPair {
        watcher: Some(watcher),
        target,
        target_agent: None,
    }
}

fn speaker(session_key: SessionKey) -> SpeakerRef {
    SpeakerRef {
        session_key: Some(session_key),
        agent: None,
    }
}

fn session(session_key: SessionKey) -> SessionRef {
    SessionRef {
        session_key,
        agent: None,
    }
}
