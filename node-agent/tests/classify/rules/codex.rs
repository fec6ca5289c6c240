//! Codex.

use serde_json::{Value, json};
use tidings_protocol::Catalog;

use super::judge;

fn at(second: u32, kind: &str, payload: Value) -> Value {
    let stamp = format!("2026-09-10T10:00:{second:02}.000Z");
    let mut record = json!({"timestamp": stamp, "type": kind});
    record["payload"] = payload;
    record
}

fn meta(members: Value) -> Value {
    let mut payload = members;
    payload["id"] = json!("thread");
    if payload.get("timestamp").is_none() {
        payload["timestamp"] = json!("2026-09-10T10:00:00.000Z");
    }
    at(0, "session_meta", payload)
}

fn event(text: &str) -> Value {
    at(
        1,
        "event_msg",
        json!({"type": "user_message", "message": text}),
    )
}

fn item(texts: &[&str]) -> Value {
    let content: Vec<_> = texts
        .iter()
        .map(|text| json!({"type": "input_text", "text": text}))
        .collect();
    at(
        1,
        "response_item",
        json!({"type": "message", "role": "user", "content": content}),
    )
}

fn with_kinds(texts: &[&str], kinds: &[&str]) -> Value {
    let mut item = item(texts);
    item["payload"]["internal_chat_message_metadata_passthrough"] =
        json!({"content_item_kinds": kinds});
    item
}

fn other() -> Value {
    at(2, "event_msg", json!({"type": "token_count"}))
}

#[test]
fn the_first_header_says_whose_thread_it_is() {
    for (expected, members) in [
        ("human: user-message", json!({})),
        (
            "human: user-message",
            json!({"source": "cli", "originator": "codex_cli_rs"}),
        ),
        (
            "human: user-message",
            json!({"source": "vscode", "originator": "codex_vscode"}),
        ),
        (
            "human: user-message",
            json!({"source": "vscode", "originator": "Codex Desktop"}),
        ),
        (
            "human: user-message",
            json!({"source": {"custom": "atlas"}, "thread_source": "user"}),
        ),
        (
            "human: user-message",
            json!({"source": null, "originator": "user"}),
        ),
        ("not: programmatic", json!({"source": "exec"})),
        ("not: programmatic", json!({"source": "mcp"})),
        (
            "not: programmatic",
            json!({"originator": "codex_exec", "thread_source": "user"}),
        ),
        (
            "not: programmatic",
            json!({"source": "vscode", "originator": "my-bot"}),
        ),
        (
            "not: subagent-thread",
            json!({"source": {"subagent": "review"}}),
        ),
        ("not: subagent-thread", json!({"source": {"internal": "x"}})),
        ("not: subagent-thread", json!({"thread_source": "subagent"})),
        (
            "not: subagent-thread",
            json!({"thread_source": "memory_consolidation"}),
        ),
    ] {
        let second = meta(json!({"source": "cli", "originator": "codex_cli_rs"}));
        let found = judge(
            Catalog::Codex,
            &[meta(members.clone()), second, event("hello")],
        );
        assert_eq!(found[2], expected, "{members}");
    }
}

#[test]
fn events_are_human_unless_they_are_the_programs_own() {
    let completed = |kind: &str| {
        let item = json!({"type": kind, "id": "i", "content": [{"type": "text", "text": "go"}]});
        at(
            1,
            "event_msg",
            json!({"type": "item_completed", "item": item}),
        )
    };
    let with = |name: &str, value: Value| {
        let mut event = event("x");
        event["payload"][name] = value;
        event
    };
    let mut image_only = event("");
    image_only["payload"]["images"] = json!(["data:"]);
    for (expected, record) in [
        ("human: user-message", event("hello")),
        ("human: user-message", completed("UserMessage")),
        ("not: record-type", completed("HookPrompt")),
        ("human: user-message", with("kind", json!("plain"))),
        (
            "not: injected-context",
            with("kind", json!("environment_context")),
        ),
        ("human: user-message", image_only),
        ("not: empty", event(" ")),
        (
            "human: user-message",
            event("# Files mentioned by the user:\na.rs"),
        ),
        (
            "not: record-type",
            at(
                1,
                "event_msg",
                json!({"type": "agent_message", "message": "x"}),
            ),
        ),
        (
            "not: record-type",
            at(
                1,
                "compacted",
                json!({"replacement_history": [{"role": "user"}]}),
            ),
        ),
    ] {
        assert_eq!(
            judge(Catalog::Codex, std::slice::from_ref(&record)),
            [expected],
            "{record}"
        );
    }
}

#[test]
fn an_item_waits_for_its_event_and_counts_alone_where_none_comes() {
    let human = "human: response-item";
    let twin = "not: duplicate-of-event";
    let event_rule = "human: user-message";
    let rest = "not: record-type";
    for (name, records, expected) in [
        (
            "its event",
            vec![item(&["go"]), event("go")],
            vec![twin, event_rule],
        ),
        (
            "its event, written otherwise",
            vec![item(&["a", "b"]), event(" a\nb")],
            vec![twin, event_rule],
        ),
        ("no event", vec![item(&["go"]), other()], vec![human, rest]),
        (
            "another event, and so it cannot be one of a user's",
            vec![item(&["context nobody knows"]), event("go")],
            vec!["not: response-item-after-event", event_rule],
        ),
        (
            "after an event only events count",
            vec![event("a"), item(&["b"])],
            vec![event_rule, "not: response-item-after-event"],
        ),
        (
            "one that names its kinds counts all the same",
            vec![event("a"), with_kinds(&["b"], &["user.text"])],
            vec![event_rule, human],
        ),
        (
            "its event comes after four others",
            vec![
                with_kinds(&["go"], &["user.text"]),
                other(),
                other(),
                other(),
                other(),
                event("go"),
            ],
            vec![human, rest, rest, rest, rest, event_rule],
        ),
        (
            "its event comes after three others",
            vec![
                with_kinds(&["go"], &["user.text"]),
                other(),
                other(),
                other(),
                event("go"),
            ],
            vec![twin, rest, rest, rest, event_rule],
        ),
    ] {
        assert_eq!(judge(Catalog::Codex, &records), expected, "{name}");
    }
}

#[test]
fn items_are_told_from_what_the_program_injects() {
    for (expected, record) in [
        (
            "human: response-item",
            with_kinds(&["go"], &["agents_md.instructions", "user.text"]),
        ),
        (
            "not: injected-context",
            with_kinds(&["go"], &["environments.environment_context"]),
        ),
        (
            "not: injected-context",
            item(&["# AGENTS.md instructions for /x"]),
        ),
        (
            "not: injected-context",
            item(&["go", "  <ENVIRONMENT_CONTEXT>x"]),
        ),
        (
            "human: response-item",
            with_kinds(&["<skill> is what I mean"], &["user.text"]),
        ),
        ("human: bash-mode", item(&["<user_shell_command>ls"])),
        (
            "human: response-item",
            item(&["<image name=[Image #1]>", "</image>", "look"]),
        ),
        (
            "human: response-item",
            item(&["<image name=[Image #1]>", "</image>"]),
        ),
        ("not: empty", item(&[" "])),
        (
            "not: record-type",
            at(
                1,
                "response_item",
                json!({"role": "assistant", "content": []}),
            ),
        ),
        (
            "not: record-type",
            at(
                1,
                "response_item",
                json!({"type": "reasoning", "role": "user"}),
            ),
        ),
        // The oldest files have no envelope.
        (
            "human: response-item",
            json!({"timestamp": "x", "role": "user", "content": "go"}),
        ),
        (
            "human: response-item",
            json!({"type": "message", "role": "user", "content": [{"text": "go"}]}),
        ),
        (
            "unclassified: unknown-shape",
            json!({"role": "user", "message": "go"}),
        ),
        ("not: record-type", json!({"record_type": "state"})),
    ] {
        assert_eq!(
            judge(Catalog::Codex, std::slice::from_ref(&record)),
            [expected],
            "{record}"
        );
    }
}

#[test]
fn a_shell_line_counts_though_events_were_seen() {
    let found = judge(
        Catalog::Codex,
        &[event("a"), item(&["<user_shell_command>ls"])],
    );
    assert_eq!(found, ["human: user-message", "human: bash-mode"]);
}

#[test]
fn the_history_that_a_fork_copied_does_not_count() {
    let fork = meta(json!({"forked_from_id": "parent", "timestamp": "2026-09-10T10:00:20.000Z"}));
    let turn = |second: u32, id: &str| {
        at(
            second,
            "event_msg",
            json!({"type": "task_started", "turn_id": id}),
        )
    };
    // 2026-09-10T09:59:00 and 10:00:30, as UUIDs of version 7.
    let (old, new) = (uuid_v7(1_789_034_340_000), uuid_v7(1_789_034_430_000));
    let found = judge(
        Catalog::Codex,
        &[
            fork.clone(),
            turn(21, &old),
            event("copied"),
            turn(21, &new),
            at(
                31,
                "event_msg",
                json!({"type": "user_message", "message": "new"}),
            ),
        ],
    );
    assert_eq!(
        found[2..],
        ["not: copy", "not: record-type", "human: user-message"]
    );

    // Ids that tell no time: what is stamped well after the fork is new.
    let found = judge(
        Catalog::Codex,
        &[
            fork,
            turn(20, "turn-1"),
            event("copied"),
            turn(40, "turn-2"),
            at(
                41,
                "event_msg",
                json!({"type": "user_message", "message": "new"}),
            ),
            event("older than the thread"),
        ],
    );
    assert_eq!(
        found[2..],
        [
            "not: copy",
            "not: record-type",
            "human: user-message",
            "not: copy"
        ]
    );
}

fn uuid_v7(ms: u64) -> String {
    let hex = format!("{ms:012x}");
    format!("{}-{}-7abc-8def-0123456789ab", &hex[..8], &hex[8..])
}
