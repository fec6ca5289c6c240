//! Sessions that the gateway itself runs.

use super::*;
use crate::state::{ContextSize, NewChild, RunBy, RunSession, TurnCost};
use tidings_protocol::session_api::ChildRuntime;

fn message(target: &SessionAddress) -> NewMessage {
    NewMessage {
        target: target.clone(),
        sender: None,
        body: "Stop the mill.".to_owned(),
        watch: Watching::Unchanged,
        expected_session_id: None,
    }
}

#[tokio::test]
async fn at_a_start_what_turns_held_is_available_again_and_no_turn_runs() {
    let fixture = Fixture::new();
    let state = &fixture.state;
    let (own, other) = (address("agent:main:main"), address("agent:main:other"));
    for session in [&own, &other] {
        state.ensure_session(session.clone()).await.expect("entry");
        state.send(message(session)).await.expect("sent");
        let begun = state.turn_begin(session.clone()).await.expect("turn");
        assert_eq!(begun.messages.len(), 1);
    }
    state.run_session(own.clone()).await.expect("marked");
    for (session, is_run) in [(&own, true), (&other, false)] {
        let found = state.is_run_session(session.clone()).await.expect("read");
        assert_eq!(found, is_run, "{session}");
    }

    let fixture = fixture.reopened().await;
    let state = &fixture.state;
    let resumed = state.resume_run_sessions().await.expect("resumed");
    assert_eq!(
        resumed,
        [RunSession {
            session: own.clone(),
            was_running: true,
            has_messages: true,
            is_child: false,
        }]
    );
    let again = state.turn_begin(own.clone()).await.expect("turn");
    assert_eq!(again.messages.len(), 1, "released");
    let held = state.turn_begin(other).await.expect("turn");
    assert_eq!(held.messages.len(), 0, "somebody else's lease stands");

    assert!(state.delete_session(own.clone()).await.expect("deleted"));
    assert!(!state.is_run_session(own).await.expect("read"));
}

#[tokio::test]
async fn a_child_that_the_gateway_runs_is_known_as_such_from_the_start() {
    let fixture = Fixture::new();
    let state = &fixture.state;
    for (run_by, is_run) in [(RunBy::Gateway, true), (RunBy::Anybody, false)] {
        let child = NewChild {
            parent: address("agent:main:main"),
            agent: AgentId::parse("main").expect("agent"),
            runtime: ChildRuntime::Subagent,
            label: None,
            task: "Count.".to_owned(),
            run_by,
        };
        let spawned = state.spawn(child).await.expect("spawned");
        let found = state.is_run_session(spawned.session).await.expect("read");
        assert_eq!(found, is_run, "{run_by:?}");
    }
    let resumed = state.resume_run_sessions().await.expect("resumed");
    assert_eq!(resumed.len(), 1);
    assert!(resumed[0].is_child && resumed[0].has_messages && !resumed[0].was_running);
}

#[tokio::test]
async fn what_turns_cost_adds_up_and_the_context_is_that_of_the_last() {
    let fixture = Fixture::new();
    let (state, session) = (&fixture.state, address("agent:main:main"));
    state.ensure_session(session.clone()).await.expect("entry");
    let context = |tokens, estimated| Some(ContextSize { tokens, estimated });
    for context in [context(120, true), context(90, false), None] {
        let cost = TurnCost {
            input: 100,
            output: 7,
            context,
        };
        state
            .count_turn(session.clone(), cost)
            .await
            .expect("counted");
    }
    state.note_flush(session.clone()).await.expect("noted");
    let entry = state.session_entry(session).await.expect("entry").entry;
    let entry: serde_json::Value = serde_json::from_str(&entry).expect("json");
    for (member, value) in [
        ("inputTokens", 300),
        ("outputTokens", 21),
        ("totalTokens", 321),
        ("contextTokens", 90),
        ("memoryFlushAt", START),
        ("memoryFlushCompactionCount", 0),
    ] {
        assert_eq!(entry[member], value, "{member}");
    }
    assert_eq!(entry["contextTokensEstimated"], false);
}
