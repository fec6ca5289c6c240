//! Claude Code's queue.

use serde_json::{Value, json};
use tidings_protocol::Catalog;

use super::claude::user;
use super::judge;

/// A record of the queue: its operation, content and second.
fn operation(operation: &str, content: &str, second: u32) -> Value {
    let mut record = json!({"type": "queue-operation", "operation": operation});
    record["timestamp"] = json!(format!("2026-09-10T10:00:{second:02}Z"));
    if !content.is_empty() {
        record["content"] = json!(content);
    }
    record
}

fn absorbed(content: &str, second: u32) -> Value {
    let mut record = operation("remove", content, second);
    record["reason"] = json!("absorbed_mid_turn");
    record
}

fn attachment(prompt: Value, second: u32) -> Value {
    let mut record = json!({
        "type": "attachment", "timestamp": format!("2026-09-10T10:00:{second:02}Z"),
        "attachment": {"type": "queued_command", "commandMode": "prompt"},
    });
    record["attachment"]["prompt"] = prompt;
    record
}

fn version(version: &str) -> Value {
    json!({"type": "system", "version": version})
}

fn queue(version_of: &str, records: &[Value]) -> Vec<String> {
    let mut all = vec![version(version_of)];
    all.extend_from_slice(records);
    judge(Catalog::Claude, &all).split_off(1)
}

#[test]
fn a_queued_prompt_counts_in_exactly_one_of_its_records() {
    let held = "not: queue-held";
    for (name, version, records, expected) in [
        (
            "taken at the end of the turn",
            "2.1.40",
            vec![
                operation("enqueue", "go", 1),
                operation("dequeue", "", 2),
                user(json!({}), json!("go")),
            ],
            vec![held, "not: queue-dequeued", "human: typed-prompt"],
        ),
        (
            "absorbed, before attachments",
            "2.1.96",
            vec![operation("enqueue", "go", 1), operation("remove", "", 2)],
            vec![held, "human: queue-absorbed"],
        ),
        (
            "withdrawn, since attachments",
            "2.1.97",
            vec![operation("enqueue", "go", 1), operation("remove", "", 2)],
            vec![held, "not: queue-removed"],
        ),
        (
            "pulled back",
            "2.1.40",
            vec![
                operation("enqueue", "go", 1),
                operation("popAll", "go", 2),
                operation("remove", "", 3),
            ],
            vec![held, "not: queue-withdrawn", "not: queue-removed"],
        ),
    ] {
        assert_eq!(queue(version, &records), expected, "{name}");
    }
}

#[test]
fn an_absorbed_prompt_and_its_attachment_are_one() {
    let held = "not: queue-held";
    for (name, version, records, expected) in [
        (
            "absorbed, removal first",
            "2.1.250",
            vec![
                operation("enqueue", "go", 1),
                absorbed("go", 2),
                attachment(json!("go"), 1),
            ],
            vec![held, "human: queue-absorbed", "not: queue-twin"],
        ),
        (
            "absorbed, attachment first",
            "2.1.250",
            vec![
                operation("enqueue", "go", 1),
                attachment(json!("go"), 1),
                absorbed("go", 2),
            ],
            vec![held, "human: queue-absorbed", "not: queue-twin"],
        ),
        (
            "absorbed, with an image",
            "2.1.250",
            vec![
                operation("enqueue", "see", 1),
                absorbed("see", 2),
                attachment(
                    json!([{"type": "text", "text": "see"}, {"type": "image"}]),
                    1,
                ),
            ],
            vec![held, "human: queue-absorbed", "not: queue-twin"],
        ),
        (
            "bare removal, then the attachment",
            "2.1.100",
            vec![
                operation("enqueue", "go", 1),
                operation("remove", "", 2),
                attachment(json!("go"), 1),
            ],
            vec![held, "not: queue-removed", "human: queue-absorbed"],
        ),
        (
            "the queueing was never seen",
            "2.1.250",
            vec![absorbed("go", 2), attachment(json!("go"), 1)],
            vec!["human: queue-absorbed", "not: queue-twin"],
        ),
        (
            "the queueing was never seen, attachment first",
            "2.1.250",
            vec![attachment(json!("go"), 1), absorbed("go", 2)],
            vec!["human: queue-absorbed", "not: queue-twin"],
        ),
        (
            "an image alone",
            "2.1.250",
            vec![attachment(json!([{"type": "image"}]), 1)],
            vec!["human: queue-absorbed"],
        ),
        (
            "the same words again are another prompt",
            "2.1.250",
            vec![
                operation("enqueue", "go", 1),
                absorbed("go", 2),
                attachment(json!("go"), 1),
                operation("enqueue", "go", 5),
                absorbed("go", 6),
                attachment(json!("go"), 5),
            ],
            vec![
                held,
                "human: queue-absorbed",
                "not: queue-twin",
                held,
                "human: queue-absorbed",
                "not: queue-twin",
            ],
        ),
    ] {
        assert_eq!(queue(version, &records), expected, "{name}");
    }
}

#[test]
fn prompts_overtake_notifications_in_the_queue() {
    let notification = "<task-notification>\n</task-notification>";
    let found = queue(
        "2.1.40",
        &[
            operation("enqueue", notification, 1),
            operation("enqueue", "go", 2),
            operation("remove", "", 3),
            operation("remove", "", 4),
        ],
    );
    let expected = [
        "not: task-notification",
        "not: queue-held",
        "human: queue-absorbed",
        "not: queue-removed",
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_is_queued_is_weighed_like_a_prompt() {
    for (content, enqueued, removed) in [
        ("/model", "not: builtin-command", "not: builtin-command"),
        (
            "/my:skill do it",
            "not: builtin-command",
            "not: builtin-command",
        ),
        (
            "/usr/bin is broken",
            "not: queue-held",
            "human: queue-absorbed",
        ),
        ("/ what", "not: queue-held", "human: queue-absorbed"),
        ("! ls", "not: queue-held", "human: bash-mode"),
        ("<tick>", "not: tick", "not: tick"),
        (
            "Another Claude session sent a message: x",
            "not: peer-message",
            "not: peer-message",
        ),
        (
            "Implement the following plan: x",
            "not: plan-handover",
            "not: plan-handover",
        ),
    ] {
        let found = queue(
            "2.1.250",
            &[operation("enqueue", content, 1), absorbed(content, 2)],
        );
        assert_eq!(found, [enqueued, removed], "{content}");
    }
}

#[test]
fn attachments_say_themselves_whose_they_are() {
    for (expected, members) in [
        ("human: queue-absorbed", json!({})),
        (
            "human: queue-absorbed",
            json!({"origin": {"kind": "human"}, "humanTurn": true}),
        ),
        ("not: origin", json!({"origin": {"kind": "peer"}})),
        ("not: meta", json!({"isMeta": true})),
        (
            "not: task-notification",
            json!({"commandMode": "task-notification"}),
        ),
        (
            "unclassified: unknown-command-mode",
            json!({"commandMode": "brand-new"}),
        ),
        (
            "human: queue-absorbed",
            json!({"commandMode": "brand-new", "origin": {"kind": "human"}}),
        ),
    ] {
        let mut record = attachment(json!("go"), 1);
        for (name, value) in members.as_object().expect("members") {
            record["attachment"][name] = value.clone();
        }
        assert_eq!(judge(Catalog::Claude, &[record]), [expected], "{members}");
    }
}

#[test]
fn a_program_that_queues_is_no_human() {
    let program = json!({"type": "system", "version": "2.1.250", "entrypoint": "sdk-ts"});
    let found = judge(
        Catalog::Claude,
        &[program, operation("enqueue", "go", 1), absorbed("go", 2)],
    );
    assert_eq!(found[1..], ["not: programmatic", "not: queue-removed"]);
}

#[test]
fn an_unknown_operation_is_unclassified() {
    let found = queue("2.1.250", &[operation("shuffle", "go", 1)]);
    assert_eq!(found, ["unclassified: unknown-queue-operation"]);
}
