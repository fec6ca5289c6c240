//! What one caller was answered, and what must therefore be so.
//!
//! A caller's watchers are its own: nobody else adds, ends, drains or begins a turn of them.
//! So everything but the events of others follows from its own answers, one after the other.

use std::collections::BTreeMap;

use tidings_protocol::session_api::{
    ErrorType, Notice, Recorded, Reply, Request, SignalsRecord, StatusQuery, TurnBegun, WatchPair,
    Watched,
};
use tidings_protocol::{SessionKey, SignalKind};

use super::expected::{Pair, Signal, SignalEnd, Stands, Turn, Watch};
use crate::audit::Snapshot;
use crate::machines::notice;

/// What one caller was answered.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    signals: Vec<Signal>,
    watches: BTreeMap<Pair, Watch>,
    turns: BTreeMap<SessionKey, Turn>,
    /// What an answer said that cannot be.
    problems: Vec<String>,
}

impl Ledger {
    /// The turn of a watcher that holds something, or may.
    pub(super) fn turn(&self, watcher: &SessionKey) -> Option<&Turn> {
        self.turns.get(watcher)
    }

    /// Takes in an answer, and compares it with what it must be.
    pub(super) fn answered(&mut self, request: &Request, reply: &Reply) {
        match (request, reply) {
            // This one says that nothing was changed; after any other nobody knows.
            (_, Reply::Error(error)) if error.error_type == ErrorType::TryLater => {
                self.not_done(request);
            }
            (_, Reply::Error(_)) => self.unanswered(request),
            (Request::SignalsRecord(asked), Reply::SignalsRecord(recorded)) => {
                self.recorded(asked, recorded);
            }
            (Request::WatchAdd(pair), Reply::WatchAdd(watched)) => self.watched(pair, watched),
            (Request::WatchRemove(pair), Reply::WatchRemove(removed)) => {
                self.unwatched(pair, removed.removed);
            }
            (Request::NoticesDrain(watcher), Reply::Notices(notices)) => {
                for notice in &notices.notices {
                    self.drained(&watcher.session_key, notice);
                }
            }
            (Request::TurnBegin(speaker), Reply::TurnBegin(begun)) => {
                self.begun(speaking(speaker.session_key.as_ref()), begun);
            }
            (Request::TurnConfirm(lease), Reply::TurnSettled(settled)) => {
                self.settled(&lease.token, settled.notices, Settling::Confirmed);
            }
            (Request::TurnRelease(lease), Reply::TurnSettled(settled)) => {
                self.settled(&lease.token, settled.notices, Settling::Released);
            }
            (Request::SessionStatus(query), Reply::SessionStatus(_)) => self.looked(query),
            (_, reply) => self.problem(format!("{request:?} was answered with {reply:?}")),
        }
    }

    /// Takes in that a request was not answered: it may have been done, or not.
    pub(super) fn unanswered(&mut self, request: &Request) {
        match request {
            Request::SignalsRecord(asked) => {
                if let Some(pair) = seeded(asked) {
                    let watch = self.watches.entry(pair).or_default();
                    if watch.stands == Stands::No {
                        watch.stands = Stands::Unknown;
                    }
                }
                self.signals.push(Signal {
                    asked: asked.clone(),
                    end: SignalEnd::Unknown,
                });
            }
            Request::WatchAdd(pair) | Request::WatchRemove(pair) => {
                let pair = pair_of(pair);
                self.doubt(&pair.0);
                self.watches.entry(pair).or_default().stands = Stands::Unknown;
            }
            Request::TurnBegin(speaker) => {
                let watcher = speaking(speaker.session_key.as_ref()).clone();
                self.turns.insert(watcher, Turn::Lost);
            }
            Request::TurnConfirm(lease) | Request::TurnRelease(lease) => {
                if let Some(watcher) = self.holder(&lease.token) {
                    self.doubt(&watcher);
                }
            }
            Request::SessionStatus(query) => {
                if let Some(reader) = &query.reader {
                    self.doubt(reader);
                }
            }
            _ => {}
        }
    }

    fn not_done(&mut self, request: &Request) {
        if let Request::SignalsRecord(asked) = request {
            self.signals.push(Signal {
                asked: asked.clone(),
                end: SignalEnd::NotDone,
            });
        }
    }

    fn recorded(&mut self, asked: &SignalsRecord, recorded: &Recorded) {
        let end = match (recorded.recorded, recorded.sequence) {
            (true, Some(sequence)) => SignalEnd::Recorded(sequence),
            (false, Some(sequence)) => SignalEnd::Repeat(sequence),
            (false, None) => SignalEnd::Unwatched,
            (true, None) => return self.problem(format!("recorded without a sequence: {asked:?}")),
        };
        if let (SignalEnd::Recorded(sequence), Some(pair)) = (&end, seeded(asked)) {
            let watch = self.watches.entry(pair).or_default();
            if watch.stands == Stands::No {
                watch.seen = *sequence;
            }
            watch.stands = Stands::Yes;
        }
        self.signals.push(Signal {
            asked: asked.clone(),
            end,
        });
    }

    fn watched(&mut self, pair: &WatchPair, watched: &Watched) {
        let Some(from) = watched.from_version.filter(|_| watched.watched) else {
            return self.problem(format!("{pair:?} was refused: {watched:?}"));
        };
        let watch = self.watches.entry(pair_of(pair)).or_default();
        let before = watch.seen;
        *watch = Watch {
            stands: Stands::Yes,
            seen: from.max(before),
        };
        if from < before {
            self.problem(format!("{pair:?} had seen {before} and has seen {from}"));
        }
    }

    fn unwatched(&mut self, pair: &WatchPair, removed: bool) {
        let pair = pair_of(pair);
        let stood = self.stands(&pair);
        if stood != Stands::Unknown && (stood == Stands::Yes) != removed {
            self.problem(format!("{pair:?} stood: {stood:?}, was removed: {removed}"));
        }
        self.watches.insert(pair.clone(), Watch::default());
        if let Some(turn) = self.turns.get_mut(&pair.0) {
            turn.give_up(&pair.1);
        }
    }

    fn drained(&mut self, watcher: &SessionKey, notice: &Notice) {
        let held = |turn: &Turn| turn.surely_holds(&notice.target);
        if self.turns.get(watcher).is_some_and(held) {
            self.problem(format!("{watcher} drained what its turn holds: {notice:?}"));
        }
        self.told(watcher, notice);
        self.saw_more(watcher, &notice.target, notice.changes_since + 1);
    }

    fn begun(&mut self, watcher: &SessionKey, begun: &TurnBegun) {
        for notice in &begun.notices {
            self.told(watcher, notice);
        }
        let Some(token) = &begun.token else {
            if !begun.notices.is_empty() {
                self.problem(format!("{watcher} got notices and no token: {begun:?}"));
            }
            return;
        };
        if let Some(turn) = self.turns.get(watcher).filter(|turn| turn.surely_open()) {
            self.problem(format!("{watcher} holds {turn:?} and was given {begun:?}"));
        }
        self.turns
            .insert(watcher.clone(), Turn::holding(token, &begun.notices));
    }

    fn settled(&mut self, token: &str, notices: u64, settling: Settling) {
        let Some(watcher) = self.holder(token) else {
            return;
        };
        let Some(turn) = self.turns.remove(&watcher) else {
            return;
        };
        if !turn.may_settle(notices) {
            self.problem(format!("{watcher}: {turn:?} settled {notices} notices"));
        }
        if settling == Settling::Confirmed && turn.surely_open() {
            for (target, changes_since) in turn.holds() {
                self.saw_more(&watcher, target, changes_since + 1);
            }
        }
    }

    /// A look of the watcher at its target since what its notice names confirms the notice.
    fn looked(&mut self, query: &StatusQuery) {
        let Some(reader) = &query.reader else {
            return;
        };
        let Some(turn) = self.turns.get_mut(reader) else {
            return;
        };
        if turn.surely_holds(&query.session_key)
            && let Some(changes_since) = turn.give_up(&query.session_key)
        {
            self.saw_more(reader, &query.session_key, changes_since + 1);
        }
    }

    /// A notice was shown: it must be byte for byte the one that follows from its mark, and
    /// never from one that the watcher has passed.
    fn told(&mut self, watcher: &SessionKey, told: &Notice) {
        if told.text != notice(told.target.as_str(), told.changes_since) {
            self.problem(format!("{watcher} was told otherwise: {told:?}"));
        }
        let watch = self.watch(watcher, &told.target);
        let seen = watch.seen;
        if watch.stands == Stands::No || told.changes_since < seen {
            self.problem(format!("{watcher} has seen {seen} and was told {told:?}"));
        }
    }

    fn saw_more(&mut self, watcher: &SessionKey, target: &SessionKey, seen: u64) {
        let watch = self.watch(watcher, target);
        watch.seen = watch.seen.max(seen);
    }

    fn watch(&mut self, watcher: &SessionKey, target: &SessionKey) -> &mut Watch {
        let pair = (watcher.clone(), target.clone());
        self.watches.entry(pair).or_default()
    }

    fn stands(&self, pair: &Pair) -> Stands {
        self.watches
            .get(pair)
            .map_or(Stands::No, |watch| watch.stands)
    }

    /// What this watcher's turn holds is not sure any more.
    pub(super) fn doubt(&mut self, watcher: &SessionKey) {
        if let Some(turn) = self.turns.get_mut(watcher) {
            turn.doubt();
        }
    }

    fn holder(&self, token: &str) -> Option<SessionKey> {
        let holds = |(_, turn): &(&SessionKey, &Turn)| turn.token() == Some(token);
        let (watcher, _) = self.turns.iter().find(holds)?;
        Some(watcher.clone())
    }

    fn problem(&mut self, problem: String) {
        self.problems.push(problem);
    }

    /// Compares everything that was answered with what is there; then takes over what was
    /// open. What is wrong, one line each.
    pub(super) fn compare(&mut self, snapshot: &Snapshot) -> Vec<String> {
        let mut wrong = std::mem::take(&mut self.problems);
        for signal in &mut self.signals {
            wrong.extend(signal.compare(snapshot));
        }
        for (pair, watch) in &mut self.watches {
            wrong.extend(watch.compare(pair, snapshot));
        }
        wrong
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settling {
    Confirmed,
    Released,
}

/// The watch that a spawned child gives its parent.
fn seeded(asked: &SignalsRecord) -> Option<Pair> {
    let parent = asked.parent.as_ref()?;
    let seeds = asked.kind == SignalKind::ChildSpawned && *parent != asked.session;
    seeds.then(|| (parent.clone(), asked.session.clone()))
}

fn pair_of(pair: &WatchPair) -> Pair {
    (speaking(pair.watcher.as_ref()).clone(), pair.target.clone())
}

/// Who speaks: a caller of the load always says so.
fn speaking(session: Option<&SessionKey>) -> &SessionKey {
    session.expect("a caller names its session")
}
