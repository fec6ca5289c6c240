//! What the log forgets, and what it still knows then.

use super::*;
use crate::state::{Retention, SignalsPage};

const T: &str = "agent:main:t";

impl Fixture {
    async fn prune(&self, max_rows: u64, recorded_since: Option<EpochMs>) -> u64 {
        let retention = Retention {
            max_rows,
            recorded_since,
        };
        self.state.prune(retention).await.expect("pruned")
    }
}

#[tokio::test]
async fn a_prefix_goes_the_head_stays_and_the_gap_is_exact() {
    let fixture = Fixture::new();
    for _ in 0..50 {
        fixture.change(T).await;
        fixture.change("agent:main:other").await;
    }
    assert_eq!(fixture.prune(100, None).await, 0);
    assert_eq!(fixture.prune(30, None).await, 70);
    assert_eq!(fixture.prune(30, None).await, 0);
    assert_eq!(fixture.state.oldest_signal().await, Ok(Some(71)));
    let ask = async |version| {
        let answer = fixture.state.session_status(since(T, version, None)).await;
        let status = answer.expect("status").status;
        (status.state_version, status.state_changes.expect("changes"))
    };
    // Its own last pruned row is 69; sparse numbers are no gap.
    for (version, gap) in [(0, true), (68, true), (69, false), (70, false)] {
        let (head, changes) = ask(version).await;
        assert_eq!(head, 99);
        assert_eq!(changes.history_gap, gap, "{version}");
        assert_eq!(changes.earliest_available_sequence, 71, "{version}");
    }
    let page = SignalsPage {
        session: Some(key(T)),
        after: 0,
        limit: 1,
    };
    let rows = fixture.state.signals(page).await.expect("a page");
    assert_eq!(rows[0].sequence, 71);
}

#[tokio::test]
async fn a_log_pruned_to_nothing_goes_on_with_new_numbers() {
    let fixture = Fixture::new();
    fixture
        .state
        .ensure_session(address(T))
        .await
        .expect("made");
    fixture.change(T).await;
    let last = fixture.change(T).await;
    assert_eq!(fixture.prune(0, None).await, 2);
    let fixture = fixture.reopened().await;
    assert_eq!(*fixture.state.head().borrow(), last);
    let answer = fixture.state.session_status(since(T, 1, None)).await;
    let status = answer.expect("status").status;
    assert_eq!(status.state_version, last);
    let changes = status.state_changes.expect("changes");
    assert_eq!(changes.earliest_available_sequence, last + 1);
    assert!(changes.history_gap);
    assert_eq!(fixture.change(T).await, last + 1);
}

#[tokio::test]
async fn age_takes_what_was_recorded_before_and_its_evidence_with_it() {
    let fixture = Fixture::new();
    fixture.local_node().await;
    let adopted = fixture.adopt("t1").await;
    fixture
        .watch("agent:main:w", adopted.session_key.as_str())
        .await;
    fixture
        .report(report(adopted.link.id, 1, spoken(&[START])))
        .await;
    fixture.queue(T, None, "m").await;
    let begun = fixture.state.turn_begin(address(T)).await.expect("a turn");
    let confirmed = fixture.state.turn_confirm(begun.token.expect("a lease"));
    confirmed.await.expect("confirmed");
    fixture.clock.pass(1_000);
    fixture.change(T).await;
    let now = fixture.clock.now();
    assert_eq!(fixture.prune(1_000, None).await, 0, "age pauses");
    assert_eq!(fixture.prune(1_000, Some(START)).await, 0);
    assert_eq!(fixture.prune(1_000, Some(now)).await, 2);
    assert_eq!(fixture.number("SELECT count(*) FROM evidence"), 0);
    assert_eq!(fixture.number("SELECT count(*) FROM messages"), 0);
    assert_eq!(fixture.prune(1_000, Some(now + 1)).await, 1);
}

#[tokio::test]
async fn a_clock_that_was_ahead_for_a_while_keeps_the_prefix_a_prefix() {
    let fixture = Fixture::new();
    fixture.change(T).await;
    fixture.clock.pass(10_000);
    fixture.change(T).await;
    fixture.clock.0.lock().expect("clock").0 = START + 1;
    fixture.change(T).await;
    // The second is young: nothing behind it goes, old as the third claims to be.
    assert_eq!(fixture.prune(1_000, Some(START + 5_000)).await, 1);
    assert_eq!(fixture.state.oldest_signal().await, Ok(Some(2)));
}
