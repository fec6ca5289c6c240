//! Who is told, once, and of what.

use super::*;
use crate::state::RollOver;

const W: &str = "agent:main:w";
const T: &str = "agent:main:t";

/// A target with one event and a watcher on it.
async fn watched() -> Fixture {
    let fixture = Fixture::new();
    fixture.change(T).await;
    fixture.watch(W, T).await;
    fixture
}

#[tokio::test]
async fn twenty_changes_give_one_notice_with_the_exact_line_and_one_wake() {
    let fixture = watched().await;
    let mut effects = fixture.state.subscribe();
    for _ in 0..20 {
        fixture.change(T).await;
    }
    let pending = fixture.pending(W).await;
    assert_eq!(pending.len(), 1);
    assert_eq!(
        pending[0].text,
        "Session \"agent:main:t\" changed (other actor). Reconcile before acting: \
         session_status sessionKey \"agent:main:t\" changesSince 1."
    );
    assert_eq!(woken(&mut effects), [(W.to_owned(), T.to_owned())]);
    assert_eq!(fixture.drain(W).await, pending);
    // The twenty were one notice; what came in after its mark is one more.
    assert_eq!(sequences(&fixture.drain(W).await), [2]);
    assert_eq!(fixture.drain(W).await, []);
}

#[tokio::test]
async fn what_comes_between_notice_and_drain_opens_exactly_one_notice_more() {
    let fixture = watched().await;
    let mut effects = fixture.state.subscribe();
    let second = fixture.change(T).await;
    fixture.change(T).await;
    fixture.change(T).await;
    assert_eq!(sequences(&fixture.drain(W).await), [1]);
    assert_eq!(woken(&mut effects).len(), 2, "pending, and reopened");
    assert_eq!(sequences(&fixture.drain(W).await), [second]);
    assert_eq!(fixture.drain(W).await, []);
}

#[tokio::test]
async fn a_watcher_is_not_told_of_its_own_doing() {
    let fixture = watched().await;
    fixture
        .record(T, SignalKind::GoalChanged, Actor::Agent(key(W)))
        .await;
    assert_eq!(fixture.pending(W).await, []);
    fixture
        .record(
            T,
            SignalKind::GoalChanged,
            Actor::Agent(key("agent:main:x")),
        )
        .await;
    assert_eq!(fixture.pending(W).await.len(), 1);
}

#[tokio::test]
async fn history_kinds_tell_nobody() {
    let fixture = watched().await;
    for kind in SignalKind::ALL {
        if !kind.notifies() {
            fixture.record(T, kind, Actor::System).await;
        }
    }
    assert_eq!(fixture.pending(W).await, []);
}

#[tokio::test]
async fn a_spawned_child_tells_its_parent_and_a_nested_parent_is_not_woken() {
    let fixture = Fixture::new();
    let mut effects = fixture.state.subscribe();
    let (parent, child) = ("agent:main:subagent:p", "agent:main:subagent:c");
    let spawned = fixture
        .record(child, SignalKind::ChildSpawned, Actor::Agent(key(parent)))
        .await;
    assert_eq!(fixture.pending(parent).await, []);
    // The parent watches, so a human's message to the child is recorded.
    let message = fixture
        .record(child, SignalKind::HumanDirectMessage, Actor::Human)
        .await;
    assert!(message.recorded);
    let notices = fixture.pending(parent).await;
    assert_eq!(Some(notices[0].changes_since), spawned.sequence);
    assert_eq!(woken(&mut effects), []);
    assert_eq!(fixture.state.wakes().await, Ok(Vec::new()));
}

#[tokio::test]
async fn notices_come_back_from_the_cursors_after_a_restart_with_the_same_bytes() {
    let fixture = watched().await;
    fixture.change(T).await;
    let before = fixture.pending(W).await;
    let fixture = fixture.reopened().await;
    assert_eq!(fixture.pending(W).await, before);
    let wakes = fixture.state.wakes().await.expect("wakes");
    assert_eq!(
        wakes,
        [Wake {
            watcher: key(W),
            target: key(T)
        }]
    );
    assert_eq!(fixture.drain(W).await, before);
}

#[tokio::test]
async fn twenty_watchers_of_one_target_are_told_once_each() {
    let fixture = Fixture::new();
    fixture.change(T).await;
    let watchers: Vec<String> = (0..20).map(|n| format!("agent:main:w{n}")).collect();
    for watcher in &watchers {
        fixture.watch(watcher, T).await;
    }
    let mut effects = fixture.state.subscribe();
    fixture.change(T).await;
    fixture.change(T).await;
    assert_eq!(woken(&mut effects).len(), 20);
    for watcher in &watchers {
        assert_eq!(sequences(&fixture.drain(watcher).await), [1], "{watcher}");
    }
}

#[tokio::test]
async fn a_key_without_cursors_has_no_notices() {
    let fixture = Fixture::new();
    assert_eq!(fixture.pending("agent:main:nobody").await, []);
    assert_eq!(fixture.drain("agent:main:nobody").await, []);
}

#[tokio::test]
async fn a_roll_over_keeps_the_watch_and_drops_what_was_pending() {
    let fixture = watched().await;
    fixture.change(T).await;
    let last = fixture.change(T).await;
    let dropped = fixture
        .state
        .roll_over_session(RollOver::of(address(W)))
        .await;
    assert_eq!(dropped, Ok(Some(1)));
    assert_eq!(fixture.pending(W).await, []);
    fixture.change(T).await;
    assert_eq!(sequences(&fixture.pending(W).await), [last]);
}

#[tokio::test]
async fn a_reset_of_the_watcher_ends_its_watches_and_begins_a_new_conversation() {
    let fixture = watched().await;
    let before = fixture.state.ensure_session(address(W)).await.expect("w");
    fixture.change(T).await;
    let reset = fixture
        .state
        .reset_session(address(W))
        .await
        .expect("reset");
    assert_eq!(reset.watches_ended, 1);
    assert_eq!(fixture.pending(W).await, []);
    fixture.change(T).await;
    assert_eq!(fixture.pending(W).await, []);
    let after = fixture.state.ensure_session(address(W)).await.expect("w");
    assert!(!after.created);
    assert_ne!(after.session_id, before.session_id);
}
