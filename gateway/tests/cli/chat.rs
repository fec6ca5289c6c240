//! `tidings chat`, `tidings sessions compact`

use tidings_protocol::session_api::{
    ApiError, ChatDone, ChatNews, ChatUsage, ErrorType, Reply, SessionCompacted,
};

use crate::fake::Fake;
use crate::run::with;
use crate::values::key;

fn turn(reply: Option<&str>) -> Vec<Reply> {
    let text = |text: &str| Reply::Chat(ChatNews::Text { text: text.into() });
    let mut news: Vec<Reply> = reply
        .iter()
        .flat_map(|reply| [text(&reply[..2]), text(&reply[2..])])
        .collect();
    news.push(Reply::Chat(ChatNews::Done(ChatDone {
        reply: reply.map(Into::into),
        session_key: key("agent:main:main"),
        usage: ChatUsage::default(),
        compacted: None,
    })));
    news
}

#[test]
fn an_answer_is_printed_as_it_comes_and_a_silent_one_not_at_all() {
    for (reply, printed) in [(Some("It is.\u{7}"), "It is.\u{fffd}\n"), (None, "")] {
        let fake = Fake::streaming(turn(reply));
        let shown = with(&fake, "chat --message Well?");
        let expected = format!("exit 0\n--- stdout\n{printed}--- stderr\n");
        assert!(shown.starts_with(&expected), "{shown}");
        assert!(
            !shown.contains("Well?"),
            "what was said is nobody else's: {shown}"
        );
    }
}

#[test]
fn a_script_gets_one_document() {
    let fake = Fake::streaming(turn(Some("It is.")));
    let shown = with(&fake, "chat --message Well? --json");
    let document = "{\"schemaVersion\":1,\"reply\":\"It is.\",\"sessionKey\":\"agent:main:main\",\
                    \"usage\":{\"inputTokens\":0,\"outputTokens\":0,\"contextTokens\":0,\
                    \"contextWindow\":0,\"estimated\":false}}";
    assert!(
        shown.starts_with(&format!("exit 0\n--- stdout\n{document}\n")),
        "{shown}"
    );
    let silent = with(&Fake::streaming(turn(None)), "chat --message Well? --json");
    assert!(!silent.contains("reply"), "{silent}");
}

#[test]
fn a_turn_that_came_to_nothing_or_has_no_end_is_an_error() {
    let error = ApiError::new(ErrorType::TryLater, "the model is busy").with_hint("again");
    let fake = Fake::streaming(vec![Reply::Error(error)]);
    let shown = with(&fake, "chat --message Well?");
    assert!(
        shown.starts_with("exit 75\n") && shown.contains("the model is busy"),
        "{shown}"
    );
    let fake = Fake::streaming(turn(Some("It is.")).into_iter().take(1).collect());
    let shown = with(&fake, "chat --message Well?");
    assert!(shown.starts_with("exit 69\n"), "{shown}");
}

#[test]
fn a_compaction_says_what_was_and_what_is_left() {
    let done = SessionCompacted {
        session_key: key("agent:main:main"),
        compacted: true,
        tokens_before: 180_000,
        tokens_after: 2_100,
    };
    let shown = with(
        &Fake::streaming(vec![Reply::SessionCompact(done.clone())]),
        "sessions compact agent:main:main",
    );
    let line = "agent:main:main is compacted: 180000 tokens before, about 2100 now";
    assert!(
        shown.starts_with(&format!("exit 0\n--- stdout\n{line}\n")),
        "{shown}"
    );
    let nothing = SessionCompacted {
        compacted: false,
        ..done
    };
    let shown = with(
        &Fake::streaming(vec![Reply::SessionCompact(nothing)]),
        "sessions compact agent:main:main",
    );
    assert!(shown.contains("there is nothing to compact"), "{shown}");
}
