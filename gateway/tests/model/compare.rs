//! Everything that can be seen of both, compared.

use tidings_gateway::state::{Effect, SignalsPage, StateError, StatusRead};
use tidings_protocol::session_api::{MAX_CHANGES, MAX_SIGNALS_PER_PAGE, Notice, WatchFilter};
use tidings_protocol::{ActorType, SignalKind};

use crate::oracle::{Event, Wake};
use crate::steps::{Actor, SESSIONS, WATCHERS};
use crate::world::{World, address, key};

/// How far back the log is listed after each step.
const LISTED: u64 = 20;

impl World {
    /// After a step.
    pub(crate) async fn compare(&mut self) {
        self.compare_wakes().await;
        self.compare_watches().await;
        for watcher in 0..WATCHERS {
            let notices = self.state.notices(key(watcher)).await.expect("notices");
            same_notices(&notices.notices, &self.model.pending(watcher));
        }
        for session in 0..SESSIONS.len() {
            let pruned = self.model.pruned(session);
            self.compare_since(session, pruned).await;
            if pruned > 0 {
                self.compare_since(session, pruned - 1).await;
            }
        }
        self.compare_log().await;
        assert_eq!(*self.state.head().borrow(), self.model.last_sequence);
    }

    /// The end of the log as an operator lists it, of all sessions and of one key.
    async fn compare_log(&self) {
        let after = self.model.last_sequence.saturating_sub(LISTED);
        for session in [None, Some(4)] {
            let page = SignalsPage {
                session: session.map(key),
                after,
                limit: MAX_SIGNALS_PER_PAGE,
            };
            let listed: Vec<_> = self
                .state
                .signals(page)
                .await
                .expect("signals")
                .into_iter()
                .map(|row| {
                    let of = (row.session_key.to_string(), row.agent_id);
                    (row.sequence, of, row.kind, row.actor_id, row.recorded_at)
                })
                .collect();
            let of = |event: &Event| SESSIONS[event.session];
            let same_key = |event: &&Event| session.is_none_or(|at| of(event).0 == SESSIONS[at].0);
            let expected: Vec<_> = self
                .model
                .log
                .iter()
                .filter(|event| event.sequence > after)
                .filter(same_key)
                .map(|event| {
                    let (key, agent) = of(event);
                    let of = (key.to_owned(), agent.to_owned());
                    let actor = actor_id(event.actor);
                    (event.sequence, of, event.kind, actor, event.recorded_at)
                })
                .collect();
            assert_eq!(listed, expected);
        }
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

    /// What changed in a session since a version of it.
    pub(crate) async fn compare_since(&self, session: usize, version: u64) {
        let (head, pruned) = (self.model.head(session), self.model.pruned(session));
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
            .map(|event| {
                let actor = (actor_type(event.actor), actor_id(event.actor));
                let summary = summary(event.kind).to_owned();
                (
                    event.sequence,
                    event.kind,
                    actor,
                    summary,
                    event.occurred_at,
                )
            })
            .collect();
        let truncated = expected.len() > MAX_CHANGES;
        let expected = &expected[..expected.len().min(MAX_CHANGES)];
        assert_eq!(changes.truncated, truncated);
        let last = expected.last().map(|event| event.0);
        assert_eq!(changes.next_since, last.filter(|_| truncated));
        let events: Vec<_> = changes
            .events
            .iter()
            .map(|event| {
                let actor = (event.actor_type, event.actor_id.clone());
                let summary = event.summary.clone();
                (
                    event.sequence,
                    event.kind,
                    actor,
                    summary,
                    event.occurred_at,
                )
            })
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

/// What is said of each kind where nobody says anything else.
fn summary(kind: SignalKind) -> &'static str {
    match kind {
        SignalKind::HumanDirectMessage => "human message via unknown",
        SignalKind::UpstreamMissing => "upstream missing via unknown",
        SignalKind::GoalChanged => "goal updated",
        SignalKind::ChildSpawned => "child session spawned",
        SignalKind::RunCompleted => "child run completed",
        SignalKind::RunFailed => "child run failed",
        SignalKind::Compacted => "session compacted",
        SignalKind::Adopted => "adopted from unknown",
    }
}

fn actor_type(actor: Actor) -> ActorType {
    match actor {
        Actor::Human => ActorType::Human,
        Actor::System => ActorType::System,
        Actor::Session(_) => ActorType::Agent,
    }
}

fn actor_id(actor: Actor) -> Option<String> {
    match actor {
        Actor::Session(session) => Some(SESSIONS[session].0.to_owned()),
        Actor::Human | Actor::System => None,
    }
}

pub(crate) fn same_notices(notices: &[Notice], expected: &[(usize, u64)]) {
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
