//! What is said in one record of a transcript.

use serde_json::Value;
use tidings_protocol::session_api::{
    HistoryItem, HistoryRole, MAX_HISTORY_TEXT_CHARS, PrivateText,
};
use tidings_protocol::{Catalog, EpochMs};

use super::redact::redacted;
use crate::classify;

/// The texts of a record, oldest first; none of what is no record, or says nothing.
pub(super) fn texts_of(catalog: Catalog, line: &[u8], tools: bool) -> Vec<HistoryItem> {
    let Ok(record) = serde_json::from_slice::<Value>(line) else {
        return Vec::new();
    };
    let mut said = Said {
        at: time_of(&record),
        tools,
        items: Vec::new(),
    };
    match catalog {
        Catalog::Claude => said.claude(&record),
        Catalog::Codex => said.codex(&record),
        Catalog::Openclaw => said.openclaw(&record),
    }
    said.items
}

fn time_of(record: &Value) -> Option<EpochMs> {
    classify::time_in(&record.get("timestamp")?.to_string())
}

struct Said {
    at: Option<EpochMs>,
    tools: bool,
    items: Vec<HistoryItem>,
}

impl Said {
    fn push(&mut self, role: HistoryRole, text: &str) {
        let text = redacted(text.trim());
        if text.is_empty() || (role == HistoryRole::Tool && !self.tools) {
            return;
        }
        let end = text.char_indices().nth(MAX_HISTORY_TEXT_CHARS);
        self.items.push(HistoryItem {
            role,
            cut: end.is_some(),
            text: PrivateText(match end {
                Some((end, _)) => text[..end].to_owned(),
                None => text,
            }),
            at: self.at,
        });
    }

    /// A call of a tool: its name, and what it was given.
    fn call(&mut self, name: Option<&Value>, input: Option<&Value>) {
        let name = name.and_then(Value::as_str).unwrap_or("tool");
        let input = match input {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        self.push(HistoryRole::Tool, &format!("{name} {input}"));
    }

    /// A text, or blocks of which some are texts.
    fn content(&mut self, role: HistoryRole, content: Option<&Value>) {
        match content {
            Some(Value::String(text)) => self.push(role, text),
            Some(Value::Array(blocks)) => {
                for block in blocks {
                    self.block(role, block);
                }
            }
            _ => {}
        }
    }

    fn block(&mut self, role: HistoryRole, block: &Value) {
        match block.get("type").and_then(Value::as_str) {
            Some("text" | "input_text" | "output_text") => {
                let text = block.get("text").and_then(Value::as_str);
                self.push(role, text.unwrap_or_default());
            }
            Some("tool_result") => self.content(HistoryRole::Tool, block.get("content")),
            Some("tool_use") => self.call(block.get("name"), block.get("input")),
            Some("toolCall") => self.call(block.get("name"), block.get("arguments")),
            _ => {}
        }
    }

    fn claude(&mut self, record: &Value) {
        // What the program itself put in, and what a sub-agent said.
        let is_set = |flag: &str| record.get(flag) == Some(&Value::Bool(true));
        if ["isMeta", "isSidechain", "isVisibleInTranscriptOnly"]
            .into_iter()
            .any(|flag| is_set(flag) && !is_set("isCompactSummary"))
        {
            return;
        }
        let role = match record.get("type").and_then(Value::as_str) {
            Some("user") if is_set("isCompactSummary") => HistoryRole::Summary,
            Some("user") => HistoryRole::User,
            Some("assistant") => HistoryRole::Assistant,
            _ => return,
        };
        self.content(role, record.pointer("/message/content"));
    }

    fn codex(&mut self, record: &Value) {
        let Some(payload) = record.get("payload") else {
            return;
        };
        let named = |value: &Value| value.get("type").and_then(Value::as_str).map(str::to_owned);
        match (named(record).as_deref(), named(payload).as_deref()) {
            (Some("response_item"), Some("message")) => {
                let content = payload.get("content");
                match payload.get("role").and_then(Value::as_str) {
                    Some("assistant") => self.content(HistoryRole::Assistant, content),
                    Some("user") if !is_injected(content) => {
                        self.content(HistoryRole::User, content);
                    }
                    _ => {}
                }
            }
            (Some("response_item"), Some("function_call" | "custom_tool_call")) => {
                let input = payload.get("arguments").or(payload.get("input"));
                self.call(payload.get("name"), input);
            }
            (Some("response_item"), Some("function_call_output" | "custom_tool_call_output")) => {
                match payload.get("output") {
                    Some(Value::Object(output)) => {
                        self.content(HistoryRole::Tool, output.get("content"));
                    }
                    output => self.content(HistoryRole::Tool, output),
                }
            }
            (Some("compacted"), _) => {
                self.content(HistoryRole::Summary, payload.get("message"));
            }
            _ => {}
        }
    }

    fn openclaw(&mut self, record: &Value) {
        match record.get("type").and_then(Value::as_str) {
            Some("message") => {
                let role = match record.pointer("/message/role").and_then(Value::as_str) {
                    Some("user") => HistoryRole::User,
                    Some("assistant") => HistoryRole::Assistant,
                    Some("toolResult") => HistoryRole::Tool,
                    _ => return,
                };
                let content = record.pointer("/message/content");
                if role == HistoryRole::Tool && !self.tools {
                    return;
                }
                self.content(role, content);
            }
            Some("compaction") => self.content(HistoryRole::Summary, record.get("summary")),
            _ => {}
        }
    }
}

/// True for what the program puts into the model's input by itself.
fn is_injected(content: Option<&Value>) -> bool {
    let text = match content {
        Some(Value::String(text)) => Some(text.as_str()),
        Some(Value::Array(blocks)) => blocks
            .first()
            .and_then(|block| block.get("text"))
            .and_then(Value::as_str),
        _ => None,
    };
    text.is_some_and(classify::is_injected_by_codex)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of a record as `role: text`.
    fn said(catalog: Catalog, tools: bool, line: &str) -> Vec<String> {
        let items = texts_of(catalog, line.as_bytes(), tools);
        let line = |item: HistoryItem| format!("{}: {}", item.role.as_str(), item.text.0);
        items.into_iter().map(line).collect()
    }

    /// Checks what a record says: the talk alone, and with tools where that is more.
    fn check(catalog: Catalog, cases: &[(&str, &[&str], &[&str])]) {
        for (line, talk, with_tools) in cases {
            let with_tools = if with_tools.is_empty() {
                talk
            } else {
                with_tools
            };
            assert_eq!(said(catalog, false, line), *talk, "{line}");
            assert_eq!(said(catalog, true, line), *with_tools, "{line}");
        }
    }

    #[test]
    fn claude_says_what_is_said_in_messages() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            (
                r#"{"type":"user","message":{"role":"user","content":" hi "}}"#,
                &["user: hi"],
                &[],
            ),
            (
                r#"{"type":"user","isMeta":true,"message":{"content":"caveat"}}"#,
                &[],
                &[],
            ),
            (
                r#"{"type":"user","isSidechain":true,"message":{"content":"sub"}}"#,
                &[],
                &[],
            ),
            (
                r#"{"type":"user","isCompactSummary":true,"isVisibleInTranscriptOnly":true,"message":{"content":"so far"}}"#,
                &["summary: so far"],
                &[],
            ),
            (
                r#"{"type":"user","message":{"content":[{"type":"tool_result","content":[{"type":"text","text":"out"}]},{"type":"text","text":"no"}]}}"#,
                &["user: no"],
                &["tool: out", "user: no"],
            ),
            (
                r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"yes"},{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}"#,
                &["assistant: yes"],
                &["assistant: yes", r#"tool: Bash {"command":"ls"}"#],
            ),
        ];
        check(Catalog::Claude, cases);
    }

    #[test]
    fn codex_says_what_is_said_in_response_items() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            (
                r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}"#,
                &["user: hi"],
                &[],
            ),
            (
                r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x"}]}}"#,
                &[],
                &[],
            ),
            (
                r#"{"type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]}}"#,
                &[],
                &[],
            ),
            (
                r#"{"type":"event_msg","payload":{"type":"user_message","message":"hi"}}"#,
                &[],
                &[],
            ),
            (
                r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"yes"}]}}"#,
                &["assistant: yes"],
                &[],
            ),
            (
                r#"{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}"}}"#,
                &[],
                &["tool: shell {}"],
            ),
            (
                r#"{"type":"response_item","payload":{"type":"function_call_output","output":"done"}}"#,
                &[],
                &["tool: done"],
            ),
        ];
        check(Catalog::Codex, cases);
    }

    #[test]
    fn openclaw_says_what_is_said_in_messages() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            (
                r#"{"type":"message","message":{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image"}]}}"#,
                &["user: hi"],
                &[],
            ),
            (
                r#"{"type":"message","message":{"role":"toolResult","content":[{"type":"text","text":"out"}]}}"#,
                &[],
                &["tool: out"],
            ),
            (
                r#"{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"yes"},{"type":"toolCall","name":"read","arguments":{"p":1}}]}}"#,
                &["assistant: yes"],
                &["assistant: yes", r#"tool: read {"p":1}"#],
            ),
            (
                r#"{"type":"compaction","summary":"so far"}"#,
                &["summary: so far"],
                &[],
            ),
            (r#"{"type":"custom","data":"x"}"#, &[], &[]),
            ("[1]", &[], &[]),
        ];
        check(Catalog::Openclaw, cases);
    }

    #[test]
    fn a_text_is_cut_by_characters_and_has_its_records_time() {
        let text = "ä".repeat(MAX_HISTORY_TEXT_CHARS + 1);
        let line = format!(
            r#"{{"type":"message","timestamp":"2026-11-30T12:00:00.000Z","message":{{"role":"user","content":"{text}"}}}}"#
        );
        let items = texts_of(Catalog::Openclaw, line.as_bytes(), false);
        assert_eq!(items[0].text.0.chars().count(), MAX_HISTORY_TEXT_CHARS);
        assert!(items[0].cut);
        assert_eq!(items[0].at, Some(1_796_040_000_000));
    }
}
