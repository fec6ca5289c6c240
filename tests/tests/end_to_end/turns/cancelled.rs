//! Whoever asked for a turn goes before it is over: it ends with him.

use serde_json::json;
use tidings_tests::model::{Asked, Play, Say};
use tidings_tests::{WATCHER, until};

use super::{Running, said};

/// A model that says how a story begins, and no more of it.
fn story_teller(asked: &Asked) -> Play {
    if asked.last().contains("a long story") {
        return Play::Stall(Say::text("Once upon a time, there"), 4);
    }
    Say::text("Good.").into()
}

#[test]
fn a_turn_whose_person_has_gone_is_ended_and_what_was_said_is_kept_as_aborted() {
    let running = Running::answering(story_teller);
    running.say("Good morning.");
    let chat = [
        "chat",
        "--session",
        WATCHER,
        "--message",
        "Tell me a long story.",
    ];
    let begun = running.gateway.begin(&chat);
    running.model.wait_for(2);
    begun.interrupt();
    running.model.wait_until_left(1);
    assert_eq!(begun.wait().code, -1);

    let transcript = until("the begun answer", || {
        let transcript = running.transcript(WATCHER);
        (said(&transcript).len() == 4).then_some(transcript)
    });
    let last = &transcript.last().expect("lines")["message"];
    assert_eq!(last["stopReason"], "aborted", "{last}");
    assert!(
        said(&transcript)[3].starts_with("assistant: Once upon"),
        "{last}"
    );
    assert_eq!(running.say("And now?")["reply"], "Good.");
    let entry = running.gateway.ask(&["sessions", "show", WATCHER]);
    assert_eq!(entry["contextTokensEstimated"], false, "{entry}");
}

#[test]
fn a_compaction_that_nobody_waits_for_any_more_changes_nothing() {
    let mut summaries = 0;
    let running = Running::answering(move |asked| {
        if asked.has_tools() {
            return Say::text("Good.").into();
        }
        summaries += 1;
        match summaries {
            1 => Play::Silence,
            _ => Say::text("They greeted each other.").into(),
        }
    });
    running.say("Good morning.");
    let before = running.transcript(WATCHER);
    let begun = running.gateway.begin(&["sessions", "compact", WATCHER]);
    running.model.wait_for(2);
    begun.interrupt();
    running.model.wait_until_left(1);
    assert_eq!(running.transcript(WATCHER), before);
    let done = running.gateway.ask(&["sessions", "compact", WATCHER]);
    assert_eq!(done["compacted"], json!(true), "{done}");
}
