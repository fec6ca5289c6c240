//! What turns cost, and who counted it: the provider, or nobody.

use serde_json::{Value, json};
use tidings_tests::WATCHER;
use tidings_tests::model::{ModelServer, Say};

use super::Running;

/// A window of 40 000 tokens: above 20 000 a conversation is compacted, above 16 000 notes are
/// written.
const WINDOW: u64 = 40_000;

fn row(running: &Running) -> Value {
    let list = running.gateway.ask(&["sessions", "list"]);
    list["sessions"][0].clone()
}

#[test]
fn every_place_says_whether_the_provider_counted_or_it_is_an_estimate() {
    let script = [
        Say::text("One.").using(120, 7).into(),
        Say::text("Two.").without_usage().into(),
        Say::text("A summary.").using(50, 5).into(),
    ];
    let running = Running::with(ModelServer::playing(script), "openai", 200_000, "");

    let counted = running.say("One?");
    assert_eq!(counted["usage"]["estimated"], false, "{counted}");
    let shown = row(&running);
    assert_eq!(
        (&shown["contextTokens"], &shown["contextTokensEstimated"]),
        (&json!(127), &json!(false))
    );
    let status = running.say("/status")["reply"].to_string();
    assert!(status.contains("Context: 127 tokens of"), "{status}");

    let estimated = running.say("Two?");
    assert_eq!(estimated["usage"]["estimated"], true, "{estimated}");
    assert_eq!(row(&running)["contextTokensEstimated"], true);
    let status = running.say("/status")["reply"].to_string();
    assert!(status.contains("(an estimate)"), "{status}");

    // What a compaction leaves nobody has counted; what the summary cost the provider has.
    let before = running.gateway.ask(&["sessions", "show", WATCHER]);
    running.gateway.ask(&["sessions", "compact", WATCHER]);
    let after = running.gateway.ask(&["sessions", "show", WATCHER]);
    assert_eq!(after["contextTokensEstimated"], true, "{after}");
    let spent = |member: &str| after[member].as_u64().zip(before[member].as_u64());
    assert_eq!(spent("inputTokens").map(|(a, b)| a - b), Some(50));
    assert_eq!(spent("outputTokens").map(|(a, b)| a - b), Some(5));
}

#[test]
fn notes_and_summaries_are_part_of_what_a_session_costs() {
    let model = ModelServer::answering(|asked| {
        if !asked.has_tools() {
            return Say::text("A summary.").using(3_000, 30).into();
        }
        if asked.offers("memory_append") {
            return Say::text("NO_REPLY").using(1_000, 10).into();
        }
        Say::text("One.").using(25_000, 100).into()
    });
    let more = "[agents.defaults.compaction]\nkeepRecentTokens = 0\n";
    let running = Running::with(model, "anthropic", WINDOW, more);
    let answer = running.say("One?");
    assert_eq!(answer["compacted"], true, "{answer}");
    let usage = &answer["usage"];
    assert_eq!(
        (
            &usage["inputTokens"],
            &usage["outputTokens"],
            &usage["estimated"]
        ),
        (&json!(29_000), &json!(140), &json!(true)),
        "the context behind a compaction is an estimate"
    );
    let entry = running.gateway.ask(&["sessions", "show", WATCHER]);
    for (member, expected) in [
        ("inputTokens", json!(29_000)),
        ("outputTokens", json!(140)),
        ("totalTokens", json!(29_140)),
        ("contextTokens", usage["contextTokens"].clone()),
        ("contextTokensEstimated", json!(true)),
    ] {
        assert_eq!(entry[member], expected, "{member}: {entry}");
    }
}
