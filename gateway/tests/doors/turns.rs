//! Turns: what they take, and what becomes of it.

use tidings_protocol::session_api::{
    ErrorType, LeaseRef, Request, SessionsSend, SpeakerRef, StatusQuery, TurnBegun, TurnSettled,
};

use crate::served::{Served, ask, body, key, message, refused, speak, speaker, watch};

const WATCHER: &str = "agent:main:main";
const TARGET: &str = "agent:ops:main";

async fn begin(connection: &mut tidings_node::cli::Connection) -> TurnBegun {
    body!(
        ask(connection, Request::TurnBegin(speaker(WATCHER))).await,
        TurnBegin
    )
}

fn lease(begun: &TurnBegun) -> LeaseRef {
    LeaseRef {
        token: begun.token.clone().expect("a token"),
    }
}

fn settled(notices: u64, messages: u64) -> TurnSettled {
    TurnSettled { notices, messages }
}

#[tokio::test]
async fn a_turn_takes_what_is_there_once_and_confirms_it() {
    let served = Served::start();
    let mut door = served.connect().await;
    watch(&mut door, WATCHER, TARGET).await;
    speak(&mut door, TARGET).await;
    let send = Request::SessionsSend(SessionsSend {
        sender: Some(key(TARGET)),
        ..message(WATCHER, "Please rebase.\n")
    });
    let id = body!(ask(&mut door, send).await, SessionsSend).message_id;

    let begun = begin(&mut door).await;

    let token = begun.token.as_deref().expect("a token");
    let is_lower_hex = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    assert!(
        token.len() == 32 && token.chars().all(is_lower_hex),
        "{token}"
    );
    let [notice] = begun.notices.as_slice() else {
        panic!("{begun:?}");
    };
    assert_eq!(
        (notice.text.as_str(), notice.changes_since),
        (
            "Session \"agent:ops:main\" changed (other actor). Reconcile before acting: \
             session_status sessionKey \"agent:ops:main\" changesSince 0.",
            0
        )
    );
    let [message] = begun.messages.as_slice() else {
        panic!("{begun:?}");
    };
    assert_eq!(
        (message.id, message.body.as_str()),
        (id, "Please rebase.\n")
    );
    assert_eq!(message.sender, Some(key(TARGET)));

    assert_eq!(begin(&mut door).await, TurnBegun::default());
    for expected in [settled(1, 1), settled(0, 0)] {
        let confirm = Request::TurnConfirm(lease(&begun));
        assert_eq!(body!(ask(&mut door, confirm).await, TurnSettled), expected);
    }
    assert_eq!(begin(&mut door).await, TurnBegun::default());
}

#[tokio::test]
async fn what_a_turn_gives_back_is_handed_out_again_as_it_was() {
    let served = Served::start();
    let mut door = served.connect().await;
    watch(&mut door, WATCHER, TARGET).await;
    speak(&mut door, TARGET).await;
    let first = begin(&mut door).await;

    let release = Request::TurnRelease(lease(&first));
    assert_eq!(
        body!(ask(&mut door, release).await, TurnSettled),
        settled(1, 0)
    );

    let second = begin(&mut door).await;
    assert_eq!(second.notices, first.notices);
    assert_ne!(second.token, first.token);
    // It was handed out again: the first turn has nothing to confirm any more.
    let late = Request::TurnConfirm(lease(&first));
    assert_eq!(
        body!(ask(&mut door, late).await, TurnSettled),
        settled(0, 0)
    );
}

#[tokio::test]
async fn the_watchers_own_status_confirms_what_its_turn_was_told() {
    for (reader, left) in [(None, 1), (Some(TARGET), 1), (Some(WATCHER), 0)] {
        let served = Served::start();
        let mut door = served.connect().await;
        watch(&mut door, WATCHER, TARGET).await;
        speak(&mut door, TARGET).await;
        let begun = begin(&mut door).await;

        let query = StatusQuery {
            session_key: key(TARGET),
            agent: None,
            changes_since: Some(0),
            reader: reader.map(key),
        };
        let status = ask(&mut door, Request::SessionStatus(query)).await;
        let changes = body!(status, SessionStatus).state_changes.expect("changes");
        assert_eq!(changes.events.len(), 1);

        let confirm = Request::TurnConfirm(lease(&begun));
        let confirmed = body!(ask(&mut door, confirm).await, TurnSettled);
        assert_eq!(confirmed, settled(left, 0), "read by {reader:?}");
    }
}

#[tokio::test]
async fn a_text_that_is_no_token_is_refused_and_an_unknown_token_settles_nothing() {
    let served = Served::start();
    let mut door = served.connect().await;
    for token in ["", "0", "no token", &"07".repeat(15), &"07".repeat(17)] {
        let lease = LeaseRef {
            token: token.to_owned(),
        };
        for request in [
            Request::TurnConfirm(lease.clone()),
            Request::TurnRelease(lease),
        ] {
            let error = refused(&mut door, request).await;
            assert_eq!(error.error_type, ErrorType::InvalidRequest, "{token:?}");
        }
    }
    let unknown = Request::TurnConfirm(LeaseRef {
        token: "07".repeat(16),
    });
    let nothing = body!(ask(&mut door, unknown).await, TurnSettled);
    assert_eq!(nothing, settled(0, 0));
}

#[tokio::test]
async fn a_turn_runs_until_it_is_ended_and_belongs_to_one_agent() {
    let served = Served::start();
    let mut door = served.connect().await;
    let bare = |agent: Option<&str>| SpeakerRef {
        session_key: Some(key("global")),
        agent: agent.map(str::to_owned),
    };
    ask(&mut door, Request::TurnBegin(bare(Some("ops")))).await;
    for (agent, expected) in [
        (None, false),
        (Some("main"), false),
        (Some("ops"), true),
        (Some("ops"), false),
    ] {
        let end = Request::TurnEnd(bare(agent));
        let ended = body!(ask(&mut door, end).await, TurnEnd);
        assert_eq!(ended.ended, expected, "{agent:?}");
    }
    let error = refused(&mut door, Request::TurnBegin(bare(Some("two words")))).await;
    assert_eq!(error.error_type, ErrorType::InvalidRequest);
}
