//! Turns of the gateway's own: a person talks to a session, and a model answers.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tidings_tests::model::{Asked, ModelServer, Play, Say, overflows};
use tidings_tests::{Gateway, Scratch, Setup, WATCHER, until, until_within};

/// A gateway that runs turns against a scripted model.
pub(crate) struct Running {
    pub(crate) gateway: Gateway,
    pub(crate) model: ModelServer,
}

impl Running {
    pub(crate) fn with(model: ModelServer, kind: &str, window: u64, more: &str) -> Self {
        let scratch = Scratch::new();
        let setup = setup(&scratch, &model, kind, window, more);
        Self {
            gateway: Gateway::start_as(&scratch, setup),
            model,
        }
    }

    fn answering(answer: impl FnMut(&Asked) -> Play + Send + 'static) -> Self {
        Self::with(ModelServer::answering(answer), "openai", 200_000, "")
    }

    /// Says something in the main session, and what comes of it.
    #[track_caller]
    pub(crate) fn say(&self, message: &str) -> Value {
        self.gateway
            .ask(&["chat", "--session", WATCHER, "--message", message])
    }

    /// The transcript that continues a session, line by line.
    pub(crate) fn transcript(&self, key: &str) -> Vec<Value> {
        lines(&self.transcript_file(key))
    }

    pub(crate) fn transcript_file(&self, key: &str) -> PathBuf {
        let entry = self.gateway.ask(&["sessions", "show", key]);
        let id = entry["sessionId"].as_str().expect("an id");
        let file = match entry["sessionFile"].as_str() {
            Some(file) => file.to_owned(),
            None => format!("{id}.jsonl"),
        };
        let agent = entry["agentId"].as_str().unwrap_or("main");
        let agents = self.gateway.state_dir().join("agents");
        agents.join(agent).join("sessions").join(file)
    }
}

pub(crate) fn setup(
    scratch: &Scratch,
    model: &ModelServer,
    kind: &str,
    window: u64,
    more: &str,
) -> Setup {
    let file = scratch.path().join("models.toml");
    fs::write(&file, model.config(kind, window, more)).expect("a configuration");
    Setup::without_local_node().with_config(&file)
}

pub(crate) fn lines(file: &PathBuf) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("a transcript");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a record"))
        .collect()
}

/// What the messages of a transcript say, one a line.
pub(crate) fn said(transcript: &[Value]) -> Vec<String> {
    let said = |line: &Value| {
        let message = &line["message"];
        let content = message["content"].as_array()?;
        let texts = content.iter().map(|block| match block["type"].as_str() {
            Some("toolCall") => format!("→{}", block["name"].as_str().unwrap_or_default()),
            _ => block["text"].as_str().unwrap_or_default().to_owned(),
        });
        let role = message["role"].as_str()?;
        Some(format!("{role}: {}", texts.collect::<Vec<_>>().join(" | ")))
    };
    transcript.iter().filter_map(said).collect()
}

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
    let signals = running
        .gateway
        .ask(&["signals", "list", "--session", child]);
    let kinds: Vec<&Value> = signals["signals"]
        .as_array()
        .expect("signals")
        .iter()
        .map(|signal| &signal["kind"])
        .collect();
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
