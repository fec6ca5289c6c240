//! Talking to a session, and compacting one.

use tidings_protocol::session_api::{
    Chat, ChatDone, ChatNews, ChatUsage, Reply, Request, SessionCompact, SessionCompacted,
};

use super::parts::key;
use super::requests::bare_key;

/// Samples of the requests.
pub(super) fn requests() -> Vec<(&'static str, Request)> {
    let chat = Chat {
        session_key: None,
        agent: None,
        message: "Is the mill running?".into(),
    };
    let full = Chat {
        session_key: Some(bare_key()),
        agent: Some("coder".into()),
        ..chat.clone()
    };
    let compact = SessionCompact {
        session_key: key("main"),
        agent: None,
        instructions: None,
    };
    let instructed = SessionCompact {
        session_key: bare_key(),
        agent: Some("coder".into()),
        instructions: Some("Keep the port numbers.".into()),
    };
    vec![
        ("to the main session", Request::Chat(chat)),
        ("with everything", Request::Chat(full)),
        ("all of it", Request::SessionCompact(compact)),
        ("with instructions", Request::SessionCompact(instructed)),
    ]
}

/// Samples of the replies.
pub(super) fn replies() -> Vec<(&'static str, Reply)> {
    let done = ChatDone {
        reply: Some("It is.".into()),
        session_key: key("main"),
        usage: ChatUsage {
            input_tokens: 1_234,
            output_tokens: 56,
            context_tokens: 1_290,
            context_window: 200_000,
            estimated: true,
        },
        compacted: Some(true),
    };
    let silent = ChatDone {
        reply: None,
        session_key: key("main"),
        usage: ChatUsage::default(),
        compacted: None,
    };
    let compacted = SessionCompacted {
        session_key: key("main"),
        compacted: true,
        tokens_before: 180_000,
        tokens_after: 21_000,
    };
    let text = "It is".into();
    let note = "compacted".to_owned();
    vec![
        ("a piece of text", Reply::Chat(ChatNews::Text { text })),
        ("a note", Reply::Chat(ChatNews::Note { text: note })),
        ("the end", Reply::Chat(ChatNews::Done(done))),
        ("a silent end", Reply::Chat(ChatNews::Done(silent))),
        ("session_compact", Reply::SessionCompact(compacted)),
    ]
}
