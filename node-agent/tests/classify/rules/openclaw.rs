//! OpenClaw and Pi.

use serde_json::{Value, json};
use tidings_protocol::Catalog;

use super::{judge, judge_as};

fn header(members: Value) -> Value {
    let mut record = members;
    record["type"] = json!("session");
    record["id"] = json!("thread");
    if record.get("timestamp").is_none() {
        record["timestamp"] = json!("2026-09-10T10:00:00Z");
    }
    record
}

fn message(role: &str, content: Value, second: u32) -> Value {
    let mut record = json!({
        "type": "message", "timestamp": format!("2026-09-10T10:00:{second:02}Z"),
        "message": {"role": role},
    });
    record["message"]["content"] = content;
    record
}

#[test]
fn a_message_is_human_unless_somebody_else_wrote_it() {
    let metadata = "Conversation info (untrusted metadata):\n```json\n{\"a\": 1}\n```\n\nSender (untrusted metadata):\n{\"b\": 2}\n";
    for (expected, content) in [
        ("human: user-message", json!("hello")),
        (
            "human: user-message",
            json!([{"type": "text", "text": "hello"}]),
        ),
        ("human: image-prompt", json!([{"type": "image"}])),
        ("not: empty", json!("")),
        ("not: empty", json!(null)),
        ("not: heartbeat", json!("[OpenClaw heartbeat poll]")),
        (
            "not: heartbeat",
            json!("Read HEARTBEAT.md if it exists. Then"),
        ),
        (
            "not: exec-result",
            json!("System: [12:00] Exec completed (0)"),
        ),
        (
            "not: exec-result",
            json!("An async command you ran earlier has completed."),
        ),
        ("not: cron", json!("[cron:daily] go")),
        (
            "not: inter-session",
            json!("[Inter-session message] x isUser=false"),
        ),
        (
            "human: user-message",
            json!("System: [12:00] Exec completed\n\n[Sun 2026-03-08 22:03 GMT+9] and you?"),
        ),
        (
            "human: user-message",
            json!(["[cron:daily] go", "[Sun 2026-03-08 22:03 GMT+9] and you?"]),
        ),
        (
            "human: user-message",
            json!(format!("{metadata}\n[Sun 2026-03-08 22:03 GMT+9] hello")),
        ),
        ("not: empty", json!(metadata)),
        (
            "human: user-message",
            json!("[Queued messages while agent was busy]\n1. go"),
        ),
    ] {
        let found = judge(
            Catalog::Openclaw,
            &[header(json!({})), message("user", content.clone(), 1)],
        );
        assert_eq!(found[1], expected, "{content}");
    }
}

#[test]
fn roles_and_provenance_decide() {
    for role in [
        "assistant",
        "toolResult",
        "custom",
        "hookMessage",
        "branchSummary",
    ] {
        assert_eq!(
            judge(Catalog::Openclaw, &[message(role, json!("x"), 1)]),
            ["not: record-type"]
        );
    }
    let bash = json!({"type": "message", "message": {"role": "bashExecution", "command": "ls"}});
    assert_eq!(judge(Catalog::Openclaw, &[bash]), ["human: bash-mode"]);
    for (expected, kind) in [
        ("human: user-message", json!("external_user")),
        ("human: user-message", json!(null)),
        ("not: provenance", json!("inter_session")),
        ("not: provenance", json!("brand_new")),
    ] {
        let mut record = message("user", json!("hello"), 1);
        record["message"]["provenance"] = json!({"kind": kind});
        assert_eq!(judge(Catalog::Openclaw, &[record]), [expected], "{kind}");
    }
    for kind in [
        "custom_message",
        "compaction",
        "branch_summary",
        "brand_new",
    ] {
        let record = json!({"type": kind, "message": {"role": "user", "content": "x"}});
        assert_eq!(judge(Catalog::Openclaw, &[record]), ["not: record-type"]);
    }
}

#[test]
fn what_is_older_than_a_branched_file_is_a_copy() {
    for (expected, members) in [
        (
            "not: copy",
            json!({"parentSession": "p.jsonl", "timestamp": "2026-09-10T10:00:05Z"}),
        ),
        (
            "not: copy",
            json!({"branchedFrom": "p.jsonl", "timestamp": "2026-09-10T10:00:05Z"}),
        ),
        (
            "human: user-message",
            json!({"timestamp": "2026-09-10T10:00:05Z"}),
        ),
        ("human: user-message", json!({"parentSession": "p.jsonl"})),
    ] {
        let records = [header(members.clone()), message("user", json!("hello"), 4)];
        assert_eq!(judge(Catalog::Openclaw, &records)[1], expected, "{members}");
    }
}

#[test]
fn a_text_written_again_for_another_model_is_a_retry_in_openclaw_only() {
    let records = [
        message("user", json!("go"), 1),
        message("toolResult", json!("x"), 2),
        message("user", json!("go"), 3),
        message("user", json!("[Sun 2026-03-08 22:03 GMT+9] go"), 4),
        message("assistant", json!("done"), 5),
        message("user", json!("go"), 6),
    ];
    let (human, rest, retry) = ("human: user-message", "not: record-type", "not: retry-copy");
    let found = judge(Catalog::Openclaw, &records);
    assert_eq!(found, [human, rest, retry, retry, rest, human]);
    let found = judge_as(
        Catalog::Openclaw,
        ".pi/agent/sessions/--home-x--/t.jsonl",
        &records,
    );
    assert_eq!(found, [human, rest, human, human, rest, human]);
}
