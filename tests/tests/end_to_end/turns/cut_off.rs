//! A gateway that is killed in the middle of a turn: what was taken is answered once, and
//! nothing is said twice.

use std::path::Path;

use serde_json::{Value, json};
use tidings_tests::model::{Asked, ModelServer, Play, Say};
use tidings_tests::{WATCHER, until};

use super::{Running, said};

/// A window of 40 000 tokens: above 20 000 a conversation is compacted, above 16 000 notes are
/// written.
const WINDOW: u64 = 40_000;

fn killed(running: &mut Running) {
    running.gateway.kill();
    running.gateway.restart();
}

/// Each entry follows the one before it, and nothing is held any more.
#[track_caller]
fn check_whole(running: &Running) -> Vec<String> {
    let transcript = running.transcript(WATCHER);
    let mut parent = Value::Null;
    for line in &transcript[1..] {
        assert_eq!(line["parentId"], parent, "{line}");
        parent = line["id"].clone();
    }
    let lock = running
        .transcript_file(WATCHER)
        .with_extension("jsonl.lock");
    assert!(!lock.exists(), "{}", lock.display());
    said(&transcript)
}

/// A model that keeps silent the first time that it is asked what `is_it` says.
fn silent_once(
    mut is_it: impl FnMut(&Asked) -> bool + Send + 'static,
    otherwise: impl Fn(&Asked) -> Play + Send + 'static,
) -> ModelServer {
    let mut has_been = false;
    ModelServer::answering(move |asked| {
        if !has_been && is_it(asked) {
            has_been = true;
            return Play::Silence;
        }
        otherwise(asked)
    })
}

#[test]
fn a_message_that_was_taken_is_answered_after_a_restart_and_stands_there_once() {
    let is_it = |asked: &Asked| asked.last().contains("Stop the mill.");
    let model = silent_once(is_it, |_| Say::text("Good.").into());
    let mut running = Running::with(model, "openai", WINDOW, "");
    running.say("Good morning.");
    let send = ["sessions", "send", WATCHER, "Stop the mill."];
    running.gateway.ask(&send);
    running.model.wait_for(2);
    killed(&mut running);
    let said = until("the answer", || {
        let said = said(&running.transcript(WATCHER));
        (said.len() == 4).then_some(said)
    });
    assert!(said[2].ends_with("Stop the mill."), "{said:?}");
    assert_eq!(said[3], "assistant: Good.");
    check_whole(&running);
}

#[test]
fn a_turn_that_was_cut_between_a_call_and_the_answer_goes_on_behind_the_result() {
    let mut has_been = false;
    let model = ModelServer::answering(move |asked| {
        let last = asked.last();
        if last.contains("Stop the mill.") {
            return Say::call("sessions_list", json!({})).into();
        }
        if last.contains("\"role\":\"tool\"") && !has_been {
            has_been = true;
            return Play::Silence;
        }
        Say::text("Good.").into()
    });
    let mut running = Running::with(model, "openai", WINDOW, "");
    running.say("Good morning.");
    let send = ["sessions", "send", WATCHER, "Stop the mill."];
    running.gateway.ask(&send);
    running.model.wait_for(3);
    killed(&mut running);
    let said = until("the answer", || {
        let said = said(&running.transcript(WATCHER));
        (said.len() == 6).then_some(said)
    });
    assert_eq!(said[3], "assistant: →sessions_list");
    assert!(said[4].starts_with("toolResult: "), "{said:?}");
    assert_eq!(said[5], "assistant: Good.");
    check_whole(&running);
}

#[test]
fn what_a_person_said_is_kept_and_not_answered_behind_his_back() {
    let is_it = |asked: &Asked| asked.last().contains("Stop the mill.");
    let model = silent_once(is_it, |_| Say::text("Good.").into());
    let mut running = Running::with(model, "anthropic", WINDOW, "");
    running.say("Good morning.");
    let chat = ["chat", "--session", WATCHER, "--message", "Stop the mill."];
    let begun = running.gateway.begin(&chat);
    running.model.wait_for(2);
    killed(&mut running);
    let answer = begun.wait();
    assert_eq!(answer.code, 69, "{answer}");
    assert_eq!(running.say("And now?")["reply"], "Good.");
    let said = check_whole(&running);
    assert_eq!(
        said,
        [
            "user: Good morning.",
            "assistant: Good.",
            "user: Stop the mill.",
            "user: And now?",
            "assistant: Good.",
        ]
    );
    let asked = running.model.asked();
    let last = asked.last().expect("requests").conversation();
    assert!(last.contains("Stop the mill."), "{last}");
}

/// As a process leaves it that ends between the line in the transcript and the confirmation.
fn unconfirm(state_dir: &Path, body: &str) {
    let database = rusqlite::Connection::open(state_dir.join("state.sqlite")).expect("database");
    let changed = database.execute("UPDATE messages SET delivered_at = NULL, body = ?1", [body]);
    assert_eq!(changed.expect("messages"), 1);
}

#[test]
fn a_message_that_stands_in_the_transcript_unconfirmed_is_not_said_again() {
    let model = ModelServer::answering(|_| Say::text("Good.").into());
    let mut running = Running::with(model, "openai", WINDOW, "");
    running.say("Good morning.");
    let send = ["sessions", "send", WATCHER, "Stop the mill."];
    running.gateway.ask(&send);
    until("the answer", || {
        (said(&running.transcript(WATCHER)).len() == 4).then_some(())
    });
    assert_eq!(running.gateway.stop(), 0);
    unconfirm(running.gateway.state_dir(), "Stop the mill.");
    running.gateway.restart();
    let send = ["sessions", "send", WATCHER, "Start it again."];
    running.gateway.ask(&send);
    let said = until("the answer to the other", || {
        let said = said(&running.transcript(WATCHER));
        let is_there = said.iter().any(|line| line.ends_with("Start it again."));
        (is_there && said.last()? == "assistant: Good.").then_some(said)
    });
    let times = |text: &str| said.iter().filter(|line| line.contains(text)).count();
    assert_eq!(
        (times("Stop the mill."), times("Start it again.")),
        (1, 1),
        "{said:?}"
    );
    check_whole(&running);
}

#[test]
fn a_compaction_that_was_cut_off_has_changed_nothing_and_comes_again() {
    let model = silent_once(
        |asked| !asked.has_tools(),
        |asked| {
            if asked.has_tools() {
                Say::text("Good.").using(25_000, 1).into()
            } else {
                Say::text("They greeted each other.").into()
            }
        },
    );
    let more = "[agents.defaults.compaction]\nkeepRecentTokens = 0\nmemoryFlush.enabled = false\n\
                truncateAfterCompaction = true\n";
    let mut running = Running::with(model, "openai", WINDOW, more);
    let chat = ["chat", "--session", WATCHER, "--message", "Good morning."];
    let begun = running.gateway.begin(&chat);
    running.model.wait_for(2);
    let before = running.transcript(WATCHER);
    killed(&mut running);
    drop(begun);
    assert_eq!(running.transcript(WATCHER), before);
    check_whole(&running);
    let answer = running.say("And now?");
    assert_eq!(answer["compacted"], true, "{answer}");
    let entry = running.gateway.ask(&["sessions", "show", WATCHER]);
    assert_eq!(entry["compactionCount"], 1, "{entry}");
    let asked = running.model.asked();
    let summarised = asked.last().expect("requests").conversation();
    for said in ["Good morning.", "And now?"] {
        assert_eq!(summarised.matches(said).count(), 1, "{summarised}");
    }
}

#[test]
fn notes_that_were_cut_off_are_written_after_the_next_turn_and_once() {
    let model = silent_once(
        |asked| asked.offers("memory_append"),
        |asked| {
            if !asked.offers("memory_append") {
                return Say::text("Good.").using(17_000, 1).into();
            }
            if asked.last().contains("Appended to") {
                return Say::text("NO_REPLY").using(17_000, 1).into();
            }
            Say::call("memory_append", json!({"text": "- twelve sacks"})).into()
        },
    );
    let mut running = Running::with(model, "anthropic", WINDOW, "");
    let chat = ["chat", "--session", WATCHER, "--message", "Good morning."];
    let begun = running.gateway.begin(&chat);
    running.model.wait_for(2);
    killed(&mut running);
    drop(begun);
    check_whole(&running);
    for _ in 0..2 {
        assert_eq!(running.say("And now?")["reply"], "Good.");
    }
    let entry = running.gateway.ask(&["sessions", "show", WATCHER]);
    assert_eq!(entry["memoryFlushCompactionCount"], 0, "{entry}");
    let notes = running
        .gateway
        .state_dir()
        .join("agents/main/workspace/memory");
    let notes = tidings_tests::files(&notes);
    assert_eq!(notes.len(), 1);
    let notes = std::fs::read_to_string(&notes[0]).expect("notes");
    assert_eq!(notes, "- twelve sacks\n");
    check_whole(&running);
}
