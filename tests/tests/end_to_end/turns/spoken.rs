//! A person talks to a session, and its model answers and calls tools.

use std::fs;

use serde_json::{Value, json};
use tidings_tests::model::{ModelServer, Say};
use tidings_tests::{Gateway, Scratch, WATCHER};

use super::{Running, said};

#[test]
fn what_a_person_says_is_answered_and_stands_in_the_transcript_in_both_protocols() {
    for kind in ["openai", "anthropic"] {
        let model = ModelServer::playing([
            Say::text("It is running.").using(120, 7).into(),
            Say::text("Since six.").without_usage().into(),
        ]);
        let running = Running::with(model, kind, 200_000, "");
        let answer = running.say("Is the mill running?");
        assert_eq!(
            answer,
            json!({
                "schemaVersion": 1,
                "reply": "It is running.",
                "sessionKey": WATCHER,
                "usage": {
                    "inputTokens": 120,
                    "outputTokens": 7,
                    "contextTokens": 127,
                    "contextWindow": 200_000,
                    "estimated": false,
                },
            })
        );
        let second = running.say("Since when?");
        assert_eq!(second["reply"], "Since six.");
        assert_eq!(second["usage"]["estimated"], true, "{second}");
        let transcript = running.transcript(WATCHER);
        assert_eq!(transcript[0]["type"], "session");
        assert_eq!(
            said(&transcript),
            [
                "user: Is the mill running?",
                "assistant: It is running.",
                "user: Since when?",
                "assistant: Since six.",
            ]
        );
        let asked = running.model.asked();
        assert!(asked[1].conversation().contains("It is running."));
        assert!(asked[0].offers("session_status") && !asked[0].offers("memory_append"));
        let log = fs::read_to_string(running.gateway.log()).expect("a log");
        for text in ["mill", "Since six"] {
            assert!(!log.contains(text), "{text} stands in the log");
        }
        let status = running.gateway.ask(&["status"]);
        assert_eq!(status["gateway"]["model"], "scripted");
        let entry = running.gateway.ask(&["sessions", "show", WATCHER]);
        assert!(entry["inputTokens"].as_u64() > Some(120), "{entry}");
        assert!(entry["lastInteractionAt"].is_i64(), "{entry}");
    }
}

#[test]
fn a_silent_reply_is_not_delivered() {
    let running = Running::answering(|_| Say::text("no_reply").into());
    let answer = running.say("Nothing to answer.");
    assert_eq!(answer.get("reply"), None, "{answer}");
    let shown = running.gateway.scratch().path().join("shown");
    let output = fs::File::create(&shown).expect("a file");
    let binary = &tidings_tests::binaries().tidings;
    let mut command = running.gateway.scratch().command(binary);
    command
        .args(["chat", "--message", "Again.", "--state-dir"])
        .arg(running.gateway.state_dir())
        .stdout(output);
    assert!(command.status().expect("it runs").success());
    assert_eq!(fs::read(&shown).expect("output"), b"");
}

#[test]
fn a_model_calls_tools_as_its_session_and_gets_what_they_answer() {
    let mut round = 0;
    let running = Running::answering(move |_| {
        round += 1;
        match round {
            1 => Say::call("session_status", json!({"sessionKey": WATCHER}))
                .and_call("sessions_send", json!({"sessionKey": WATCHER}))
                .and_call("session_delete", json!({"sessionKey": WATCHER}))
                .into(),
            2 => Say::call("goal_set", json!({"sessionKey": WATCHER, "goal": "Grind."})).into(),
            _ => Say::text("Done.").into(),
        }
    });
    assert_eq!(running.say("Go on.")["reply"], "Done.");
    let transcript = running.transcript(WATCHER);
    let results: Vec<(&Value, bool)> = transcript
        .iter()
        .map(|line| &line["message"])
        .filter(|message| message["role"] == "toolResult")
        .map(|message| (&message["content"][0]["text"], message["isError"] == true))
        .collect();
    assert_eq!(results.len(), 4, "{results:?}");
    let text = |at: usize| results[at].0.as_str().expect("a text");
    assert!(
        !results[0].1 && text(0).contains("\"stateVersion\""),
        "{results:?}"
    );
    assert!(results[1].1 && text(1).contains("message"), "{results:?}");
    assert_eq!((text(2), results[2].1), ("There is no such tool.", true));
    assert!(!results[3].1, "{results:?}");
    let entry = running.gateway.ask(&["sessions", "show", WATCHER]);
    assert_eq!(entry["goal"], "Grind.");
    let signals = running
        .gateway
        .ask(&["signals", "list", "--session", WATCHER]);
    assert_eq!(signals["signals"][0]["actorId"], WATCHER, "{signals}");
}

#[test]
fn without_a_model_nothing_is_run_and_the_answer_says_what_to_set() {
    let gateway = Gateway::start(&Scratch::new());
    let answer = gateway.run(&["chat", "--message", "Hello?"]);
    assert_eq!(answer.code, 78, "{answer}");
    assert!(
        answer
            .refused()
            .to_string()
            .contains("agents.defaults.model"),
        "{answer}"
    );
}

#[test]
fn what_is_typed_as_a_command_is_asked_of_the_gateway() {
    let running = Running::answering(|_| Say::text("Hello.").using(100, 2).into());
    running.say("Good morning.");
    let status = running.say("/status");
    let text = status["reply"].as_str().expect("a status");
    assert!(text.contains("Context: 102 tokens of 200000"), "{text}");
    let before = running.transcript_file(WATCHER);
    let fresh = running.say("/new Good evening.");
    assert_eq!(fresh["reply"], "Hello.");
    assert_ne!(running.transcript_file(WATCHER), before);
    assert_eq!(
        said(&running.transcript(WATCHER)),
        ["user: Good evening.", "assistant: Hello."]
    );
    assert_eq!(running.model.asked().len(), 2);
}
