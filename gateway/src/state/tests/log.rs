//! Recording, and reading back what changed.

use tidings_protocol::session_api::{Recorded, StateChanges};
use tidings_protocol::signal::{Payload, RunOutcome, Summary};

use super::*;
use crate::state::{SignalsPage, StateError};

#[tokio::test]
async fn a_signal_reads_back_as_recorded_and_the_log_says_who_when_and_why() {
    let fixture = Fixture::new();
    let sender = key("agent:main:boss");
    let signal = NewSignal {
        run_id: Some("run-1".to_owned()),
        occurred_at: Some(START - 60_000),
        payload: Payload {
            outcome: Some(RunOutcome::Timeout),
            ..Payload::default()
        },
        ..NewSignal::new(
            address("agent:main:child"),
            SignalKind::RunFailed,
            Actor::Agent(sender.clone()),
        )
    };
    let recorded = fixture.state.record(signal).await.expect("recorded");
    let page = SignalsPage {
        limit: 10,
        ..SignalsPage::default()
    };
    let rows = fixture.state.signals(page).await.expect("a page");
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(Some(row.sequence), recorded.sequence);
    assert_eq!(row.session_key, key("agent:main:child"));
    assert_eq!(row.agent_id, "main");
    assert_eq!(row.actor_id, Some(sender.to_string()));
    assert_eq!(row.run_id.as_deref(), Some("run-1"));
    assert_eq!(row.summary, "child run timed out");
    assert_eq!(row.occurred_at, START - 60_000);
    assert_eq!(row.recorded_at, START);
    let outcome = row.payload.as_ref().and_then(|payload| payload.outcome);
    assert_eq!(outcome, Some(RunOutcome::Timeout));
    assert_eq!(*fixture.state.head().borrow(), row.sequence);
}

#[tokio::test]
async fn a_repeat_of_a_dedupe_key_answers_with_the_row_of_that_session() {
    let fixture = Fixture::new();
    let signal = |session: &str, kind| NewSignal {
        dedupe_key: Some("d".to_owned()),
        ..NewSignal::new(address(session), kind, Actor::System)
    };
    let record = async |session: &str, kind| {
        let recorded = fixture.state.record(signal(session, kind)).await;
        recorded.expect("recorded")
    };
    let first = record("agent:main:a", SignalKind::Compacted).await;
    let other = record("agent:main:b", SignalKind::Compacted).await;
    assert!(first.recorded && other.recorded);
    // Whatever the kind, and whoever watches: a human message to nobody, too.
    for kind in [
        SignalKind::Compacted,
        SignalKind::GoalChanged,
        SignalKind::HumanDirectMessage,
    ] {
        let again = record("agent:main:a", kind).await;
        assert_eq!(again.sequence, first.sequence, "{kind}");
        assert!(!again.recorded, "{kind}");
    }
}

#[tokio::test]
async fn a_repeat_moves_no_cursor() {
    let fixture = Fixture::new();
    fixture.change("agent:main:a").await;
    fixture.watch("agent:main:w", "agent:main:a").await;
    let signal = NewSignal {
        dedupe_key: Some("d".to_owned()),
        ..NewSignal::new(
            address("agent:main:a"),
            SignalKind::GoalChanged,
            Actor::Human,
        )
    };
    fixture.state.record(signal.clone()).await.expect("first");
    assert_eq!(fixture.drain("agent:main:w").await.len(), 1);
    fixture.state.record(signal).await.expect("repeat");
    assert_eq!(fixture.drain("agent:main:w").await, []);
}

#[tokio::test]
async fn a_human_message_is_recorded_only_where_somebody_watches() {
    let fixture = Fixture::new();
    let human = SignalKind::HumanDirectMessage;
    fixture.change("agent:main:a").await;
    let unwatched = fixture.record("agent:main:a", human, Actor::Human).await;
    assert_eq!(
        unwatched,
        Recorded {
            recorded: false,
            sequence: None,
            reason: Some("nobody watches this session".to_owned()),
        }
    );
    fixture.watch("agent:main:w", "agent:main:a").await;
    let watched = fixture.record("agent:main:a", human, Actor::Human).await;
    assert!(watched.recorded);
}

#[tokio::test]
async fn the_same_bare_key_of_two_agents_is_two_sessions() {
    let fixture = Fixture::new();
    let of = |name: &str| SessionAddress::resolve(key("global"), &agent(name)).expect("an address");
    for (name, count) in [("a", 2), ("b", 1)] {
        for _ in 0..count {
            let signal = NewSignal::new(of(name), SignalKind::Compacted, Actor::System);
            fixture.state.record(signal).await.expect("recorded");
        }
    }
    let read = |session| StatusRead {
        session,
        changes_since: Some(0),
        reader: None,
    };
    for (name, count) in [("a", 2), ("b", 1)] {
        let answer = fixture.state.session_status(read(of(name))).await;
        let changes = answer.expect("status").status.state_changes;
        assert_eq!(changes.expect("changes").events.len(), count, "{name}");
    }
    let page = SignalsPage {
        session: Some(key("global")),
        after: 1,
        limit: 10,
    };
    let rows = fixture.state.signals(page).await.expect("a page");
    let agents: Vec<_> = rows.iter().map(|row| row.agent_id.as_str()).collect();
    assert_eq!(agents, ["a", "b"]);
}

#[tokio::test]
async fn a_page_of_changes_ends_at_two_hundred_and_says_where_to_go_on() {
    let fixture = Fixture::new();
    for _ in 0..201 {
        fixture.change("agent:main:a").await;
    }
    let ask = async |version| {
        let answer = fixture
            .state
            .session_status(since("agent:main:a", version, None))
            .await
            .expect("status");
        (answer.status.state_version, answer.status.state_changes)
    };
    let (version, first) = ask(0).await;
    let first = first.expect("changes");
    assert_eq!((version, first.events.len()), (201, 200));
    assert!(first.truncated && !first.history_gap);
    assert_eq!(first.next_since, Some(200));
    assert_eq!(first.earliest_available_sequence, 1);
    let (_, rest) = ask(200).await;
    let rest = rest.expect("changes");
    assert_eq!(rest.events.len(), 1);
    assert!(!rest.truncated);
    assert_eq!(rest.next_since, None);
    // A version above the head: nothing, and no gap.
    let (_, beyond) = ask(9_999).await;
    assert_eq!(
        beyond,
        Some(StateChanges {
            events: Vec::new(),
            truncated: false,
            next_since: None,
            earliest_available_sequence: 1,
            history_gap: false,
        })
    );
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_and_writes_nothing() {
    let fixture = Fixture::new();
    fixture.change("agent:main:a").await;
    let negative = fixture
        .state
        .session_status(since("agent:main:a", -1, None))
        .await;
    assert!(matches!(negative, Err(StateError::Invalid(_))));
    let unknown = fixture
        .state
        .session_status(since("agent:main:nobody", 0, None))
        .await;
    assert_eq!(
        unknown,
        Err(StateError::UnknownSession("agent:main:nobody".to_owned()))
    );
    let why = fixture.state.signal_why(77).await;
    assert_eq!(why, Err(StateError::UnknownSignal(77)));
    for dedupe_key in ["", "a\nb", &"x".repeat(513)] {
        let signal = NewSignal {
            dedupe_key: Some(dedupe_key.to_owned()),
            ..NewSignal::new(
                address("agent:main:a"),
                SignalKind::GoalChanged,
                Actor::Human,
            )
        };
        let refused = fixture.state.record(signal).await;
        assert!(matches!(refused, Err(StateError::Invalid(_))));
    }
    assert_eq!(fixture.number("SELECT count(*) FROM events"), 1);
}

#[tokio::test]
async fn a_summary_given_by_hand_stands_instead_of_the_kinds_own() {
    let fixture = Fixture::new();
    let signal = NewSignal {
        summary: Summary::from_text("goal cleared"),
        ..NewSignal::new(
            address("agent:main:a"),
            SignalKind::GoalChanged,
            Actor::Human,
        )
    };
    fixture.state.record(signal).await.expect("recorded");
    let answer = fixture
        .state
        .session_status(since("agent:main:a", 0, None))
        .await
        .expect("status");
    let changes = answer.status.state_changes.expect("changes");
    assert_eq!(changes.events[0].summary, "goal cleared");
}

#[tokio::test]
async fn operators_find_the_names_and_columns_that_were_promised() {
    let fixture = Fixture::new();
    fixture.local_node().await;
    fixture.adopt("t1").await;
    fixture
        .watch("agent:main:w", "agent:main:adopted:claude:local:t1")
        .await;
    for (sql, rows) in [
        (
            "SELECT count(*) FROM (SELECT sequence, session_key, agent_id, session_id, kind,
                actor_type, actor_id, run_id, occurred_at, recorded_at, summary, payload,
                dedupe_key FROM session_state_events)",
            1,
        ),
        (
            "SELECT count(*) FROM (SELECT session_key, agent_id, last_sequence, pruned_sequence
                FROM session_state_heads)",
            1,
        ),
        (
            "SELECT count(*) FROM (SELECT watcher_session_key, target_session_key,
                target_agent_id, last_seen_sequence, notified_sequence, material_sequence,
                provenance, created_at, updated_at FROM session_watch_cursors)",
            1,
        ),
        ("SELECT count(*) FROM session_upstream_links", 1),
        ("SELECT count(*) FROM session_entries", 2),
        ("SELECT count(*) FROM session_messages", 0),
        ("SELECT count(*) FROM nodes", 1),
        ("SELECT count(*) FROM node_certificates", 1),
        ("SELECT count(*) FROM join_codes", 0),
        ("SELECT count(*) FROM api_tokens", 0),
        ("SELECT count(*) FROM cron_runs", 0),
        ("SELECT count(*) FROM audit_log", 0),
        ("SELECT count(*) FROM evidence", 0),
    ] {
        assert_eq!(fixture.number(sql), rows, "{sql}");
    }
}
