//! Children: spawned with a task; how their runs end.

use tidings_protocol::session_api::{ChildRuntime, RunEnd, RunEnded};
use tidings_protocol::signal::RunOutcome;

use super::*;
use crate::state::{FinishedRun, NewChild, RunBy, SpawnedChild, StateError};

const P: &str = "agent:main:main";

fn child(runtime: ChildRuntime) -> NewChild {
    NewChild {
        parent: address(P),
        agent: agent("ops"),
        runtime,
        label: Some(" run\nthe tests ".to_owned()),
        task: "Run the canary tests.".to_owned(),
        run_by: RunBy::default(),
    }
}

fn finished(child: &SpawnedChild, outcome: RunEnd) -> FinishedRun {
    FinishedRun {
        session: child.session.clone(),
        outcome,
        result: Some("All canaries are green.".to_owned()),
        run_id: None,
        caller: None,
    }
}

impl Fixture {
    async fn spawned(&self) -> SpawnedChild {
        let child = self.state.spawn(child(ChildRuntime::Subagent)).await;
        child.expect("a child")
    }

    async fn finish(&self, run: FinishedRun) -> RunEnded {
        self.state.finish_run(run).await.expect("an answer")
    }

    /// What waits for a session, as sender and text.
    async fn waiting(&self, session: &str) -> Vec<(Option<SessionKey>, String)> {
        let begun = self.state.turn_begin(address(session)).await;
        let messages = begun.expect("a turn").messages;
        messages.into_iter().map(|m| (m.sender, m.body)).collect()
    }
}

#[tokio::test]
async fn a_child_has_its_key_its_entry_its_task_and_its_parents_watch() {
    for (runtime, prefix) in [
        (ChildRuntime::Subagent, "agent:ops:subagent:"),
        (ChildRuntime::Acp, "agent:ops:acp:"),
    ] {
        let fixture = Fixture::new();
        let spawned = fixture.state.spawn(child(runtime)).await.expect("a child");
        let session = spawned.session.to_string();
        let uuid = session.strip_prefix(prefix).expect("the runtime's key");
        assert_eq!(uuid.len(), 36);

        let entry = fixture.entry(&session).await;
        assert_eq!(entry["sessionId"], spawned.session_id);
        assert_eq!(entry["spawnedBy"], P);
        assert_eq!(entry["parentSessionKey"], P);
        assert_eq!(entry["label"], "run the tests");
        assert_eq!(fixture.state.session_exists(address(P)).await, Ok(true));

        let line = "child session spawned".to_owned();
        assert_eq!(
            fixture.log(&session).await,
            [(SignalKind::ChildSpawned, line)]
        );
        let actor = "SELECT count(*) FROM session_state_events
                     WHERE actor_type = 'agent' AND actor_id = 'agent:main:main'";
        assert_eq!(fixture.number(actor), 1);
        let seeded = "SELECT last_seen_sequence FROM session_watch_cursors
                      WHERE watcher_session_key = 'agent:main:main' AND provenance = 'spawn'";
        assert_eq!(fixture.number(seeded).cast_unsigned(), spawned.sequence);
        assert_eq!(fixture.pending(P).await, []);

        let task = (Some(key(P)), "Run the canary tests.".to_owned());
        assert_eq!(fixture.waiting(&session).await, [task]);
        fixture.change(&session).await;
        assert_eq!(fixture.pending(P).await.len(), 1);
    }
}

#[tokio::test]
async fn a_bare_parent_has_children_and_is_told_nothing() {
    let fixture = Fixture::new();
    let global = NewChild {
        parent: address("global"),
        ..child(ChildRuntime::Subagent)
    };
    let spawned = fixture.state.spawn(global).await.expect("a child");
    assert!(!spawned.watched);
    fixture.change(spawned.session.key().as_str()).await;
    assert_eq!(fixture.number("SELECT count(*) FROM cursors"), 0);
    assert_eq!(fixture.log(spawned.session.key().as_str()).await.len(), 2);
    assert!(fixture.spawned().await.watched);
    assert_eq!(fixture.number("SELECT count(*) FROM cursors"), 1);
}

#[tokio::test]
async fn a_task_says_something_and_nothing_is_made_where_it_does_not() {
    let fixture = Fixture::new();
    for task in [String::new(), "t".repeat(128 * 1024 + 1)] {
        let bad = NewChild {
            task,
            ..child(ChildRuntime::Acp)
        };
        let refused = fixture.state.spawn(bad).await;
        assert!(matches!(refused, Err(StateError::Invalid(_))));
    }
    assert_eq!(fixture.number("SELECT count(*) FROM entries"), 0);
}

#[tokio::test]
async fn the_end_of_a_run_is_recorded_and_the_parent_gets_one_message_with_the_result() {
    for (end, kind, line, outcome) in [
        (
            RunEnd::Completed,
            SignalKind::RunCompleted,
            "child run completed",
            None,
        ),
        (
            RunEnd::Error,
            SignalKind::RunFailed,
            "child run failed",
            Some(RunOutcome::Error),
        ),
        (
            RunEnd::Timeout,
            SignalKind::RunFailed,
            "child run timed out",
            Some(RunOutcome::Timeout),
        ),
        (
            RunEnd::Cancelled,
            SignalKind::RunFailed,
            "child run cancelled",
            Some(RunOutcome::Cancelled),
        ),
    ] {
        let fixture = Fixture::new();
        let spawned = fixture.spawned().await;
        let session = spawned.session.to_string();
        fixture
            .state
            .turn_begin(spawned.session.clone())
            .await
            .expect("a turn");

        let ended = fixture.finish(finished(&spawned, end)).await;

        assert_eq!(ended.parent, Some(key(P)));
        let page = SignalsPage {
            session: Some(key(&session)),
            after: spawned.sequence,
            limit: 10,
        };
        let signals = fixture.state.signals(page).await.expect("signals");
        let [signal] = signals.as_slice() else {
            panic!("{signals:?}");
        };
        assert_eq!(Some(signal.sequence), ended.sequence);
        assert_eq!((signal.kind, signal.summary.as_str()), (kind, line));
        let payload = signal.payload.clone().unwrap_or_default();
        assert_eq!(payload.outcome, outcome);
        assert_eq!(fixture.pending(P).await, [], "it is history, no notice");

        let waiting = fixture.waiting(P).await;
        let [(sender, body)] = waiting.as_slice() else {
            panic!("{waiting:?}");
        };
        assert_eq!(sender.as_ref(), Some(spawned.session.key()));
        assert!(body.ends_with("\n\nAll canaries are green."), "{body}");
        let running = fixture.state.turn_end(spawned.session.clone()).await;
        assert_eq!(running, Ok(false), "its turn has ended");
        let canary = "SELECT count(*) FROM session_state_events
                      WHERE summary LIKE '%canar%' OR payload LIKE '%canar%'";
        assert_eq!(fixture.number(canary), 0);
    }
}

#[tokio::test]
async fn the_same_end_again_gets_the_same_answer_and_does_nothing_twice() {
    let fixture = Fixture::new();
    let spawned = fixture.spawned().await;
    let first = fixture.finish(finished(&spawned, RunEnd::Completed)).await;
    for end in [RunEnd::Completed, RunEnd::Timeout] {
        assert_eq!(fixture.finish(finished(&spawned, end)).await, first);
    }
    assert_eq!(fixture.waiting(P).await.len(), 1);
    // Another run of the same child is another end.
    let run = |id: &str| FinishedRun {
        run_id: Some(id.to_owned()),
        ..finished(&spawned, RunEnd::Error)
    };
    let second = fixture.finish(run("r1")).await;
    assert!(second.sequence > first.sequence);
    assert_eq!(fixture.finish(run("r1")).await, second);
    assert!(fixture.finish(run("r2")).await.sequence > second.sequence);
    assert_eq!(fixture.number("SELECT count(*) FROM messages"), 4);
}

#[tokio::test]
async fn a_run_without_a_result_still_tells_the_parent_how_it_ended() {
    let fixture = Fixture::new();
    let spawned = fixture.spawned().await;
    let silent = FinishedRun {
        result: None,
        ..finished(&spawned, RunEnd::Timeout)
    };
    fixture.finish(silent).await;
    let waiting = fixture.waiting(P).await;
    assert!(waiting[0].1.ends_with("(run the tests) timed out."));
}

#[tokio::test]
async fn a_parent_that_is_gone_gets_no_message() {
    let fixture = Fixture::new();
    let spawned = fixture.spawned().await;
    fixture
        .state
        .delete_session(address(P))
        .await
        .expect("gone");
    let ended = fixture.finish(finished(&spawned, RunEnd::Completed)).await;
    assert_eq!(ended.parent, None);
    assert_eq!(fixture.state.session_exists(address(P)).await, Ok(false));
    assert_eq!(fixture.log(spawned.session.key().as_str()).await.len(), 2);
}

#[tokio::test]
async fn only_a_childs_run_is_reported() {
    let fixture = Fixture::new();
    let spawned = fixture.spawned().await;
    let of = |session: &str| FinishedRun {
        session: address(session),
        ..finished(&spawned, RunEnd::Completed)
    };
    let refused = fixture.state.finish_run(of("agent:main:nobody")).await;
    assert!(matches!(refused, Err(StateError::UnknownSession(_))));
    let refused = fixture.state.finish_run(of(P)).await;
    assert!(matches!(refused, Err(StateError::Invalid(_))));
}

#[tokio::test]
async fn a_run_is_reported_by_the_child_its_parent_or_an_operator() {
    for (caller, permitted) in [
        (None, true),
        (Some(P), true),
        (Some("the child"), true),
        (Some("agent:main:other"), false),
    ] {
        let fixture = Fixture::new();
        let spawned = fixture.spawned().await;
        let caller = caller.map(|caller| match caller {
            "the child" => spawned.session.key().clone(),
            other => key(other),
        });
        let run = FinishedRun {
            caller: caller.clone(),
            ..finished(&spawned, RunEnd::Completed)
        };
        match fixture.state.finish_run(run).await {
            Ok(_) => assert!(permitted, "{caller:?}"),
            Err(StateError::NotPermitted(_)) => assert!(!permitted, "{caller:?}"),
            Err(error) => panic!("{error}"),
        }
    }
}
