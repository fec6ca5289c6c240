//! Registering, ending and expiring watches.

use tidings_protocol::session_api::{WatchFilter, Watched};

use super::*;

const W: &str = "agent:main:w";
const T: &str = "agent:main:t";
const DAY: EpochMs = 24 * 60 * 60 * 1_000;
const MONTH: Duration = Duration::from_hours(30 * 24);

#[tokio::test]
async fn a_watch_begins_at_the_head_and_makes_its_watcher_a_session() {
    let fixture = Fixture::new();
    fixture.change(T).await;
    let head = fixture.change(T).await;
    let watched = fixture.state.watch_add(key(W), address(T)).await;
    assert_eq!(
        watched,
        Ok(Watched {
            watched: true,
            from_version: Some(head),
            reason: None
        })
    );
    assert_eq!(fixture.pending(W).await, [], "history never notifies");
    let session = fixture.state.ensure_session(address(W)).await.expect("w");
    assert!(!session.created);
}

#[tokio::test]
async fn a_watch_that_cannot_be_is_refused_with_its_reason() {
    let fixture = Fixture::new();
    fixture.change(T).await;
    fixture.change("global").await;
    for (watcher, target, reason) in [
        (T, T, "does not watch itself"),
        ("global", T, "agent-qualified"),
        ("cron:nightly", T, "agent-qualified"),
        (W, "agent:main:nobody", "there is no session"),
    ] {
        let refused = fixture
            .state
            .watch_add(key(watcher), address(target))
            .await
            .expect("an answer");
        assert!(!refused.watched);
        let given = refused.reason.expect("a reason");
        assert!(given.contains(reason), "{given}");
    }
    assert_eq!(fixture.number("SELECT count(*) FROM cursors"), 0);
    assert_eq!(fixture.number("SELECT count(*) FROM entries"), 0);
}

#[tokio::test]
async fn watching_again_keeps_what_is_pending_and_makes_a_spawn_watch_explicit() {
    let fixture = Fixture::new();
    fixture
        .record(T, SignalKind::ChildSpawned, Actor::Agent(key(W)))
        .await;
    fixture.change(T).await;
    let before = fixture.pending(W).await;
    assert_eq!(before.len(), 1);
    let again = fixture.state.watch_add(key(W), address(T)).await;
    assert_eq!(again.expect("watched").from_version, Some(1));
    assert_eq!(fixture.pending(W).await, before);
    let watches = fixture.state.watches(WatchFilter::default()).await;
    let watches = watches.expect("watches").watches;
    assert_eq!(watches.len(), 1);
    assert_eq!(watches[0].provenance, "explicit");
    assert!(watches[0].pending);
}

#[tokio::test]
async fn watches_are_listed_by_watcher_and_target_and_end_when_asked() {
    let fixture = Fixture::new();
    for target in ["agent:main:a", "agent:main:b"] {
        fixture.change(target).await;
        for watcher in ["agent:main:x", "agent:main:y"] {
            fixture.watch(watcher, target).await;
        }
    }
    let list = async |watcher: Option<&str>, target: Option<&str>| {
        let filter = WatchFilter {
            watcher: watcher.map(key),
            target: target.map(key),
        };
        let watches = fixture
            .state
            .watches(filter)
            .await
            .expect("watches")
            .watches;
        watches
            .iter()
            .map(|watch| format!("{} {}", watch.watcher, watch.target))
            .collect::<Vec<_>>()
    };
    assert_eq!(list(None, None).await.len(), 4);
    assert_eq!(
        list(Some("agent:main:x"), None).await,
        ["agent:main:x agent:main:a", "agent:main:x agent:main:b"]
    );
    let remove = async || {
        let removed = fixture
            .state
            .watch_remove(key("agent:main:x"), address("agent:main:a"))
            .await;
        removed.expect("an answer").removed
    };
    assert!(remove().await);
    assert!(!remove().await);
    assert_eq!(
        list(None, Some("agent:main:a")).await,
        ["agent:main:y agent:main:a"]
    );
}

#[tokio::test]
async fn a_watch_expires_when_neither_it_nor_its_watcher_moved() {
    let fixture = Fixture::new();
    for target in ["agent:main:a", "agent:main:b", "agent:main:c"] {
        fixture.change(target).await;
    }
    fixture.watch("agent:main:idle", "agent:main:a").await;
    fixture.watch("agent:main:turning", "agent:main:b").await;
    fixture.watch("agent:main:told", "agent:main:c").await;
    fixture.clock.pass(29 * DAY);
    let turning = address("agent:main:turning");
    fixture.state.turn_begin(turning).await.expect("a turn");
    fixture.change("agent:main:c").await;
    assert_eq!(fixture.state.expire_watches(MONTH).await, Ok(0));
    fixture.clock.pass(DAY);
    assert_eq!(fixture.state.expire_watches(MONTH).await, Ok(1));
    let watches = fixture.state.watches(WatchFilter::default()).await;
    let left: Vec<_> = watches
        .expect("watches")
        .watches
        .iter()
        .map(|watch| watch.watcher.to_string())
        .collect();
    assert_eq!(left, ["agent:main:told", "agent:main:turning"]);
}

#[tokio::test]
async fn watching_again_refreshes_the_expiry() {
    let fixture = Fixture::new();
    fixture.change(T).await;
    fixture.watch(W, T).await;
    fixture.clock.pass(29 * DAY);
    fixture.watch(W, T).await;
    fixture.clock.pass(2 * DAY);
    assert_eq!(fixture.state.expire_watches(MONTH).await, Ok(0));
}
