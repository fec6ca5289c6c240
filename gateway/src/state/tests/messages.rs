//! Messages that are sent: stored, and no more than may wait.

use super::*;
use crate::state::{Dispatched, MAX_MESSAGE_BYTES, MAX_WAITING_MESSAGES, StateError};

const W: &str = "agent:main:w";
const T: &str = "agent:main:t";

/// A message from a session that wants to watch.
fn watching(sender: Option<&str>) -> NewMessage {
    NewMessage {
        sender: sender.map(address),
        watch: Watching::FromDispatch,
        ..message(T, "Please rebase.")
    }
}

impl Fixture {
    async fn send(&self, message: NewMessage) -> Result<Dispatched, StateError> {
        self.state.send(message).await
    }
}

#[tokio::test]
async fn a_message_is_for_a_session_that_exists_and_makes_its_sender_exist() {
    let fixture = Fixture::new();
    let refused = fixture.send(message(T, "m")).await;
    assert_eq!(refused, Err(StateError::UnknownSession(T.to_owned())));
    assert_eq!(fixture.state.session_exists(address(T)).await, Ok(false));
    // Kept events are enough.
    fixture.change(T).await;
    fixture.send(message(T, "m")).await.expect("sent");
    let from = NewMessage {
        sender: Some(address(W)),
        ..message(T, "m")
    };
    fixture.send(from).await.expect("sent");
    assert_eq!(fixture.state.session_exists(address(W)).await, Ok(true));
}

#[tokio::test]
async fn an_operators_message_is_a_humans_and_a_sessions_is_not() {
    let fixture = Fixture::new();
    fixture.state.ensure_session(address(T)).await.expect("t");
    fixture.send(message(T, "unwatched")).await.expect("sent");
    assert_eq!(fixture.log(T).await, []);
    fixture.watch(W, T).await;
    fixture.queue(T, Some("agent:ops:main"), "m").await;
    assert_eq!(fixture.log(T).await, []);
    assert_eq!(fixture.pending(W).await, []);
    fixture.send(message(T, "watched")).await.expect("sent");
    let line = "human message via cli".to_owned();
    assert_eq!(
        fixture.log(T).await,
        [(SignalKind::HumanDirectMessage, line)]
    );
    assert_eq!(fixture.pending(W).await.len(), 1);
}

#[tokio::test]
async fn a_sender_watches_from_the_moment_of_dispatch() {
    let fixture = Fixture::new();
    let before = fixture.change(T).await;
    let sent = fixture.send(watching(Some(W))).await.expect("sent");
    let watched = sent.watched.expect("asked for");
    assert!(watched.watched);
    assert_eq!(watched.from_version, Some(before));
    assert_eq!(fixture.pending(W).await, []);
    fixture.change(T).await;
    assert_eq!(sequences(&fixture.pending(W).await), [before]);
    // Sending again keeps what is pending.
    fixture.send(watching(Some(W))).await.expect("sent");
    assert_eq!(sequences(&fixture.pending(W).await), [before]);
}

#[tokio::test]
async fn a_watch_that_cannot_be_is_refused_with_a_reason_and_the_message_goes() {
    let fixture = Fixture::new();
    fixture.change(T).await;
    for sender in [None, Some("cron:nightly"), Some(T)] {
        let sent = fixture.send(watching(sender)).await.expect("sent");
        let watched = sent.watched.expect("asked for");
        assert!(!watched.watched && watched.reason.is_some(), "{sender:?}");
    }
    assert_eq!(fixture.number("SELECT count(*) FROM cursors"), 0);
    assert_eq!(fixture.number("SELECT count(*) FROM messages"), 3);
    let refused = NewMessage {
        target: address("agent:main:nobody"),
        ..watching(Some(W))
    };
    assert!(fixture.send(refused).await.is_err());
    assert_eq!(fixture.number("SELECT count(*) FROM cursors"), 0);
}

#[tokio::test]
async fn a_message_for_another_conversation_is_not_sent() {
    let fixture = Fixture::new();
    let ensured = fixture.state.ensure_session(address(T)).await.expect("t");
    let expecting = |id: &str| NewMessage {
        expected_session_id: Some(id.to_owned()),
        ..message(T, "m")
    };
    fixture
        .send(expecting(&ensured.session_id))
        .await
        .expect("sent");
    fixture
        .state
        .reset_session(address(T))
        .await
        .expect("reset");
    let refused = fixture.send(expecting(&ensured.session_id)).await;
    assert_eq!(refused, Err(StateError::OtherConversation(T.to_owned())));
    assert_eq!(fixture.number("SELECT count(*) FROM messages"), 1);
}

#[tokio::test]
async fn a_message_says_something_and_has_a_limit() {
    let fixture = Fixture::new();
    fixture.change(T).await;
    let largest = "m".repeat(MAX_MESSAGE_BYTES);
    fixture.send(message(T, &largest)).await.expect("sent");
    for bad in ["", " \n", &(largest + "canary")] {
        match fixture.send(message(T, bad)).await {
            Err(StateError::Invalid(reason)) => assert!(!reason.contains("canary")),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn no_more_messages_wait_than_may() {
    let fixture = Fixture::new();
    fixture.change(T).await;
    for _ in 0..MAX_WAITING_MESSAGES {
        fixture.send(message(T, "m")).await.expect("sent");
    }
    let refused = fixture.send(message(T, "m")).await;
    assert_eq!(refused, Err(StateError::QueueFull(T.to_owned())));
    let begun = fixture.state.turn_begin(address(T)).await.expect("a turn");
    let confirmed = fixture.state.turn_confirm(begun.token.expect("a lease"));
    confirmed.await.expect("confirmed");
    fixture.send(message(T, "m")).await.expect("sent again");
}

#[tokio::test]
async fn what_a_message_says_is_not_in_its_debug_output() {
    let debug = format!("{:?}", message(T, "canary"));
    assert!(debug.contains(T) && !debug.contains("canary"), "{debug}");
}
