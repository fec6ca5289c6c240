//! Claude Code.

use serde_json::{Value, json};
use tidings_protocol::Catalog;

use super::{judge, judge_as};

fn check(cases: &[(&str, Value)]) {
    for (expected, record) in cases {
        let found = judge(Catalog::Claude, std::slice::from_ref(record));
        assert_eq!(found, [*expected], "{record}");
    }
}

/// A prompt with more members.
pub(super) fn user(members: Value, content: Value) -> Value {
    let mut record = members;
    record["type"] = json!("user");
    record["message"] = json!({"role": "user"});
    record["message"]["content"] = content;
    record
}

#[test]
fn only_three_types_can_be_human() {
    let message = json!({"role": "user", "content": "hello"});
    for kind in [
        "assistant",
        "system",
        "summary",
        "progress",
        "last-prompt",
        "brand-new",
    ] {
        check(&[(
            "not: record-type",
            json!({"type": kind, "message": message}),
        )]);
    }
    check(&[
        ("not: record-type", json!({"message": message})),
        ("not: record-type", json!({"type": 7, "message": message})),
        (
            "not: record-type",
            json!({"type": "attachment", "attachment": {"type": "file"}}),
        ),
        (
            "human: typed-prompt",
            json!({"type": "user", "message": message}),
        ),
    ]);
}

#[test]
fn fields_turn_a_record_away_before_its_content_is_read() {
    for (expected, members) in [
        ("not: copy", json!({"forkedFrom": {"sessionId": "x"}})),
        ("not: sidechain", json!({"isSidechain": true})),
        ("not: sidechain", json!({"agentId": "a1"})),
        ("not: sidechain", json!({"teamName": "t"})),
        (
            "human: typed-prompt",
            json!({"isSidechain": false, "agentId": null}),
        ),
        ("not: meta", json!({"isMeta": true})),
        ("human: typed-prompt", json!({"isMeta": "true"})),
        ("not: compact-summary", json!({"isCompactSummary": true})),
        (
            "not: transcript-only",
            json!({"isVisibleInTranscriptOnly": true}),
        ),
        ("not: turn-companion", json!({"turnCompanion": true})),
        ("not: plan-content", json!({"planContent": ""})),
        ("human: typed-prompt", json!({"planContent": null})),
        ("not: slack-turn", json!({"verifiedSlackHumanTurn": true})),
        (
            "human: typed-prompt",
            json!({"origin": {"kind": "human"}, "promptSource": "sdk"}),
        ),
        (
            "not: origin",
            json!({"origin": {"kind": "task-notification"}}),
        ),
        ("not: origin", json!({"origin": {"kind": "brand-new"}})),
        ("not: origin", json!({"origin": {"kind": 7}})),
        ("human: typed-prompt", json!({"origin": {}})),
        ("not: turn-origin", json!({"turnOrigin": "sdk"})),
        (
            "not: turn-origin",
            json!({"turnOrigin": "sdk", "origin": {"kind": "human"}}),
        ),
        ("not: prompt-source", json!({"promptSource": "system"})),
        (
            "human: typed-prompt",
            json!({"promptSource": "typed", "entrypoint": "sdk-cli"}),
        ),
        ("human: typed-prompt", json!({"promptSource": "queued"})),
        (
            "human: typed-prompt",
            json!({"promptSource": "suggestion_accepted"}),
        ),
        (
            "human: editor-prompt",
            json!({"promptSource": "sdk", "entrypoint": "claude-vscode"}),
        ),
        (
            "human: editor-prompt",
            json!({"promptSource": "sdk", "entrypoint": "claude-desktop"}),
        ),
        (
            "human: editor-prompt",
            json!({"promptSource": "sdk", "entrypoint": "remote_mobile"}),
        ),
        (
            "human: editor-prompt",
            json!({"promptSource": "sdk", "entrypoint": "intellij"}),
        ),
        (
            "not: programmatic",
            json!({"promptSource": "sdk", "entrypoint": "cli"}),
        ),
        ("not: programmatic", json!({"promptSource": "sdk"})),
        ("not: programmatic", json!({"entrypoint": "sdk-py"})),
        ("not: programmatic", json!({"entrypoint": "local-agent"})),
        ("human: typed-prompt", json!({"entrypoint": "brand-new"})),
        (
            "unclassified: unknown-prompt-source",
            json!({"promptSource": "telepathy"}),
        ),
        (
            "human: typed-prompt",
            json!({"promptSource": "telepathy", "origin": {"kind": "human"}}),
        ),
    ] {
        check(&[(expected, user(members, json!("hello")))]);
    }
}

#[test]
fn content_is_weighed_block_by_block() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image", "source": {"data": "x"}});
    let result = json!({"type": "tool_result", "content": [{"type": "text", "text": "nested"}]});
    for (expected, content) in [
        ("human: typed-prompt", json!("hello")),
        ("human: typed-prompt", json!([text("hello")])),
        ("not: empty", json!("  \n")),
        ("not: empty", json!(null)),
        ("not: empty", json!([])),
        ("not: empty", json!({"text": "x"})),
        ("human: image-prompt", json!([image])),
        ("human: image-prompt", json!([image, {"type": "document"}])),
        ("human: image-prompt", json!([image, text(" ")])),
        (
            "human: image-prompt",
            json!([text("<ide_selection>x</ide_selection>"), image]),
        ),
        ("human: typed-prompt", json!([image, text("what is this?")])),
        (
            "not: interrupted",
            json!([image, text("[Request interrupted by user]")]),
        ),
        (
            "unclassified: unknown-content",
            json!([{"type": "hologram"}]),
        ),
        (
            "human: typed-prompt",
            json!([{"type": "hologram"}, text("see?")]),
        ),
        ("not: tool-result", json!([result])),
        ("not: tool-result", json!([result, image])),
        (
            "not: tool-result",
            json!([result, text("[Request interrupted by user for tool use]")]),
        ),
        (
            "not: tool-result",
            json!([result, text("<system-reminder>x</system-reminder>")]),
        ),
        (
            "human: approval-feedback",
            json!([result, text("yes, but use tabs")]),
        ),
    ] {
        check(&[(expected, user(json!({}), content))]);
    }
}

#[test]
fn the_programs_own_texts_do_not_count() {
    let text = |text: &str| json!({"type": "text", "text": text});
    for (expected, content) in [
        (
            "not: interrupted",
            json!(" [Request interrupted by user]\n"),
        ),
        (
            "human: typed-prompt",
            json!("[Request interrupted by user] why?"),
        ),
        (
            "human: typed-prompt",
            json!([text("[Request interrupted by user]"), text("go on")]),
        ),
        (
            "not: ide-context",
            json!("<ide_opened_file>a</ide_opened_file>"),
        ),
        ("not: ide-context", json!("<ide_selection>never closed")),
        (
            "human: typed-prompt",
            json!("<ide_opened_file>a</ide_opened_file>\nwhat is it?"),
        ),
        ("human: typed-prompt", json!("what is <ide_opened_file>?")),
        (
            "not: command-output",
            json!("<local-command-stdout>x</local-command-stdout>"),
        ),
        (
            "not: command-output",
            json!(" \n<bash-stderr></bash-stderr>"),
        ),
        ("not: command-caveat", json!("<local-command-caveat>x")),
        ("human: typed-prompt", json!("Caveat: the box is down")),
        (
            "not: task-notification",
            json!("<task-notification>\n</task-notification>"),
        ),
        ("not: system-reminder", json!("<system-reminder>x")),
        ("not: hook-feedback", json!("Stop hook feedback:\nno")),
        (
            "not: peer-message",
            json!("Another Claude session sent a message: x"),
        ),
        (
            "not: compact-summary",
            json!("This session is being continued from a previous conversation that"),
        ),
        (
            "not: skill-body",
            json!("Base directory for this skill: /x"),
        ),
        (
            "not: builtin-command",
            json!("<command-name>/clear</command-name>"),
        ),
        (
            "human: custom-command",
            json!("<command-message>go</command-message>\n<command-name>/go</command-name>"),
        ),
        ("human: bash-mode", json!("<bash-input>ls</bash-input>")),
        (
            "not: plan-handover",
            json!("Implement the following plan:\n1."),
        ),
    ] {
        check(&[(expected, user(json!({}), content))]);
    }
}

#[test]
fn a_human_origin_keeps_a_text_that_looks_like_the_programs_own() {
    let human = json!({"origin": {"kind": "human"}});
    for (expected, text) in [
        (
            "human: typed-prompt",
            "<system-reminder> is what I see, why?",
        ),
        ("human: typed-prompt", "Implement the following plan: 1"),
        ("not: interrupted", "[Request interrupted by user]"),
        ("not: ide-context", "<ide_selection>x</ide_selection>"),
    ] {
        check(&[(expected, user(human.clone(), json!(text)))]);
    }
}

#[test]
fn an_answer_to_a_tool_counts_only_with_words() {
    for name in ["toolUseResult", "sourceToolUseID"] {
        let members = json!({name: "x"});
        check(&[
            (
                "not: tool-result",
                user(members.clone(), json!([{"type": "image"}])),
            ),
            ("not: tool-result", user(members.clone(), json!("<tick>"))),
            (
                "human: approval-feedback",
                user(members, json!([{"type": "text", "text": "no"}])),
            ),
        ]);
    }
}

#[test]
fn a_file_of_a_sub_agent_holds_nothing_human() {
    let record = user(json!({}), json!("hello"));
    for name in ["agent-a1.jsonl", "session/subagents/x.jsonl"] {
        let found = judge_as(Catalog::Claude, name, std::slice::from_ref(&record));
        assert_eq!(found, ["not: sidechain"]);
    }
}

#[test]
fn an_id_counts_once_even_where_its_first_record_was_a_copy() {
    let with_id = |members: Value| {
        let mut record = user(members, json!("hello"));
        record["uuid"] = json!("u");
        record
    };
    let found = judge(
        Catalog::Claude,
        &[
            with_id(json!({"forkedFrom": {}})),
            with_id(json!({})),
            user(json!({}), json!("no id")),
            user(json!({}), json!("no id")),
        ],
    );
    assert_eq!(
        found,
        [
            "not: copy",
            "not: copy",
            "human: typed-prompt",
            "human: typed-prompt"
        ]
    );
}
