//! Turns that nobody waits for: messages, children, wakes.

use std::time::Duration;

use serde_json::json;
use tidings_tests::model::{Play, Say};
use tidings_tests::{WATCHER, until, until_within};

use super::{Running, said};

#[test]
fn a_message_to_a_session_that_is_run_here_is_run_at_once_and_others_wait() {
    let running = Running::answering(|asked| {
        let last = asked.last();
        let text = if last.contains("Stop the mill.") {
            "Stopped."
        } else {
            "Hello."
        };
        Say::text(text).into()
    });
    running.say("Good morning.");
    let sent = running
        .gateway
        .ask(&["sessions", "send", WATCHER, "Stop the mill."]);
    assert_eq!(
        (&sent["ran"], &sent["queued"]),
        (&json!(true), &json!(false))
    );
    until("the answer to the message", || {
        let said = said(&running.transcript(WATCHER));
        said.last()
            .is_some_and(|last| last == "assistant: Stopped.")
            .then_some(())
    });
    let said = said(&running.transcript(WATCHER));
    assert!(
        said[2].starts_with("user: System: Message ") && said[2].ends_with("Stop the mill."),
        "{said:?}"
    );
}

#[test]
fn a_child_is_run_at_once_and_its_parent_gets_the_result() {
    let running = Running::answering(|asked| {
        let last = asked.last();
        if last.contains("Count the sacks.") {
            Say::text("Twelve sacks.").into()
        } else if last.contains("Twelve sacks.") {
            Say::text("Noted.").into()
        } else {
            Say::text("Hello.").into()
        }
    });
    running.say("Good morning.");
    let spawned = running
        .gateway
        .ask(&["sessions", "spawn", WATCHER, "Count the sacks."]);
    assert_eq!(spawned["ran"], true, "{spawned}");
    until("the parent's answer", || {
        let said = said(&running.transcript(WATCHER));
        said.last()
            .is_some_and(|last| last == "assistant: Noted.")
            .then_some(())
    });
    let child = spawned["sessionKey"].as_str().expect("a key");
    let kinds = running.gateway.kinds(child);
    assert_eq!(kinds, ["child_spawned", "run_completed"]);
}

#[test]
fn a_childs_run_that_fails_says_how() {
    let running = Running::answering(|asked| {
        if asked.last().contains("Count the sacks.") {
            Play::refuse(401, "authentication_error")
        } else {
            Say::text("Hello.").into()
        }
    });
    running.say("Good morning.");
    let spawned = running
        .gateway
        .ask(&["sessions", "spawn", WATCHER, "Count the sacks."]);
    let child = spawned["sessionKey"].as_str().expect("a key").to_owned();
    let failed = until("the end of the run", || {
        let signals = running
            .gateway
            .ask(&["signals", "list", "--session", &child]);
        signals["signals"].as_array()?.get(1).cloned()
    });
    assert_eq!(
        (&failed["kind"], &failed["payload"]["outcome"]),
        (&json!("run_failed"), &json!("error"))
    );
}

#[test]
fn a_message_whose_turn_failed_is_answered_once_the_model_is_back() {
    let mut refusals = 5;
    let running = Running::answering(move |asked| {
        if asked.last().contains("Stop the mill.") && refusals > 0 {
            refusals -= 1;
            return Play::refuse(503, "overloaded");
        }
        Say::text("Good.").into()
    });
    running.say("Good morning.");
    let gateway = &running.gateway;
    gateway.ask(&["sessions", "send", WATCHER, "Stop the mill."]);
    let told = until_within(Duration::from_mins(2), "the answer to the message", || {
        let said = said(&running.transcript(WATCHER));
        (said.len() == 4).then_some(said)
    });
    assert!(
        told[2].ends_with("Stop the mill.") && told[3] == "assistant: Good.",
        "{told:?}"
    );
}
