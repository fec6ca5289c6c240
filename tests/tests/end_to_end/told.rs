//! The main job: somebody speaks in a session, and who depends on it is told, once and in
//! time.

use serde_json::{Value, json};
use tidings_tests::transcripts::{Claude, Codex, Transcript};
use tidings_tests::{
    Adopted, DEADLINE, Gateway, Scratch, TwoMachines, WATCHER, counted_turns, human_turns, notice,
};

#[test]
fn a_human_line_on_another_machine_is_one_signal_within_a_second() {
    let machines = TwoMachines::start();
    let gateway = &machines.gateway;
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);
    let mut follow = gateway.follow(session.version);

    let (turn, record, at) = claude.human_with_id("Stop the mill.");
    let followed = follow.signal_within(DEADLINE).expect("a signal");

    let signals = signals_after(gateway, &session);
    assert_eq!(signals.len(), 1, "{signals:#?}");
    let signal = &signals[0];
    assert_eq!(signal["sequence"], followed["sequence"]);
    for (member, expected) in [
        ("sessionKey", json!(session.key)),
        ("agentId", json!("main")),
        ("kind", json!("human_direct_message")),
        ("actorType", json!("human")),
        ("actorId", Value::Null),
        ("runId", Value::Null),
        ("occurredAt", json!(at)),
        ("summary", json!("human message via claude")),
        ("payload", node_payload(gateway, "claude")),
    ] {
        assert_eq!(signal[member], expected, "{member} of {signal}");
        assert_eq!(followed[member], expected, "{member} of {followed}");
    }
    let recorded_at = signal["recordedAt"].as_i64().expect("a time");
    let took_ms = recorded_at - claude.written_at();
    assert!((-10..1_000).contains(&took_ms), "it took {took_ms} ms");

    let why = gateway.ask(&["signals", "why", &signal["sequence"].to_string()]);
    assert_eq!(why["sequence"], signal["sequence"]);
    assert_eq!(
        why["evidence"],
        json!([{
            "node": "laptop",
            "catalog": "claude",
            "file": turn.file,
            "byteStart": turn.start,
            "byteEnd": turn.end,
            "recordId": record,
            "rule": "typed-prompt",
        }])
    );
}

#[test]
fn its_watcher_gets_one_notice_and_the_exact_delta_and_nothing_a_second_time() {
    let machines = TwoMachines::start();
    let gateway = &machines.gateway;
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);
    let mut follow = gateway.follow(session.version);
    assert_eq!(notices(gateway, "list"), Vec::<Value>::new());

    let (_, _, at) = claude.human_with_id("Stop the mill.");
    let signal = follow.signal_within(DEADLINE).expect("a signal");

    let expected = [json!({
        "target": session.key,
        "text": notice(&session.key, session.version),
        "changesSince": session.version,
    })];
    assert_eq!(notices(gateway, "list"), expected, "looking moves nothing");
    assert_eq!(notices(gateway, "list"), expected);
    assert_eq!(notices(gateway, "drain"), expected);
    assert_eq!(notices(gateway, "drain"), Vec::<Value>::new());
    assert_eq!(notices(gateway, "list"), Vec::<Value>::new());

    let status = changes_since(gateway, &session.key, session.version);
    assert_eq!(status["sessionKey"], *session.key);
    assert_eq!(status["stateVersion"], signal["sequence"]);
    assert_eq!(status["upstream"]["state"], "live");
    assert!(status["upstream"]["observedAt"].is_i64(), "{status}");
    assert_eq!(
        status["stateChanges"],
        json!({
            "events": [{
                "sequence": signal["sequence"],
                "kind": "human_direct_message",
                "actorType": "human",
                "occurredAt": at,
                "summary": "human message via claude",
                "payload": node_payload(gateway, "claude"),
            }],
            "truncated": false,
            "earliestAvailableSequence": session.version,
            "historyGap": false,
        })
    );
    let head = signal["sequence"].as_u64().expect("a sequence");
    let nothing = changes_since(gateway, &session.key, head);
    assert_eq!(nothing["stateChanges"]["events"], json!([]));
    assert_eq!(nothing["stateChanges"]["historyGap"], false);
}

#[test]
fn twenty_lines_before_the_watcher_looks_give_one_notice_at_a_time() {
    let machines = TwoMachines::start();
    let gateway = &machines.gateway;
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);
    let mut follow = gateway.follow(session.version);

    let mut turns: Vec<_> = (0..10).map(|n| claude.human(&format!("{n}"))).collect();
    turns.extend(claude.humans(&(10..20).map(|n| format!("{n}")).collect::<Vec<_>>()));
    follow.wait_for_turns(&session.key, 20);

    let pending = notices(gateway, "list");
    assert_eq!(pending.len(), 1, "{pending:#?}");
    assert_eq!(pending[0]["text"], notice(&session.key, session.version));
    assert_eq!(notices(gateway, "drain"), pending);

    // Whatever followed the first signal is one more notice, never one for each.
    let signals = signals_after(gateway, &session);
    let sequences: Vec<u64> = signals
        .iter()
        .map(|signal| signal["sequence"].as_u64().expect("a sequence"))
        .collect();
    let rest: Vec<String> = notices(gateway, "drain")
        .iter()
        .map(|notice| notice["text"].as_str().expect("a text").to_owned())
        .collect();
    if sequences.len() > 1 {
        assert_eq!(rest, [notice(&session.key, sequences[0])]);
    } else {
        assert_eq!(rest, Vec::<String>::new());
    }
    assert_eq!(notices(gateway, "drain"), Vec::<Value>::new());

    assert_eq!(human_turns(&signals, &session.key), 20);
    assert_eq!(counted_turns(gateway, &session.key), turns);
}

#[test]
fn what_no_human_typed_is_never_counted() {
    let machines = TwoMachines::start();
    let gateway = &machines.gateway;
    let mut claude = Claude::create(&machines.node.claude());
    let mut codex = Codex::create(&machines.node.codex());
    let sessions = [machines.adopt(&claude), machines.adopt(&codex)];
    let mut follow = gateway.follow(sessions[1].version);

    claude.everything_but_a_human("turn the mill");
    codex.everything_but_a_human("turn the mill");
    // What stands behind all that is read after it: so all that has been judged.
    let sentinels = [claude.human("Stop."), codex.human("Stop.")];
    for (session, sentinel) in sessions.iter().zip(sentinels) {
        follow.wait_for_turns(&session.key, 1);
        assert_eq!(counted_turns(gateway, &session.key), [sentinel]);
    }
    assert_eq!(notices(gateway, "drain").len(), 2);
    assert_eq!(notices(gateway, "drain"), Vec::<Value>::new());
}

#[test]
fn a_codex_thread_is_told_of_in_the_same_way() {
    let machines = TwoMachines::start();
    let gateway = &machines.gateway;
    let mut codex = Codex::create(&machines.node.codex());
    let session = machines.adopt(&codex);
    let mut follow = gateway.follow(session.version);

    let turn = codex.human("Stop the mill.");
    let signal = follow.signal_within(DEADLINE).expect("a signal");
    assert_eq!(signal["summary"], "human message via codex");
    assert_eq!(signal["payload"], node_payload(gateway, "codex"));
    assert_eq!(counted_turns(gateway, &session.key), [turn]);
    let told = notices(gateway, "drain");
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!(told[0]["text"], notice(&session.key, session.version));

    let second = codex.human("And start it again.");
    follow.wait_for_turns(&session.key, 2);
    assert_eq!(counted_turns(gateway, &session.key)[1..], [second]);
}

#[test]
fn the_gateways_own_machine_is_served_in_the_same_way() {
    let scratch = Scratch::new();
    let (claude_root, codex_root) = (scratch.folder("claude"), scratch.folder("codex"));
    let gateway = Gateway::start_with_local_node(&scratch, &claude_root, &codex_root);
    let mut claude = Claude::create(&claude_root);
    let session = gateway.adopt_local(&claude);
    let mut follow = gateway.follow(session.version);

    let turn = claude.human("Stop the mill.");
    let signal = follow.signal_within(DEADLINE).expect("a signal");
    assert_eq!(
        signal["payload"],
        json!({"catalog": "claude", "host": "gateway:local"})
    );
    assert_eq!(counted_turns(&gateway, &session.key), [turn]);
    let why = gateway.ask(&["signals", "why", &signal["sequence"].to_string()]);
    assert_eq!(why["evidence"][0]["node"], "local");
    let told = notices(&gateway, "drain");
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!(told[0]["text"], notice(&session.key, session.version));
    let status = changes_since(&gateway, &session.key, session.version);
    assert_eq!(status["upstream"]["state"], "live");
}

/// The notices of the watcher, by `notices list` or `notices drain`.
fn notices(gateway: &Gateway, verb: &str) -> Vec<Value> {
    let answer = gateway.ask(&["notices", verb, WATCHER]);
    answer["notices"].as_array().expect("notices").clone()
}

/// The signals of a session since it was adopted.
fn signals_after(gateway: &Gateway, session: &Adopted) -> Vec<Value> {
    let after = session.version.to_string();
    let list = gateway.ask(&[
        "signals",
        "list",
        "--session",
        &session.key,
        "--after",
        &after,
    ]);
    list["signals"].as_array().expect("signals").clone()
}

fn changes_since(gateway: &Gateway, key: &str, version: u64) -> Value {
    let version = version.to_string();
    gateway.ask(&["sessions", "status", key, "--changes-since", &version])
}

/// The payload of a signal from the one node.
fn node_payload(gateway: &Gateway, catalog: &str) -> Value {
    let list = gateway.ask(&["nodes", "list"]);
    let nodes = list["nodes"].as_array().expect("nodes");
    let node = nodes.iter().find(|node| node["name"] == "laptop");
    let id = node.and_then(|node| node["id"].as_str()).expect("an id");
    json!({"catalog": catalog, "host": format!("node:{id}")})
}
