//! Models, summarisers and workspaces that go wrong: each turn ends in an answer or in a named
//! error, and the conversation goes on.

use std::fs;

use serde_json::{Value, json};
use tidings_tests::model::{Asked, ModelServer, Play, Say};
use tidings_tests::{Answer, WATCHER, until};

use super::{Running, said};

/// A window of 40 000 tokens: above 20 000 a conversation is compacted, above 16 000 notes are
/// written.
const WINDOW: u64 = 40_000;

fn try_to_say(running: &Running, message: &str) -> Answer {
    let chat = ["chat", "--session", WATCHER, "--message", message];
    running.gateway.run(&chat)
}

/// Bytes that a server that speaks as OpenAI's does sends.
fn openai(deltas: &[Value]) -> Vec<u8> {
    let finish = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
    let deltas = deltas
        .iter()
        .map(|delta| json!({"choices": [{"delta": delta}]}));
    let events: Vec<String> = deltas
        .chain([finish])
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    (events.concat() + "data: [DONE]\n\n").into_bytes()
}

#[test]
fn an_answer_that_is_always_cut_in_a_call_comes_to_nothing_and_the_conversation_goes_on() {
    for kind in ["openai", "anthropic"] {
        let model = ModelServer::answering(|asked| {
            if !asked.conversation().contains("And now?") {
                return Play::Cut(Say::call("goal_set", json!({"goal": "Stop the mill."})), 4);
            }
            Say::text("Good.").into()
        });
        let running = Running::with(model, kind, WINDOW, "");
        let answer = try_to_say(&running, "Stop the mill.");
        assert_eq!(answer.code, 75, "{answer}");
        assert_eq!(running.model.asked().len(), 4, "{kind}");
        assert_eq!(running.say("And now?")["reply"], "Good.");
        assert_eq!(
            said(&running.transcript(WATCHER)),
            ["user: Stop the mill.", "user: And now?", "assistant: Good."]
        );
    }
}

#[test]
fn bytes_that_are_no_text_and_arguments_that_are_no_json_are_what_they_are() {
    let broken = json!({"tool_calls": [{
        "index": 0, "id": "c", "function": {"name": "session_status", "arguments": "{not json"},
    }]});
    let mut caf = openai(&[json!({"content": "caf?"})]);
    let at = caf.iter().position(|byte| *byte == b'?').expect("there");
    caf[at] = 0xff;
    let model = ModelServer::playing([Play::Raw(openai(&[broken])), Play::Raw(caf)]);
    let running = Running::with(model, "openai", WINDOW, "");
    assert_eq!(running.say("Good morning.")["reply"], "caf\u{fffd}");
    let transcript = running.transcript(WATCHER);
    let result = &transcript[3]["message"];
    assert_eq!(
        (&result["role"], &result["isError"]),
        (&json!("toolResult"), &json!(true))
    );
}

#[test]
fn a_model_that_calls_tools_for_ever_is_stopped() {
    let running = Running::with(
        ModelServer::answering(|asked| {
            if asked.conversation().contains("And now?") {
                return Say::text("Good.").into();
            }
            Say::call("sessions_list", json!({"limit": 1})).into()
        }),
        "anthropic",
        200_000,
        "",
    );
    let answer = try_to_say(&running, "Go on.");
    let said = answer.refused().to_string();
    assert!(said.contains("64 times"), "{said}");
    assert_eq!(running.model.asked().len(), 64);
    assert_eq!(running.say("And now?")["reply"], "Good.");
}

#[test]
fn an_answer_without_measure_is_refused_and_a_long_one_is_taken_and_summarised() {
    let long = |mebibytes: usize| {
        let piece = json!({"content": "word ".repeat(100_000)});
        openai(&vec![piece; 2 * mebibytes])
    };
    let model = ModelServer::answering(move |asked| {
        let last = asked.last();
        if !asked.has_tools() {
            return Say::text("They told much.").into();
        }
        if last.contains("Tell me all.") {
            return Play::Raw(long(10));
        }
        if last.contains("Tell me much.") {
            return Play::Raw(long(3));
        }
        Say::text("Good.").into()
    });
    let more = "[agents.defaults.compaction]\nmemoryFlush.enabled = false\n";
    let running = Running::with(model, "openai", WINDOW, more);
    let error = try_to_say(&running, "Tell me all.").refused().to_string();
    assert!(error.contains("more than 8 MiB"), "{error}");
    let answer = running.say("Tell me much.");
    assert_eq!(answer["compacted"], true, "{}", answer["usage"]);
    let reply = answer["reply"].as_str().expect("a reply");
    assert!(
        reply.ends_with("[cut here: it is longer]"),
        "{}",
        reply.len()
    );
    assert_eq!(running.say("And now?")["reply"], "Good.");
    let asked = running.model.asked();
    let last = asked.last().expect("requests").conversation();
    assert!(last.len() < 100_000, "{}", last.len());
}

#[test]
fn a_summary_that_fails_takes_nothing_from_the_turn() {
    let mut summaries = [
        Play::refuse(400, "invalid_request_error"),
        Say::text(" \n").into(),
        Play::Cut(Say::text("They greeted"), 5),
        Say::text("They greeted each other.").into(),
    ]
    .into_iter();
    let model = ModelServer::answering(move |asked| {
        if asked.has_tools() {
            return Say::text("Good.").using(25_000, 1).into();
        }
        summaries.next().expect("a summary that was planned")
    });
    let more = "[agents.defaults.compaction]\nkeepRecentTokens = 0\nmemoryFlush.enabled = false\n";
    let running = Running::with(model, "anthropic", WINDOW, more);
    for compacted in [None, None, None, Some(true)] {
        let answer = running.say("Good morning.");
        assert_eq!(answer["reply"], "Good.");
        let found = answer.get("compacted").and_then(Value::as_bool);
        assert_eq!(found, compacted, "{answer}");
    }
    let said = said(&running.transcript(WATCHER));
    assert_eq!(said.len(), 8, "{said:?}");
    let signals = running
        .gateway
        .ask(&["signals", "list", "--session", WATCHER]);
    assert_eq!(
        signals["signals"].as_array().map(Vec::len),
        Some(1),
        "{signals}"
    );
}

#[test]
fn commands_that_summarise_badly_are_replaced_by_the_model() {
    for line in [
        "exit 3",
        "exec 0<&-; sleep 0; exit 1",
        "head -c 100000000 /dev/zero",
        "true",
        "printf 'caf\\377'",
        "kill -9 $$",
        "/nowhere/at/all",
    ] {
        let model = ModelServer::answering(|asked| {
            let text = if asked.has_tools() {
                "Good."
            } else {
                "From the model."
            };
            Say::text(text).into()
        });
        let more = format!(
            "[agents.defaults.compaction]\nprovider = \"mine\"\nqualityGuard.enabled = false\n\
             [agents.defaults.compaction.providers.mine]\ncommand = {line:?}\n"
        );
        let running = Running::with(model, "openai", 200_000, &more);
        running.say(&"Many words. ".repeat(10_000));
        let done = running.gateway.ask(&["sessions", "compact", WATCHER]);
        assert_eq!(done["compacted"], true, "{line}");
        let transcript = running.transcript(WATCHER);
        let last = transcript.last().expect("lines");
        let summary = last["summary"].as_str().expect("a summary");
        assert!(summary.starts_with("From the model."), "{line}: {summary}");
    }
}

#[test]
fn a_command_that_does_not_read_and_prints_a_summary_has_summarised() {
    let model = ModelServer::answering(|_| Say::text("Good.").into());
    let more = "[agents.defaults.compaction]\nprovider = \"mine\"\nqualityGuard.enabled = false\n\
                [agents.defaults.compaction.providers.mine]\ncommand = \"echo From the command.\"\n";
    let running = Running::with(model, "openai", 200_000, more);
    running.say(&"Many words. ".repeat(10_000));
    running.gateway.ask(&["sessions", "compact", WATCHER]);
    let transcript = running.transcript(WATCHER);
    let summary = &transcript.last().expect("lines")["summary"];
    let summary = summary.as_str().expect("a summary");
    assert!(summary.starts_with("From the command."), "{summary}");
}

#[test]
fn a_key_that_is_not_there_is_named_and_never_asked_without() {
    let model = ModelServer::answering(|_| Say::text("Good.").into());
    let scratch = tidings_tests::Scratch::new();
    let file = scratch.path().join("models.toml");
    let config = model.config("openai", WINDOW, "");
    let config = config.replace(
        "model = \"m\"\n",
        "model = \"m\"\napiKeyEnv = \"MILL_KEY\"\n",
    );
    fs::write(&file, config).expect("a configuration");
    let setup = tidings_tests::Setup::without_local_node().with_config(&file);
    let gateway = tidings_tests::Gateway::start_as(&scratch, setup);
    let running = Running { gateway, model };
    let answer = try_to_say(&running, "Good morning.");
    assert_eq!(answer.code, 78, "{answer}");
    assert!(
        answer.refused().to_string().contains("MILL_KEY"),
        "{answer}"
    );
    assert_eq!(running.model.asked().len(), 0);
}

#[test]
fn a_window_in_which_nothing_fits_is_compacted_after_each_turn_and_answers_all_the_same() {
    for window in [1, 2, 100] {
        let model = ModelServer::answering(|asked| {
            let text = if asked.has_tools() {
                "Good."
            } else {
                "They greeted each other."
            };
            Say::text(text).into()
        });
        let running = Running::with(model, "anthropic", window, "");
        for _ in 0..3 {
            assert_eq!(running.say("Good morning.")["reply"], "Good.", "{window}");
        }
    }
}

#[test]
fn notes_that_cannot_be_written_are_told_to_the_model_and_to_nobody_else() {
    for make in [
        (|place| fs::write(place, "a file").expect("made")) as fn(&std::path::Path),
        |place| std::os::unix::fs::symlink("/proc/nowhere", place).expect("made"),
        |place| {
            fs::create_dir(place).expect("made");
            std::os::unix::fs::symlink("/tmp", place.join("memory")).expect("made");
        },
    ] {
        let model = ModelServer::answering(|asked| {
            if !asked.offers("memory_append") {
                return Say::text("Good.").using(17_000, 1).into();
            }
            if asked.last().contains("\"tool_result\"") {
                return Say::text("NO_REPLY").into();
            }
            Say::call("memory_append", json!({"text": "- twelve sacks"})).into()
        });
        let running = Running::with(model, "anthropic", WINDOW, "");
        let agent = running.gateway.state_dir().join("agents/main");
        fs::create_dir_all(&agent).expect("a folder");
        make(&agent.join("workspace"));
        let answer = running.say("Good morning.");
        assert_eq!(answer["reply"], "Good.", "{answer}");
        let asked = running.model.asked();
        let told = asked.last().expect("requests").last();
        assert!(told.contains("\"is_error\":true"), "{told}");
        assert!(!told.contains("Appended"), "{told}");
    }
}

#[test]
fn two_who_talk_to_one_session_at_once_are_answered_one_after_the_other() {
    let running = Running::answering(|asked| {
        let last = asked.last();
        let number = |number: &&str| last.contains(number);
        let said = ["one", "two", "three", "four"].into_iter().find(number);
        Say::text(said.unwrap_or("none")).into()
    });
    let numbers = ["one", "two", "three", "four"];
    let begun = numbers.map(|number| {
        let chat = ["chat", "--session", WATCHER, "--message", number];
        running.gateway.begin(&chat)
    });
    for (begun, number) in begun.into_iter().zip(numbers) {
        assert_eq!(begun.wait().done()["reply"], number);
    }
    let said = said(&running.transcript(WATCHER));
    assert_eq!(said.len(), 8, "{said:?}");
    for pair in said.chunks(2) {
        let word = pair[0].strip_prefix("user: ").expect("a person");
        assert_eq!(pair[1], format!("assistant: {word}"));
    }
}

#[test]
fn a_configuration_that_changes_holds_from_the_next_turn_on() {
    let running = Running::answering(|_| Say::text("Good.").into());
    running.say("Good morning.");
    let other = ModelServer::answering(|_| Say::text("Better.").into());
    let file = running.gateway.scratch().path().join("models.toml");
    fs::write(&file, other.config("anthropic", WINDOW, "")).expect("a configuration");
    running.gateway.reload();
    let answer = until("the other model", || {
        let answer = running.say("And now?");
        (answer["reply"] == "Better.").then_some(answer)
    });
    assert_eq!(answer["usage"]["contextWindow"], WINDOW);
    assert!(other.asked()[0].conversation().contains("Good morning."));

    // One that cannot be meant changes nothing.
    fs::write(&file, "[models.scripted]\nkind = \"none\"\n").expect("a configuration");
    running.gateway.reload();
    until("a word in the log", || {
        let log = fs::read_to_string(running.gateway.log()).expect("a log");
        log.contains("unknown variant").then_some(())
    });
    assert_eq!(running.say("And now?")["reply"], "Better.");
}

#[test]
fn many_messages_at_once_are_each_said_once_and_in_few_turns() {
    const MESSAGES: usize = 40;
    let running = Running::answering(|asked: &Asked| {
        if asked.last().contains("Message 1 ") {
            return Play::Late(Say::text("Good."), std::time::Duration::from_secs(2));
        }
        Say::text("Good.").into()
    });
    running.say("Good morning.");
    for number in 0..MESSAGES {
        let message = format!("sack {number}.");
        running
            .gateway
            .ask(&["sessions", "send", WATCHER, &message]);
    }
    let heard = until("all messages", || {
        let said = said(&running.transcript(WATCHER)).join("\n");
        let is_over = said.contains(&format!("sack {}.", MESSAGES - 1));
        (is_over && said.ends_with("assistant: Good.")).then_some(said)
    });
    for number in 0..MESSAGES {
        let times = heard.matches(&format!("  sack {number}.")).count();
        assert_eq!(times, 1, "{number}: {heard}");
    }
}
