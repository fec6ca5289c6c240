//! `tidings sessions history`

use insta::assert_snapshot;
use tidings_protocol::session_api::{History, HistoryItem, HistoryRole, Reply};

use crate::fake::Fake;
use crate::run::with;
use crate::values::{TIME, key};

fn history(items: Vec<HistoryItem>, before: Option<u64>) -> Fake {
    Fake::answering(Reply::SessionsHistory(History {
        session_key: key("agent:main:main"),
        items,
        before,
    }))
}

fn items() -> Vec<HistoryItem> {
    let said = HistoryItem {
        role: HistoryRole::User,
        text: "Are the tests green?\u{1b}[31m".into(),
        at: Some(TIME),
        cut: false,
    };
    let answered = HistoryItem {
        role: HistoryRole::Assistant,
        text: "All of them:\none, two".into(),
        at: None,
        cut: true,
    };
    vec![said, answered]
}

#[test]
fn history_shows_who_said_what_and_how_to_read_on() {
    let fake = history(items(), Some(4_096));
    assert_snapshot!(with(&fake, "sessions history agent:main:main --limit 2 --tools"), @"
    exit 0
    --- stdout
    user  2026-11-30 21:05:03 UTC
    Are the tests green?�[31m

    assistant
    All of them:
    one, two […]

    --- stderr
    hint: what precedes it: tidings sessions history agent:main:main --before 4096
    --- asked
    SessionsHistory(SessionsHistory { session_key: agent:main:main, agent: None, limit: Some(2), before: None, tools: true })
    ");
    assert_snapshot!(with(&fake, "sessions history agent:main:main --before 9000 --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"sessionKey":"agent:main:main","items":[{"role":"user","text":"Are the tests green?\u001b[31m","at":1796072703123,"cut":false},{"role":"assistant","text":"All of them:\none, two","cut":true}],"before":4096}
    --- stderr
    --- asked
    SessionsHistory(SessionsHistory { session_key: agent:main:main, agent: None, limit: None, before: Some(9000), tools: false })
    "#);
}

#[test]
fn nothing_said_is_no_output() {
    let fake = history(Vec::new(), None);
    assert_snapshot!(with(&fake, "sessions history agent:main:main"), @"
    exit 0
    --- stdout
    --- stderr
    nothing was said
    --- asked
    SessionsHistory(SessionsHistory { session_key: agent:main:main, agent: None, limit: None, before: None, tools: false })
    ");
}
