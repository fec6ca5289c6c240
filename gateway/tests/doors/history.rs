//! The newest part of a conversation, for who asks for text.

use std::path::PathBuf;

use serde_json::Value;
use tidings_node::cli::Connection;
use tidings_protocol::session_api::{ErrorType, History, Request, SessionEntry, SessionsHistory};

use crate::served::{Served, ask, body, key, refused, session, speaker};

const KEY: &str = "agent:main:main";

fn wanted() -> SessionsHistory {
    SessionsHistory {
        session_key: key(KEY),
        agent: None,
        limit: None,
        before: None,
        tools: false,
    }
}

async fn history(door: &mut Connection, wanted: SessionsHistory) -> History {
    body!(
        ask(door, Request::SessionsHistory(wanted)).await,
        SessionsHistory
    )
}

/// Makes the session; answers where its transcript is to be.
async fn begin(served: &Served, door: &mut Connection) -> PathBuf {
    ask(door, Request::TurnBegin(speaker(KEY))).await;
    let shown = ask(door, Request::SessionShow(session(KEY))).await;
    let entry: SessionEntry = *body!(shown, SessionShow);
    let entry: Value = serde_json::from_str(&entry.entry).expect("json");
    let id = entry["sessionId"].as_str().expect("an id");
    let dir = served.dir.path().join("agents/main/sessions");
    std::fs::create_dir_all(&dir).expect("a directory");
    dir.join(format!("{id}.jsonl"))
}

#[tokio::test]
async fn a_session_of_the_gateways_own_is_read_from_its_transcript() {
    let served = Served::start();
    let mut door = served.connect().await;
    let error = refused(&mut door, Request::SessionsHistory(wanted())).await;
    assert_eq!(error.error_type, ErrorType::NotFound);

    let path = begin(&served, &mut door).await;
    assert_eq!(history(&mut door, wanted()).await.items, [], "nothing yet");
    let lines = [
        r#"{"type":"session","id":"s"}"#,
        r#"{"type":"message","message":{"role":"user","content":"password=hunter22"}}"#,
        r#"{"type":"message","message":{"role":"toolResult","content":"an output"}}"#,
        r#"{"type":"message","message":{"role":"assistant","content":"Done."}}"#,
    ];
    std::fs::write(&path, lines.join("\n") + "\n").expect("a transcript");

    let page = history(&mut door, wanted()).await;
    let texts: Vec<_> = page.items.iter().map(|item| item.text.0.as_str()).collect();
    assert_eq!(texts, ["password=[redacted]", "Done."]);
    assert_eq!(page.before, None);

    let with_tools = SessionsHistory {
        tools: true,
        limit: Some(2),
        ..wanted()
    };
    let page = history(&mut door, with_tools.clone()).await;
    let texts: Vec<_> = page.items.iter().map(|item| item.text.0.as_str()).collect();
    assert_eq!(texts, ["an output", "Done."]);
    let older = SessionsHistory {
        before: page.before,
        ..with_tools
    };
    assert!(older.before.is_some());
    assert_eq!(history(&mut door, older).await.items.len(), 1);
}

#[tokio::test]
async fn a_page_has_a_limit_and_only_a_regular_file_is_read() {
    let served = Served::start();
    let mut door = served.connect().await;
    let path = begin(&served, &mut door).await;
    for limit in [0, 51] {
        let request = Request::SessionsHistory(SessionsHistory {
            limit: Some(limit),
            ..wanted()
        });
        let error = refused(&mut door, request).await;
        assert_eq!(error.error_type, ErrorType::InvalidRequest);
    }
    std::fs::create_dir(&path).expect("a directory in its place");
    let error = refused(&mut door, Request::SessionsHistory(wanted())).await;
    assert_eq!(error.error_type, ErrorType::InvalidData);
}
