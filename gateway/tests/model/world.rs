//! The real thing and its model, side by side.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tidings_gateway::state::{
    AgentId, Effect, NewSignal, Retention, SessionAddress, State, StateError, StateOptions,
    StatusRead, TurnToken,
};
use tidings_node::clock::Clock;
use tidings_protocol::session_api::{Notice, WatchFilter};
use tidings_protocol::{EpochMs, SessionKey, SignalKind};
use tokio::sync::broadcast;

use crate::oracle::{Oracle, RETENTION_MS, Recorded, Wake};
use crate::steps::{Actor, SESSIONS, Since, Step, WATCHERS};

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
    state: State,
    effects: broadcast::Receiver<Effect>,
    model: Oracle,
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
            } => self.record(*session, *kind, *actor, *parent, *dedupe).await,
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
        assert_eq!(self.state.check_integrity().await, Ok(Vec::new()));
        self.state.close().await;
    }

    async fn record(
        &mut self,
        session: usize,
        kind: SignalKind,
        actor: Actor,
        parent: Option<usize>,
        dedupe: Option<u8>,
    ) {
        let by = match actor {
            Actor::Human => tidings_protocol::Actor::Human,
            Actor::System => tidings_protocol::Actor::System,
            Actor::Session(session) => tidings_protocol::Actor::Agent(key(session)),
        };
        let signal = NewSignal {
            parent: parent.map(key),
            dedupe_key: dedupe.map(|dedupe| format!("d{dedupe}")),
            ..NewSignal::new(address(session), kind, by)
        };
        let recorded = self.state.record(signal).await.expect("record");
        let recorded = match (recorded.recorded, recorded.sequence) {
            (true, Some(sequence)) => Recorded::New(sequence),
            (false, Some(sequence)) => Recorded::Repeat(sequence),
            (_, None) => Recorded::Unwatched,
        };
        assert_eq!(
            recorded,
            self.model.record(session, kind, actor, parent, dedupe)
        );
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
                self.state.roll_over_session(at).await.map(drop)
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

    async fn compare(&mut self) {
        self.compare_wakes().await;
        self.compare_watches().await;
        for watcher in 0..WATCHERS {
            let notices = self.state.notices(key(watcher)).await.expect("notices");
            same_notices(&notices.notices, &self.model.pending(watcher));
        }
        for session in 0..SESSIONS.len() {
            self.compare_session(session).await;
        }
        assert_eq!(*self.state.head().borrow(), self.model.last_sequence);
    }

    /// The wakes that went out with this step, and those that a new subscriber would get.
    async fn compare_wakes(&mut self) {
        let mut wakes: Vec<Wake> = Vec::new();
        while let Ok(effect) = self.effects.try_recv() {
            if let Effect::Wake(wake) = effect {
                wakes.push((wake.watcher.to_string(), wake.target.to_string()));
            }
        }
        let mut expected = std::mem::take(&mut self.model.wakes);
        wakes.sort();
        expected.sort();
        assert_eq!(wakes, expected);

        let wakes = self.state.wakes().await.expect("wakes");
        let mut wakes: Vec<Wake> = wakes
            .iter()
            .map(|wake| (wake.watcher.to_string(), wake.target.to_string()))
            .collect();
        let mut expected: Vec<Wake> = (0..WATCHERS)
            .filter(|watcher| !SESSIONS[*watcher].0.contains(":subagent:"))
            .flat_map(|watcher| {
                let available = self.model.available(watcher).into_iter();
                available.map(move |(target, _)| (watcher, target))
            })
            .map(|(watcher, target)| {
                (
                    SESSIONS[watcher].0.to_owned(),
                    SESSIONS[target].0.to_owned(),
                )
            })
            .collect();
        wakes.sort();
        expected.sort();
        assert_eq!(wakes, expected);
    }

    async fn compare_watches(&self) {
        let watches = self.state.watches(WatchFilter::default()).await;
        let mut watches: Vec<_> = watches
            .expect("watches")
            .watches
            .iter()
            .map(|watch| {
                (
                    (watch.watcher.to_string(), watch.target.to_string()),
                    watch.target_agent_id.clone(),
                    (
                        watch.last_seen_sequence,
                        watch.notified_sequence,
                        watch.material_sequence,
                    ),
                    watch.provenance == "spawn",
                    (watch.created_at, watch.updated_at),
                )
            })
            .collect();
        let mut expected: Vec<_> = self
            .model
            .cursors
            .iter()
            .map(|((watcher, target), cursor)| {
                let (by, (on, agent)) = (SESSIONS[*watcher].0, SESSIONS[*target]);
                (
                    (by.to_owned(), on.to_owned()),
                    agent.to_owned(),
                    (cursor.l, cursor.n, cursor.m),
                    cursor.spawned,
                    (cursor.created_at, cursor.updated_at),
                )
            })
            .collect();
        watches.sort();
        expected.sort();
        assert_eq!(watches, expected);
    }

    async fn compare_session(&self, session: usize) {
        let (head, pruned) = (self.model.head(session), self.model.pruned(session));
        let mut versions = vec![pruned.saturating_sub(1), pruned, head];
        versions.dedup();
        for version in versions {
            let read = StatusRead {
                session: address(session),
                changes_since: Some(version.try_into().expect("small")),
                reader: None,
            };
            let status = match self.state.session_status(read).await {
                Ok(answer) => answer.status,
                Err(error) => {
                    let unknown = StateError::UnknownSession(SESSIONS[session].0.to_owned());
                    assert_eq!(error, unknown);
                    assert!(!self.model.exists(session), "{:?}", SESSIONS[session]);
                    return;
                }
            };
            assert!(self.model.exists(session), "{:?}", SESSIONS[session]);
            assert_eq!(status.state_version, head);
            let changes = status.state_changes.expect("changes");
            let kept = || self.model.log.iter().filter(|e| e.session == session);
            let expected: Vec<_> = kept()
                .filter(|event| event.sequence > version)
                .map(|event| (event.sequence, event.kind, actor_id(event.actor)))
                .collect();
            let events: Vec<_> = changes
                .events
                .iter()
                .map(|event| (event.sequence, event.kind, event.actor_id.clone()))
                .collect();
            assert_eq!(events, expected);
            assert_eq!(changes.history_gap, version < pruned);
            let after_head = if head > 0 { head + 1 } else { 0 };
            let earliest = kept().map(|event| event.sequence).next();
            assert_eq!(
                changes.earliest_available_sequence,
                earliest.unwrap_or(after_head)
            );
        }
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

fn key(session: usize) -> SessionKey {
    SessionKey::parse(SESSIONS[session].0).expect("a key")
}

fn address(session: usize) -> SessionAddress {
    let agent = AgentId::parse(SESSIONS[session].1).expect("an agent");
    SessionAddress::resolve(key(session), &agent).expect("an address")
}

fn actor_id(actor: Actor) -> Option<String> {
    match actor {
        Actor::Session(session) => Some(SESSIONS[session].0.to_owned()),
        Actor::Human | Actor::System => None,
    }
}

fn same_notices(notices: &[Notice], expected: &[(usize, u64)]) {
    let texts: Vec<_> = notices.iter().map(|notice| notice.text.clone()).collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|(target, seen)| {
            let target = SESSIONS[*target].0;
            format!(
                "Session \"{target}\" changed (other actor). Reconcile before acting: \
                 session_status sessionKey \"{target}\" changesSince {seen}."
            )
        })
        .collect();
    assert_eq!(texts, expected);
}
