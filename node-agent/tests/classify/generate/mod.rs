//! Makes transcripts out of random bytes: every field and marker the rules know, in any
//! combination, written in any way JSON allows.

mod write;

use serde_json::{Map, Value, json};
use tidings_protocol::Catalog;

pub(crate) use write::{Length, transcript};

/// Random choices, read from bytes so that a failure shrinks.
pub(crate) struct Dice<'a> {
    bytes: &'a [u8],
    at: usize,
    ids: usize,
    twins: Twins,
}

/// Whether two records may have one id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Twins {
    Some,
    None,
}

impl<'a> Dice<'a> {
    pub(crate) fn new(bytes: &'a [u8], twins: Twins) -> Self {
        Self {
            bytes,
            at: 0,
            ids: 0,
            twins,
        }
    }

    /// A number below `sides`; 0 when the bytes are used up.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte) * sides / 256
    }

    pub(crate) fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == sides - 1
    }

    /// An id that may come twice, as copies do; a record that cannot be a human's has its
    /// own, for no program copies a prompt into something else.
    fn id(&mut self, may_be_human: bool) -> Value {
        self.ids += 1;
        let number = if may_be_human && self.twins == Twins::Some {
            1_000 + self.roll(40)
        } else {
            2_000 + self.ids
        };
        // In letters that no damage writes: one id never becomes another.
        let number = number.to_string();
        let letters = number.bytes().map(|digit| char::from(digit - b'0' + b'a'));
        json!(letters.collect::<String>())
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())].clone()
    }
}

const PLAIN: &[&str] = &[
    "fix it",
    "continue",
    " two  words ",
    "",
    " \n",
    "say \"hi\" \\ bye",
    "{\"type\":\"user\"}",
    "a { b } [ c",
    "/model",
    "/my:skill now",
    "/usr/bin is broken",
    "! ls",
    "tab\there",
];

const CLAUDE: &[&str] = &[
    "<local-command-stdout>x</local-command-stdout>",
    "<bash-input>ls</bash-input>",
    "<task-notification>\n<id>1</id>",
    "  <system-reminder>x",
    "Stop hook feedback: no",
    "[Request interrupted by user]",
    " [Request interrupted by user for tool use] ",
    "[Request interrupted by user] twice?",
    "<ide_opened_file>a.rs</ide_opened_file>",
    "<ide_selection>x</ide_selection>\nwhy?",
    "<ide_selection>never closed",
    "<command-name>/clear</command-name>",
    "<command-message>go</command-message>",
    "Implement the following plan: 1",
    "Another Claude session sent a message: hi",
    "This session is being continued from a previous conversation.",
    "<tick>",
    "<goal>x",
    "Caveat: the box is down",
    "Base directory for this skill: /x",
];

const CODEX: &[&str] = &[
    "# AGENTS.md instructions for /x",
    "<Environment_Context>x",
    "<user_shell_command>ls",
    "<image name=[Image #1]>",
    "</image>",
    "<turn_aborted>",
    "# Not injected",
    "# Context from my IDE setup:\nx\n## My request for Codex:\nfix it",
    "# Files mentioned by the user:\nx",
];

const OPENCLAW: &[&str] = &[
    "[OpenClaw heartbeat poll]",
    "Read HEARTBEAT.md if it exists.",
    "[cron:1] go",
    "System: [now] Exec completed\n[Sun 2026-03-08 22:03 GMT+9] and you?",
    "System: [now] Exec completed\nnothing else",
    "[Inter-session message] x isUser=false",
    "Sender (untrusted metadata):\n```json\n{\"a\":1}\n```\nhello",
    "[Sun 2026-03-08 22:03 GMT+9] continue",
];

fn text(dice: &mut Dice<'_>, catalog: Catalog) -> String {
    let special = match catalog {
        Catalog::Claude => CLAUDE,
        Catalog::Codex => CODEX,
        Catalog::Openclaw => OPENCLAW,
    };
    let pool = if dice.roll(5) < 2 { special } else { PLAIN };
    dice.pick(pool).to_owned()
}

fn time(dice: &mut Dice<'_>) -> Value {
    let (day, second) = (10 + dice.roll(5), 10 + dice.roll(20));
    json!(format!("2026-09-{day}T10:00:{second}.037Z"))
}

/// One record of the program.
pub(crate) fn record(dice: &mut Dice<'_>, catalog: Catalog) -> Value {
    match catalog {
        Catalog::Claude => claude(dice),
        Catalog::Codex => codex(dice),
        Catalog::Openclaw => openclaw(dice),
    }
}

fn claude(dice: &mut Dice<'_>) -> Value {
    let mut record = Map::new();
    let kind = dice.pick(&[
        "user",
        "user",
        "user",
        "user",
        "queue-operation",
        "queue-operation",
        "attachment",
        "assistant",
        "progress",
        "system",
        "something-new",
    ]);
    record.insert("type".into(), json!(kind));
    if dice.roll(10) > 0 {
        record.insert("timestamp".into(), time(dice));
    }
    for (name, values, odds) in claude_fields() {
        if dice.one_in(odds) {
            record.insert(name.into(), dice.pick(&values));
        }
    }
    match kind {
        "queue-operation" => {
            let operation = dice.pick(&[
                "enqueue", "enqueue", "enqueue", "dequeue", "remove", "remove", "popAll", "new",
            ]);
            record.insert("operation".into(), json!(operation));
            if operation == "enqueue" || dice.one_in(2) {
                record.insert("content".into(), json!(text(dice, Catalog::Claude)));
            }
            if operation == "remove" && dice.one_in(2) {
                let reason = dice.pick(&[json!("absorbed_mid_turn"), json!("other"), Value::Null]);
                record.insert("reason".into(), reason);
            }
        }
        "attachment" => {
            let prompt = content(dice, Catalog::Claude, &["text", "image"]);
            let mut attachment = json!({
                "type": dice.pick(&["queued_command", "queued_command", "other"]),
                "prompt": prompt,
            });
            let modes = [
                json!("prompt"),
                json!("task-notification"),
                json!("new"),
                Value::Null,
            ];
            attachment["commandMode"] = dice.pick(&modes);
            if dice.one_in(4) {
                attachment["origin"] = json!({"kind": dice.pick(&["human", "peer"])});
            }
            if dice.one_in(10) {
                attachment["isMeta"] = json!(true);
            }
            record.insert("attachment".into(), attachment);
        }
        _ => {
            let kinds = ["text", "text", "tool_result", "image", "document", "audio"];
            let content = content(dice, Catalog::Claude, &kinds);
            let message = json!({"role": dice.pick(&["user", "assistant"]), "content": content});
            record.insert("message".into(), message);
        }
    }
    if dice.roll(8) > 0 {
        let is_result = record
            .get("message")
            .is_some_and(|m| m.to_string().contains("tool_result"));
        let is_queued = record
            .get("attachment")
            .is_some_and(|a| a["type"] == "queued_command");
        let id = dice.id((kind == "user" && !is_result) || is_queued);
        record.insert("uuid".into(), id);
    }
    Value::Object(record)
}

fn claude_fields() -> Vec<(&'static str, Vec<Value>, usize)> {
    let flag = || vec![json!(true), json!(false), json!("true"), Value::Null];
    let id = || vec![json!("x"), Value::Null];
    vec![
        ("isSidechain", flag(), 8),
        ("isMeta", flag(), 10),
        ("isCompactSummary", flag(), 16),
        ("isVisibleInTranscriptOnly", flag(), 16),
        ("turnCompanion", flag(), 16),
        ("verifiedSlackHumanTurn", flag(), 16),
        (
            "planContent",
            vec![json!("plan"), json!({}), Value::Null],
            16,
        ),
        (
            "forkedFrom",
            vec![json!({"sessionId": "x"}), Value::Null],
            16,
        ),
        ("agentId", id(), 16),
        ("teamName", id(), 16),
        (
            "toolUseResult",
            vec![json!({"type": "text", "content": "x"}), json!("e")],
            8,
        ),
        ("sourceToolUseID", id(), 16),
        (
            "origin",
            vec![
                json!({"kind": "human"}),
                json!({"kind": "peer"}),
                json!({}),
                json!("human"),
            ],
            6,
        ),
        (
            "turnOrigin",
            vec![json!("human"), json!("sdk"), Value::Null],
            10,
        ),
        (
            "promptSource",
            vec![
                json!("typed"),
                json!("sdk"),
                json!("system"),
                json!("new"),
                Value::Null,
            ],
            5,
        ),
        (
            "entrypoint",
            vec![
                json!("cli"),
                json!("sdk-cli"),
                json!("claude-vscode"),
                json!("remote_x"),
            ],
            4,
        ),
        (
            "version",
            vec![json!("2.1.40"), json!("2.1.250"), json!("odd")],
            3,
        ),
    ]
}

fn codex(dice: &mut Dice<'_>) -> Value {
    let texts = content(
        dice,
        Catalog::Codex,
        &["input_text", "input_text", "input_image"],
    );
    let mut payload = match dice.roll(10) {
        0 => json!({
            "id": "thread",
            "timestamp": time(dice),
            "source": dice.pick(&[
                json!("cli"), json!("exec"), json!({"subagent": "review"}), Value::Null,
            ]),
            "originator": dice.pick(&["codex_cli_rs", "codex-tui", "user", "zed", "codex_exec"]),
            "thread_source": dice.pick(&["user", "user", "user", "subagent"]),
            "forked_from_id": dice.pick(&[Value::Null, Value::Null, json!("parent")]),
        }),
        1 => json!({"type": "agent_message", "message": "done"}),
        2 | 3 => json!({
            "type": "user_message",
            "message": text(dice, Catalog::Codex),
            "images": dice.pick(&[json!([]), json!(["x"]), Value::Null]),
            "kind": dice.pick(&[json!("plain"), json!("environment_context"), Value::Null]),
        }),
        4 => json!({
            "type": "item_completed",
            "item": {"type": dice.pick(&["UserMessage", "Plan"]), "id": "i", "content": texts},
        }),
        5 => json!({"type": "task_started", "turn_id": "turn-1"}),
        _ => json!({
            "type": dice.pick(&["message", "message", "message", "reasoning"]),
            "role": dice.pick(&["user", "user", "user", "assistant", "developer"]),
            "content": texts,
        }),
    };
    if dice.one_in(4) {
        let kinds = dice.pick(&[json!(["user.text"]), json!(["agents_md.instructions"])]);
        payload["internal_chat_message_metadata_passthrough"] =
            json!({"turn_id": "turn-2", "content_item_kinds": kinds});
    }
    if dice.one_in(4) {
        payload["id"] = dice.id(payload["role"] == "user");
    }
    if payload["role"] == "user" && dice.one_in(5) {
        // The oldest files have no envelope.
        payload["timestamp"] = time(dice);
        return payload;
    }
    let kind = if payload.get("originator").is_some() {
        "session_meta"
    } else if payload.get("role").is_some() {
        "response_item"
    } else {
        dice.pick(&["event_msg", "event_msg", "event_msg", "turn_context"])
    };
    json!({"timestamp": time(dice), "type": kind, "payload": payload})
}

fn openclaw(dice: &mut Dice<'_>) -> Value {
    let kind = dice.pick(&[
        "message", "message", "message", "message", "session", "custom",
    ]);
    let mut record = json!({"type": kind});
    record["timestamp"] = time(dice);
    if kind == "session" && dice.one_in(3) {
        record["parentSession"] = json!("parent");
    }
    if kind == "message" {
        let role = dice.pick(&[
            "user",
            "user",
            "user",
            "assistant",
            "toolResult",
            "bashExecution",
        ]);
        let content = content(
            dice,
            Catalog::Openclaw,
            &["text", "text", "image", "toolCall"],
        );
        record["message"] = json!({"role": role, "content": content});
        if dice.one_in(6) {
            let kind = dice.pick(&[json!("external_user"), json!("inter_session"), Value::Null]);
            record["message"]["provenance"] = json!({"kind": kind});
        }
    }
    record["id"] = dice.id(record["message"]["role"] == "user");
    record
}

/// A string, an array of blocks, or nothing of the kind.
fn content(dice: &mut Dice<'_>, catalog: Catalog, kinds: &[&str]) -> Value {
    match dice.roll(8) {
        0..=2 => json!(text(dice, catalog)),
        3 if dice.one_in(2) => dice.pick(&[Value::Null, json!(7), json!([]), json!({})]),
        _ => {
            let count = 1 + dice.roll(3);
            Value::Array((0..count).map(|_| block(dice, catalog, kinds)).collect())
        }
    }
}

fn block(dice: &mut Dice<'_>, catalog: Catalog, kinds: &[&str]) -> Value {
    let kind = dice.pick(kinds);
    match kind {
        "text" | "input_text" => json!({"type": kind, "text": text(dice, catalog)}),
        "tool_result" => {
            let inner = dice.pick(&[json!("out"), json!([{"type": "text", "text": "nested"}])]);
            json!({"type": kind, "tool_use_id": "t", "content": inner})
        }
        _ => json!({"type": kind, "source": {"type": "base64", "data": "AAAA"}}),
    }
}
