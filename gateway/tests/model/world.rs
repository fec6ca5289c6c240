//! The real thing and its model, side by side.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tidings_gateway::state::{
    AgentId, Effect, NewSignal, Retention, RollOver, SessionAddress, State, StateOptions,
    StatusRead, TurnToken,
};
use tidings_node::clock::Clock;
use tidings_protocol::{EpochMs, SessionKey, SignalKind};
use tokio::sync::broadcast;

use crate::compare::same_notices;
use crate::oracle::{Oracle, RETENTION_MS, Recorded, Told};
use crate::steps::{Actor, Claim, SESSIONS, Since, Step};

const START: EpochMs = 1_800_000_000_000;

#[derive(Debug)]
struct ModelClock(Mutex<EpochMs>);

impl Clock for ModelClock {
    fn now(&self) -> EpochMs {
        *self.0.lock().expect("clock")
    }

    fn monotonic(&self) -> Duration {
        let since_start = self.now() - START;
        Duration::from_millis(since_start.try_into().expect("forwards"))
    }
}

pub(crate) struct World {
    dir: TempDir,
    clock: Arc<ModelClock>,
    pub(crate) state: State,
    pub(crate) effects: broadcast::Receiver<Effect>,
    pub(crate) model: Oracle,
    /// The tokens of all leases, in the model's order.
    tokens: Vec<TurnToken>,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = scratch();
        let clock = Arc::new(ModelClock(Mutex::new(START)));
        let state = open(&dir, &clock);
        Self {
            effects: state.subscribe(),
            dir,
            clock,
            state,
            model: Oracle::starting_at(START),
            tokens: Vec::new(),
        }
    }

    /// Takes a step in both, and compares everything that can be seen.
    pub(crate) async fn take(&mut self, step: &Step) {
        match step {
            Step::Record {
                session,
                kind,
                actor,
                parent,
                dedupe,
                claim,
            } => {
                let told = Told {
                    session: *session,
                    kind: *kind,
                    actor: *actor,
                    parent: *parent,
                    dedupe: *dedupe,
                    claim: *claim,
                };
                self.record(&told).await;
            }
            Step::Burst { session, events } => self.burst(*session, *events).await,
            Step::Watch { watcher, target } => self.watch(*watcher, *target).await,
            Step::Unwatch { watcher, target } => {
                let removed = self
                    .state
                    .watch_remove(key(*watcher), address(*target))
                    .await
                    .expect("unwatch");
                assert_eq!(removed.removed, self.model.unwatch(*watcher, *target));
            }
            Step::Drain { watcher } => {
                let drained = self.state.drain(key(*watcher)).await.expect("drain");
                same_notices(&drained.notices, &self.model.drain(*watcher));
            }
            Step::Begin { watcher } => self.begin(*watcher).await,
            Step::Confirm { nth } => self.confirm(*nth).await,
            Step::Release { nth } => self.release(*nth).await,
            Step::Look {
                watcher,
                target,
                since,
            } => self.look(*watcher, *target, *since).await,
            Step::Prune {
                max_rows,
                max_age_ms,
            } => self.prune(*max_rows, *max_age_ms).await,
            Step::ExpireLeases => {
                self.state.expire_leases().await.expect("expire leases");
                self.model.expire_leases();
            }
            Step::ExpireWatches => {
                let retention = Duration::from_millis(RETENTION_MS.unsigned_abs());
                let expired = self.state.expire_watches(retention).await;
                assert_eq!(expired, Ok(self.model.expire_watches()));
            }
            Step::Pass { ms } => {
                *self.clock.0.lock().expect("clock") += ms;
                self.model.now += ms;
            }
            Step::Reopen => self.reopen().await,
            Step::Ensure { session }
            | Step::Reset { session }
            | Step::RollOver { session }
            | Step::Delete { session } => self.lifecycle(step, *session).await,
        }
        self.compare().await;
    }

    /// What a run must leave behind.
    pub(crate) async fn finish(self) {
        for session in 0..SESSIONS.len() {
            for version in [self.model.head(session), self.model.head(session) + 1] {
                self.compare_since(session, version).await;
            }
        }
        assert_eq!(self.state.check_integrity().await, Ok(Vec::new()));
        self.state.close().await;
    }

    async fn record(&mut self, told: &Told) {
        let by = match told.actor {
            Actor::Human => tidings_protocol::Actor::Human,
            Actor::System => tidings_protocol::Actor::System,
            Actor::Session(session) => tidings_protocol::Actor::Agent(key(session)),
        };
        let signal = NewSignal {
            parent: told.parent.map(key),
            dedupe_key: told.dedupe.map(|dedupe| format!("d{dedupe}")),
            occurred_at: match told.claim {
                Claim::Nothing => None,
                Claim::Absurd => Some(0),
                Claim::FromNow(ms) => Some(self.model.now + ms),
            },
            ..NewSignal::new(address(told.session), told.kind, by)
        };
        let recorded = self.state.record(signal).await.expect("record");
        let recorded = match (recorded.recorded, recorded.sequence) {
            (true, Some(sequence)) => Recorded::New(sequence),
            (false, Some(sequence)) => Recorded::Repeat(sequence),
            (_, None) => Recorded::Unwatched,
        };
        assert_eq!(recorded, self.model.record(told));
    }

    async fn burst(&mut self, session: usize, events: usize) {
        let before = self.model.head(session);
        let told = Told {
            session,
            kind: SignalKind::Compacted,
            actor: Actor::System,
            parent: None,
            dedupe: None,
            claim: Claim::Nothing,
        };
        for _ in 0..events {
            self.record(&told).await;
        }
        self.compare_since(session, before).await;
    }

    async fn watch(&mut self, watcher: usize, target: usize) {
        let added = self.state.watch_add(key(watcher), address(target)).await;
        let added = added.expect("an answer");
        let expected = self.model.watch(watcher, target);
        assert_eq!(added.from_version, expected);
        assert_eq!(added.watched, expected.is_some());
        assert_eq!(added.reason.is_some(), expected.is_none());
    }

    async fn begin(&mut self, watcher: usize) {
        let begun = self.state.turn_begin(address(watcher)).await;
        let begun = begun.expect("begin");
        let expected = self.model.begin(watcher);
        assert_eq!(begun.token.is_some(), expected.is_some());
        same_notices(&begun.notices, &expected.unwrap_or_default());
        self.tokens.extend(begun.token);
    }

    async fn confirm(&mut self, nth: usize) {
        let Some(lease) = self.tokens.len().checked_sub(nth + 1) else {
            return;
        };
        let settled = self.state.turn_confirm(self.tokens[lease]).await;
        let applied = settled.expect("confirm").notices;
        assert_eq!(applied, self.model.confirm(lease));
    }

    async fn release(&mut self, nth: usize) {
        let Some(lease) = self.tokens.len().checked_sub(nth + 1) else {
            return;
        };
        let settled = self.state.turn_release(self.tokens[lease]).await;
        let released = settled.expect("release").notices;
        assert_eq!(released, self.model.release(lease));
    }

    async fn look(&mut self, watcher: usize, target: usize, since: Since) {
        let seen = self
            .model
            .cursors
            .get(&(watcher, target))
            .map_or(0, |cursor| cursor.l);
        let since = match since {
            Since::Seen => seen,
            Since::Before => seen.saturating_sub(1),
            Since::Head => self.model.head(target),
        };
        let exists = self.model.exists(target);
        let read = StatusRead {
            session: address(target),
            changes_since: Some(since.try_into().expect("small")),
            reader: Some(key(watcher)),
        };
        match self.state.session_status(read).await {
            Ok(_) => {
                assert!(exists);
                self.model.look(watcher, target, since);
            }
            Err(error) => {
                assert!(!exists, "{error}");
            }
        }
    }

    async fn prune(&mut self, max_rows: u64, max_age_ms: Option<i64>) {
        let recorded_since = max_age_ms.map(|age| self.model.now - age);
        let retention = Retention {
            max_rows,
            recorded_since,
        };
        let pruned = self.state.prune(retention).await;
        assert_eq!(pruned, Ok(self.model.prune(max_rows, recorded_since)));
    }

    async fn lifecycle(&mut self, step: &Step, session: usize) {
        let at = address(session);
        let done = match step {
            Step::Ensure { .. } => {
                self.model.entries.insert(session);
                self.state.ensure_session(at).await.map(drop)
            }
            Step::Reset { .. } => {
                self.model.reset(session);
                self.state.reset_session(at).await.map(drop)
            }
            Step::RollOver { .. } => {
                self.model.roll_over(session);
                self.state
                    .roll_over_session(RollOver::of(at))
                    .await
                    .map(drop)
            }
            _ => {
                self.model.delete(session);
                self.state.delete_session(at).await.map(drop)
            }
        };
        assert_eq!(done, Ok(()));
    }

    async fn reopen(&mut self) {
        self.state.clone().close().await;
        self.state = open(&self.dir, &self.clock);
        self.effects = self.state.subscribe();
    }
}

/// A directory in memory, where there is one: this is about rules, not about disks.
fn scratch() -> TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory
        .or_else(|_| tempfile::tempdir())
        .expect("directory")
}

fn open(dir: &TempDir, clock: &Arc<ModelClock>) -> State {
    let options = StateOptions {
        directory: dir.path().to_owned(),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
    };
    State::open(&options).expect("open")
}

pub(crate) fn key(session: usize) -> SessionKey {
    SessionKey::parse(SESSIONS[session].0).expect("a key")
}

pub(crate) fn address(session: usize) -> SessionAddress {
    let agent = AgentId::parse(SESSIONS[session].1).expect("an agent");
    SessionAddress::resolve(key(session), &agent).expect("an address")
}
