//! What the log counts, and why.

use serde_json::Value;

use crate::gateway::Gateway;
use crate::transcripts::Turn;

/// How many turns the human messages of `session` among `signals` stand for.
pub fn human_turns(signals: &[Value], session: &str) -> usize {
    signals
        .iter()
        .filter(|signal| is_human_message(signal, session))
        .map(turns)
        .sum()
}

/// Every turn that the log counts for `session`, by its evidence, in file order. That the
/// evidence of each signal is as long as the signal says is checked on the way.
pub fn counted_turns(gateway: &Gateway, session: &str) -> Vec<Turn> {
    let list = gateway.ask(&["signals", "list", "--session", session, "--limit", "10000"]);
    let mut counted = Vec::new();
    for signal in list["signals"].as_array().expect("a list of signals") {
        if !is_human_message(signal, session) {
            continue;
        }
        let why = gateway.ask(&["signals", "why", &signal["sequence"].to_string()]);
        let evidence = why["evidence"].as_array().expect("a list of evidence");
        assert_eq!(evidence.len(), turns(signal), "{signal} {why}");
        counted.extend(evidence.iter().map(|turn| Turn {
            file: turn["file"].as_str().expect("a file name").to_owned(),
            start: turn["byteStart"].as_u64().expect("where it begins"),
            end: turn["byteEnd"].as_u64().expect("where it ends"),
        }));
    }
    counted.sort();
    counted
}

fn is_human_message(signal: &Value, session: &str) -> bool {
    signal["sessionKey"] == session && signal["kind"] == "human_direct_message"
}

/// How many turns one human message stands for: it says so only from two on.
fn turns(signal: &Value) -> usize {
    match &signal["payload"]["turns"] {
        Value::Null => 1,
        turns => {
            let turns = turns.as_u64().expect("a number of turns");
            assert!(turns >= 2, "{signal}");
            usize::try_from(turns).expect("a small number")
        }
    }
}

#[test]
fn a_message_is_one_turn_unless_it_says_how_many() {
    let signal = |session, kind, payload| serde_json::json!({"sessionKey": session, "kind": kind, "payload": payload});
    let two = serde_json::json!({"turns": 2});
    let signals = [
        signal("s", "adopted", Value::Null),
        signal("s", "human_direct_message", Value::Null),
        signal("s", "human_direct_message", two.clone()),
        signal("other", "human_direct_message", two),
    ];
    assert_eq!(human_turns(&signals, "s"), 3);
}
