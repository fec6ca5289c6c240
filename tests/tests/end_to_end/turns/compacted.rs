//! Conversations that grow: what does not fit is compacted, shortened, or said to be too long.

use std::fs;

use serde_json::{Value, json};
use tidings_tests::model::{ModelServer, Play, Say, overflows};
use tidings_tests::{WATCHER, until};

use super::{Running, said};

#[test]
fn a_prompt_that_is_too_long_is_compacted_and_sent_once_more_in_every_wording() {
    for overflow in overflows() {
        let wording = format!("{:?}", overflow.play);
        let mut refuse = Some(overflow.play);
        let running = Running::answering(move |asked| {
            if !asked.has_tools() {
                return Say::text("They said good morning, and that the mill runs.").into();
            }
            let is_long = asked.last().contains("And now?");
            match refuse.take_if(|_| is_long) {
                Some(play) => play,
                None => Say::text("Yes.").into(),
            }
        });
        running.say("Good morning.");
        running.say("The mill runs.");
        let answer = running.say("And now?");
        assert_eq!(answer["reply"], "Yes.", "{wording}");
        assert_eq!(answer["compacted"], true, "{wording}");
        let transcript = running.transcript(WATCHER);
        let compactions: Vec<&Value> = transcript
            .iter()
            .filter(|line| line["type"] == "compaction")
            .collect();
        assert_eq!(compactions.len(), 1, "{wording}");
        if let Some(observed) = overflow.observed {
            assert_eq!(compactions[0]["tokensBefore"], observed, "{wording}");
        }
        let entry = running.gateway.ask(&["sessions", "show", WATCHER]);
        assert_eq!(entry["compactionCount"], 1, "{wording}");
        let asked = running.model.asked();
        let last = asked.last().expect("requests").conversation();
        assert!(last.contains("They said good morning") && last.contains("And now?"));
    }
}

#[test]
fn a_prompt_that_never_fits_says_what_to_do_and_keeps_the_session() {
    let running = Running::answering(|asked| {
        if asked.has_tools() && asked.last().contains("And now?") {
            return overflows().swap_remove(1).play;
        }
        Say::text("A summary, or an answer.").into()
    });
    running.say("Good morning.");
    let before = running.transcript_file(WATCHER);
    let answer = running
        .gateway
        .run(&["chat", "--session", WATCHER, "--message", "And now?"]);
    let said = answer.refused().to_string();
    for way in ["again", "/compact", "/new"] {
        assert!(said.contains(way), "{said}");
    }
    assert_eq!(running.transcript_file(WATCHER), before);
}

#[test]
fn a_history_is_compacted_because_somebody_asks() {
    let running = Running::answering(|asked| {
        let text = if asked.has_tools() {
            "Hello."
        } else {
            "They greeted each other."
        };
        Say::text(text).into()
    });
    running.say("Good morning.");
    let done = running.gateway.ask(&["sessions", "compact", WATCHER]);
    assert_eq!(done["compacted"], true, "{done}");
    running.say("And now?");
    let asked = running.model.asked();
    let last = asked.last().expect("requests").conversation();
    assert!(last.contains("They greeted each other.") && !last.contains("Good morning."));
    let entry = running.gateway.ask(&["sessions", "show", WATCHER]);
    assert_eq!(
        entry
            .get("compactionCount")
            .and_then(Value::as_u64)
            .unwrap_or(0),
        0
    );
    let signals = running
        .gateway
        .ask(&["signals", "list", "--session", WATCHER]);
    assert_eq!(signals["signals"][0]["kind"], "compacted", "{signals}");
    let unknown = running
        .gateway
        .run(&["sessions", "compact", "agent:main:nobody"]);
    assert_eq!(unknown.refused()["type"], "not_found", "{unknown}");
}

#[test]
fn a_transcript_that_has_become_too_large_goes_on_in_a_smaller_one_before_the_turn() {
    let model = ModelServer::answering(|asked| {
        let text = if asked.has_tools() {
            "Yes."
        } else {
            "They talked at length."
        };
        Say::text(text).into()
    });
    let more = "[agents.defaults.compaction]\ntruncateAfterCompaction = true\n\
                maxActiveTranscriptBytes = \"2kb\"\nkeepRecentTokens = 10\n";
    let running = Running::with(model, "anthropic", 200_000, more);
    running.say(&"Long words. ".repeat(200));
    let before = running.transcript_file(WATCHER);
    let answer = running.say("And now?");
    assert_eq!(answer["compacted"], true, "{answer}");
    let after = running.transcript_file(WATCHER);
    assert_ne!(after, before);
    let text = fs::read_to_string(&after).expect("a transcript");
    assert!(
        !text.contains("Long words.") && text.contains("They talked at length."),
        "{text}"
    );
    assert!(!before.exists(), "it is an archive now");
    assert_eq!(
        said(&running.transcript(WATCHER))
            .last()
            .expect("an answer"),
        "assistant: Yes."
    );
}

#[test]
fn a_result_that_is_too_long_is_shortened_in_the_prompt_and_whole_in_the_transcript() {
    const OTHER: &str = "agent:main:other";
    let model = ModelServer::answering(|asked| {
        let last = asked.last();
        if last.contains("Look there.") {
            let history = json!({"sessionKey": OTHER, "limit": 20});
            return Say::call("sessions_history", history).into();
        }
        Say::text("Yes.").into()
    });
    let more = "[agents.defaults.compaction]\nmidTurnPrecheck.enabled = true\n\
                memoryFlush.enabled = false\n";
    let running = Running::with(model, "openai", 16_000, more);
    for _ in 0..10 {
        let message = "Many words there. ".repeat(200);
        let gateway = &running.gateway;
        gateway.ask(&["chat", "--session", OTHER, "--message", &message]);
    }
    assert_eq!(running.say("Look there.")["reply"], "Yes.");
    let prompt = running.model.asked().last().expect("requests").last();
    assert!(prompt.contains("bytes left out here"), "{}", prompt.len());
    let transcript = running.transcript(WATCHER);
    let result = transcript
        .iter()
        .find(|line| line["message"]["role"] == "toolResult")
        .expect("a result");
    let whole = result["message"]["content"][0]["text"]
        .as_str()
        .expect("a text");
    assert!(
        whole.len() > 30_000 && whole.len() > prompt.len(),
        "{}",
        whole.len()
    );
}

#[test]
fn an_endpoint_summarises_where_one_is_named_and_the_model_where_that_fails() {
    let endpoint = ModelServer::playing([Play::Refuse {
        status: 200,
        body: json!({"summary": "From the endpoint."}).to_string(),
        retry_after: None,
    }]);
    let model = ModelServer::answering(|asked| {
        let text = if asked.has_tools() {
            "Yes."
        } else {
            "From the model."
        };
        Say::text(text).into()
    });
    let more = format!(
        "[agents.defaults.compaction]\nprovider = \"mine\"\nqualityGuard.enabled = false\n\
         [agents.defaults.compaction.providers.mine]\nurl = \"{}/summary\"\n",
        endpoint.base_url()
    );
    let running = Running::with(model, "openai", 200_000, &more);
    for expected in ["From the endpoint.", "From the model."] {
        running.say("Good morning.");
        running.gateway.ask(&["sessions", "compact", WATCHER]);
        let transcript = running.transcript(WATCHER);
        let summary = transcript
            .iter()
            .rfind(|line| line["type"] == "compaction")
            .and_then(|line| line["summary"].as_str())
            .expect("a summary");
        assert!(summary.starts_with(expected), "{summary}");
    }
    assert_eq!(endpoint.asked().len(), 2);
}

/// Sets a member of a session's entry by hand, as `sessions.json` has it.
fn edit_entry(running: &Running, member: &str, value: &str) {
    let store = running.gateway.state_dir();
    let store = store.join("agents/main/sessions/sessions.json");
    let mut edited: Value = until("the projection", || {
        let text = fs::read_to_string(&store).ok()?;
        serde_json::from_str(&text).ok()
    });
    edited[WATCHER][member] = json!(value);
    fs::write(&store, edited.to_string()).expect("an edit");
    until("the edit", || {
        let entry = running.gateway.ask(&["sessions", "show", WATCHER]);
        (entry[member] == value).then_some(())
    });
}

#[test]
fn an_automatic_compaction_is_seen_in_the_log_and_by_who_wants_to_hear_more_in_chat() {
    let model = ModelServer::answering(|asked| {
        if asked.has_tools() {
            return Say::text("Hello.").using(25_000, 1).into();
        }
        Say::text("They greeted each other.").into()
    });
    let more = "[agents.defaults.compaction]\nkeepRecentTokens = 0\nmemoryFlush.enabled = false\n";
    let running = Running::with(model, "openai", 40_000, more);
    let compactions = |running: &Running| {
        let log = fs::read_to_string(running.gateway.log()).expect("a log");
        ["compaction start", "compaction complete"].map(|line| log.matches(line).count())
    };
    let mut terminal = running.gateway.terminal(&["chat"]);
    terminal.wait_for("> ");
    terminal.type_in("Good morning.\n");
    assert_eq!(terminal.wait_for("> "), "Good morning.\nHello.\n");
    assert_eq!(compactions(&running), [1, 1]);
    edit_entry(&running, "verboseLevel", "on");
    terminal.type_in("Good evening.\n");
    let shown = terminal.wait_for("> ");
    assert!(
        shown.contains("🧹 Auto-compaction complete (count 2)\n"),
        "{shown}"
    );
    assert_eq!(compactions(&running), [2, 2]);
}

#[test]
fn a_turn_that_does_not_fit_any_more_between_two_calls_is_compacted_and_goes_on() {
    const OTHER: &str = "agent:main:other";
    for mode in ["default", "safeguard"] {
        let model = ModelServer::answering(|asked| {
            if !asked.has_tools() {
                return Say::text("They said many words.").into();
            }
            if asked.last().contains("Look there.") {
                let history = json!({"sessionKey": OTHER, "limit": 20});
                return Say::call("sessions_history", history).into();
            }
            Say::text("Yes.").into()
        });
        let more = format!(
            "[agents.defaults.compaction]\nmidTurnPrecheck.enabled = true\nmode = \"{mode}\"\n\
             memoryFlush.enabled = false\nqualityGuard.enabled = false\n"
        );
        let running = Running::with(model, "openai", 16_000, &more);
        let long = "Many words there. ".repeat(200);
        for session in [OTHER, WATCHER] {
            for _ in 0..6 {
                let chat = ["chat", "--session", session, "--message", &long];
                running.gateway.ask(&chat);
            }
        }
        let answer = running.say("Look there.");
        assert_eq!(
            (&answer["reply"], &answer["compacted"]),
            (&json!("Yes."), &json!(true)),
            "{mode}"
        );
        let noted = fs::read_to_string(running.gateway.log()).expect("a log");
        assert!(noted.contains("mid-turn"), "{mode}");
        let asked = running.model.asked();
        let last = asked.last().expect("requests").conversation();
        assert!(last.contains("They said many words."), "{mode}: {last}");
        // What began the turn stands in the summary, and in safeguard mode in its own words.
        let is_word_for_word = last.contains("Look there.");
        assert_eq!(is_word_for_word, mode == "safeguard", "{last}");
    }
}
