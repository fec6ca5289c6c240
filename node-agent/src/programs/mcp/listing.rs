//! What the tools say of themselves: titles, descriptions, schemas, and what they touch.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool as Listed, ToolAnnotations};
use serde_json::{Value, json};

use tidings_protocol::session_api::SessionKind;

use super::tools::Tool;

/// What a tool does to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touch {
    /// Looks only.
    Nothing,
    /// Adds something.
    Adds,
    /// Takes something away.
    Removes,
}

impl Tool {
    fn title(self) -> &'static str {
        match self {
            Self::SessionStatus => "How a session stands",
            Self::SessionsList => "Sessions",
            Self::SessionsHistory => "What was said in a session",
            Self::SessionsSend => "Send a session a message",
            Self::SessionWatch => "Watch a session",
            Self::SessionUnwatch => "Watch a session no more",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::SessionStatus => {
                "How a session stands and, with changesSince, what changed in it after that \
                 state version. Call it before acting when a notice says that a session \
                 changed, with the sessionKey and changesSince of the notice. It answers \
                 stateVersion and stateChanges.events, oldest first: metadata, never message \
                 text. truncated: call again with nextSince. historyGap true: events after \
                 changesSince are not kept any more, so the list is not an exact delta; then \
                 read sessions_history and session_status afresh instead of relying on it. \
                 upstream says how far the answer can be trusted: an empty list is complete \
                 only up to upstream.observedAt."
            }
            Self::SessionsList => {
                "The sessions of all machines, pinned and newest first, with their keys and \
                 state versions."
            }
            Self::SessionsHistory => {
                "The newest part of what was said in a session, oldest first; before gives \
                 what precedes a page. Tool calls and results only with tools; long texts are \
                 cut, secrets left out."
            }
            Self::SessionsSend => {
                "Sends a session a message, which it gets at its next turn. With watch true \
                 you are told once when somebody else changes that session after this."
            }
            Self::SessionWatch => {
                "Has this conversation told, once and at its next turn, when somebody else \
                 changes that session from now on. The key of a thread that is no session yet \
                 (agent:<agent>:adopted:<catalog>:<host>:<thread>) makes it one."
            }
            Self::SessionUnwatch => {
                "Ends this conversation's watch on a session. removed is false where there \
                 was none."
            }
        }
    }

    fn touch(self) -> Touch {
        match self {
            Self::SessionStatus | Self::SessionsList | Self::SessionsHistory => Touch::Nothing,
            Self::SessionsSend | Self::SessionWatch => Touch::Adds,
            Self::SessionUnwatch => Touch::Removes,
        }
    }

    /// As it is listed.
    pub(super) fn listed(self) -> Listed {
        let input = Arc::new(object(self.input()));
        let touch = self.touch();
        let annotations = ToolAnnotations::with_title(self.title())
            .read_only(touch == Touch::Nothing)
            .destructive(touch == Touch::Removes)
            .idempotent(self != Self::SessionsSend)
            .open_world(false);
        Listed::new(self.name(), self.description(), input)
            .with_title(self.title())
            .with_raw_output_schema(Arc::new(object(self.output())))
            .with_annotations(annotations)
    }

    fn input(self) -> Value {
        let key = json!({
            "type": "string",
            "description": "The session's key, as a notice or sessions_list gives it",
        });
        match self {
            Self::SessionStatus => schema(
                json!({
                    "sessionKey": key,
                    "changesSince": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "Asks for what changed after this state version",
                    },
                }),
                &["sessionKey"],
            ),
            Self::SessionsList => schema(
                json!({
                    "agent": text("Only of this agent"),
                    "kind": {
                        "type": "string",
                        "enum": SessionKind::ALL.map(SessionKind::as_str),
                        "description": "Only of this kind",
                    },
                    "host": text("Only those on this host: a node id, a host name, or local"),
                    "activeMinutes": count("Only those updated within so many minutes"),
                    "archived": flag("The archived ones instead of the active ones"),
                    "limit": count("How many, 50 where it is not given, at most 200"),
                    "offset": count("How many to pass over: nextOffset of the page before"),
                }),
                &[],
            ),
            Self::SessionsHistory => schema(
                json!({
                    "sessionKey": key,
                    "limit": count("How many texts, at most 50"),
                    "before": count("Only what stands before: before of a page"),
                    "tools": flag("With tool calls and their results"),
                }),
                &["sessionKey"],
            ),
            Self::SessionsSend => schema(
                json!({
                    "sessionKey": key,
                    "message": text("What to say, at most 128 KiB"),
                    "watch": flag("Watch that session from the moment the message is sent"),
                    "expectedSessionId": text("Send only while this transcript continues it"),
                }),
                &["sessionKey", "message"],
            ),
            Self::SessionWatch | Self::SessionUnwatch => {
                schema(json!({"sessionKey": key}), &["sessionKey"])
            }
        }
    }

    fn output(self) -> Value {
        let whole = json!({"type": "integer"});
        let yes_or_no = json!({"type": "boolean"});
        let key = json!({"type": "string"});
        let list = json!({"type": "array", "items": {"type": "object"}});
        let (members, required): (Value, &[&str]) = match self {
            Self::SessionStatus => (
                json!({
                    "sessionKey": key,
                    "stateVersion": whole,
                    "upstream": {"type": "object"},
                    "stateChanges": {
                        "type": "object",
                        "properties": {
                            "events": list,
                            "truncated": yes_or_no,
                            "nextSince": whole,
                            "earliestAvailableSequence": whole,
                            "historyGap": yes_or_no,
                        },
                        "required": [
                            "events", "truncated", "earliestAvailableSequence", "historyGap",
                        ],
                    },
                }),
                &["sessionKey", "stateVersion"],
            ),
            Self::SessionsList => (
                json!({
                    "sessions": list,
                    "count": whole,
                    "hasMore": yes_or_no,
                    "nextOffset": whole,
                }),
                &["sessions", "count", "hasMore"],
            ),
            Self::SessionsHistory => (
                json!({"sessionKey": key, "items": list, "before": whole}),
                &["sessionKey", "items"],
            ),
            Self::SessionsSend => (
                json!({
                    "sessionKey": key,
                    "messageId": whole,
                    "queued": yes_or_no,
                    "ran": yes_or_no,
                    "watched": yes_or_no,
                    "reason": key,
                }),
                &["sessionKey", "messageId", "queued", "ran"],
            ),
            Self::SessionWatch => (
                json!({"watched": yes_or_no, "fromVersion": whole, "reason": key}),
                &["watched"],
            ),
            Self::SessionUnwatch => (json!({"removed": yes_or_no}), &["removed"]),
        };
        json!({"type": "object", "properties": members, "required": required})
    }
}

fn schema(properties: impl Into<Value>, required: &[&str]) -> Value {
    let properties: Value = properties.into();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn count(description: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": description})
}

fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

pub(super) fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}
