//! Inputs and compactions that a session says it got.

use tidings_protocol::session_api::Recorded;

use super::*;
use crate::awareness::actor::Provenance;
use crate::state::{Compacted, Compaction, NewInput};

const W: &str = "agent:main:w";
const S: &str = "agent:main:s";

fn input(provenance: Provenance) -> NewInput {
    NewInput {
        session: address(S),
        provenance,
        channel: Some("telegram".to_owned()),
        occurred_at: None,
        dedupe_key: None,
    }
}

impl Fixture {
    async fn input(&self, input: NewInput) -> Recorded {
        self.state.record_input(input).await.expect("an answer")
    }

    async fn spoken_at(&self) -> Option<EpochMs> {
        self.entry(S).await["lastInteractionAt"].as_i64()
    }
}

#[tokio::test]
async fn a_humans_input_makes_the_session_and_is_a_signal_once_somebody_watches() {
    let fixture = Fixture::new();
    let unwatched = fixture.input(input(Provenance::External)).await;
    assert_eq!((unwatched.recorded, unwatched.sequence), (false, None));
    assert_eq!(fixture.spoken_at().await, Some(START), "it was said");
    fixture.watch(W, S).await;
    fixture.clock.pass(5);
    let watched = fixture.input(input(Provenance::External)).await;
    assert_eq!((watched.recorded, watched.sequence), (true, Some(1)));
    let line = "human message via telegram".to_owned();
    assert_eq!(
        fixture.log(S).await,
        [(SignalKind::HumanDirectMessage, line)]
    );
    assert_eq!(fixture.pending(W).await.len(), 1);
    assert_eq!(fixture.spoken_at().await, Some(START + 5));
}

#[tokio::test]
async fn what_no_human_said_is_no_signal_and_keeps_no_conversation_fresh() {
    let fixture = Fixture::new();
    fixture.input(input(Provenance::External)).await;
    fixture.watch(W, S).await;
    for provenance in [
        Provenance::InterSession(key(W)),
        Provenance::InterSession(key("agent:ops:main")),
        Provenance::InternalSystem,
    ] {
        fixture.clock.pass(10);
        let recorded = fixture.input(input(provenance)).await;
        assert!(!recorded.recorded && recorded.reason.is_some());
        assert_eq!(fixture.spoken_at().await, Some(START));
        let updated = fixture.entry(S).await["updatedAt"].as_i64();
        assert_eq!(updated, Some(fixture.clock.now()));
    }
    assert_eq!(fixture.log(S).await, []);
    assert_eq!(fixture.pending(W).await, []);
}

#[tokio::test]
async fn an_input_is_recorded_once_under_its_dedupe_key() {
    let fixture = Fixture::new();
    fixture.input(input(Provenance::External)).await;
    fixture.watch(W, S).await;
    let keyed = |provenance| NewInput {
        dedupe_key: Some("telegram:7".to_owned()),
        ..input(provenance)
    };
    let first = fixture.input(keyed(Provenance::External)).await;
    assert!(first.recorded);
    fixture.drain(W).await;
    fixture.clock.pass(10);
    // The look-up comes before the question who said it.
    for provenance in [Provenance::External, Provenance::InternalSystem] {
        let again = fixture.input(keyed(provenance)).await;
        assert_eq!((again.recorded, again.sequence), (false, first.sequence));
    }
    assert_eq!(fixture.pending(W).await, []);
    assert_eq!(fixture.spoken_at().await, Some(START));
}

#[tokio::test]
async fn a_channel_that_is_blank_is_unknown_and_a_time_is_bounded() {
    let fixture = Fixture::new();
    fixture.input(input(Provenance::External)).await;
    fixture.watch(W, S).await;
    let blank = NewInput {
        channel: Some(" \n".to_owned()),
        occurred_at: Some(START + 1_000_000),
        ..input(Provenance::External)
    };
    fixture.input(blank).await;
    assert_eq!(fixture.log(S).await[0].1, "human message via unknown");
    assert_eq!(fixture.number("SELECT occurred_at FROM events"), START);
    assert_eq!(fixture.spoken_at().await, Some(START));
}

#[tokio::test]
async fn a_compaction_makes_the_session_tells_nobody_and_is_counted_where_it_was_automatic() {
    let fixture = Fixture::new();
    let compaction = |automatic, dedupe_key: Option<&str>| Compaction {
        session: address(S),
        automatic,
        dedupe_key: dedupe_key.map(str::to_owned),
        left: None,
    };
    let record = async |compaction| {
        let recorded = fixture.state.record_compaction(compaction).await;
        recorded.expect("an answer")
    };
    assert!(record(compaction(true, Some("c1"))).await.recorded);
    fixture.watch(W, S).await;
    let again = record(compaction(true, Some("c1"))).await;
    assert_eq!((again.recorded, again.sequence), (false, Some(1)));
    assert!(record(compaction(false, None)).await.recorded);
    assert!(record(compaction(true, None)).await.recorded);
    assert_eq!(fixture.entry(S).await["compactionCount"], 2);
    let line = (SignalKind::Compacted, "session compacted".to_owned());
    assert_eq!(fixture.log(S).await, [line.clone(), line.clone(), line]);
    let actors = "SELECT count(*) FROM session_state_events WHERE actor_type = 'system'";
    assert_eq!(fixture.number(actors), 3);
    assert_eq!(fixture.pending(W).await, []);
}

#[tokio::test]
async fn what_a_compaction_left_is_written_with_it_and_a_new_conversation_begins_without() {
    let fixture = Fixture::new();
    let entry = r#"{"sessionId":"s","updatedAt":1,"memoryFlushCompactionCount":0}"#;
    let entries = vec![(address(S), serde_json::from_str(entry).expect("an entry"))];
    fixture.state.add_entries(entries).await.expect("added");
    let compaction = Compaction {
        session: address(S),
        automatic: true,
        dedupe_key: Some("c".to_owned()),
        left: Some(Compacted {
            context_tokens: 77,
            session_file: Some("next.jsonl".to_owned()),
        }),
    };
    let recorded = fixture.state.record_compaction(compaction.clone()).await;
    assert!(recorded.expect("an answer").recorded);
    let entry = fixture.entry(S).await;
    assert_eq!(entry["contextTokens"], 77);
    assert_eq!(entry["sessionFile"], "next.jsonl");
    assert_eq!(entry["compactionCount"], 1);
    assert_eq!(entry.get("memoryFlushCompactionCount"), None);
    // What is recorded already changes nothing.
    let repeated = Compaction {
        left: Some(Compacted {
            context_tokens: 5,
            session_file: None,
        }),
        ..compaction
    };
    fixture
        .state
        .record_compaction(repeated)
        .await
        .expect("an answer");
    assert_eq!(fixture.entry(S).await["contextTokens"], 77);
    fixture
        .state
        .reset_session(address(S))
        .await
        .expect("reset");
    let entry = fixture.entry(S).await;
    assert_eq!(
        (entry.get("contextTokens"), entry.get("sessionFile")),
        (None, None)
    );
    assert_eq!(entry["compactionCount"], 1);
}

#[tokio::test]
async fn what_a_human_says_upstream_is_recorded_from_there_alone() {
    let fixture = Fixture::new();
    fixture.local_node().await;
    let adopted = fixture.adopt("t1").await;
    fixture.watch(W, adopted.session_key.as_str()).await;
    let said = NewInput {
        session: address(adopted.session_key.as_str()),
        ..input(Provenance::External)
    };
    let recorded = fixture.input(said).await;
    assert!(!recorded.recorded && recorded.reason.is_some());
    assert_eq!(fixture.pending(W).await, []);
    fixture
        .report(report(adopted.link.id, 1, spoken(&[START])))
        .await;
    assert_eq!(fixture.pending(W).await.len(), 1);
}
