//! The tools of a session's turn: requests of the session interface, made as that session.
//! Pure.

use serde_json::{Map, Value, json};
use tidings_protocol::session_api::{ApiError, Reply, Request};

use super::prompt::cut;
use crate::turns::models::Tool;

/// The tool that only the turn before a compaction has.
pub(super) const MEMORY_APPEND: &str = "memory_append";
/// The longest result, in bytes: what the requests that answer with text are bounded by.
const MAX_RESULT_BYTES: usize = 96 * 1024;

/// What a call means.
#[derive(Debug)]
pub(super) enum Called {
    /// A request.
    Request(Request),
    /// Notes to write.
    Memory(String),
}

/// The tools of every turn.
pub(super) fn session_tools() -> Vec<Tool> {
    let key = || text("The session's key, as a notice or sessions_list gives it");
    let target = || object(&[("sessionKey", key())], &["sessionKey"]);
    vec![
        Tool {
            name: "session_status",
            description: "How a session stands and, with changesSince, what changed in it after \
                that state version. Call it before acting when a notice says that a session \
                changed. It answers stateVersion and stateChanges.events, oldest first: \
                metadata, never message text. truncated: call again with nextSince. historyGap \
                true: the list is not an exact delta; then read sessions_history and \
                session_status afresh. upstream says how far the answer can be trusted: an \
                empty list is complete only up to upstream.observedAt.",
            parameters: object(
                &[
                    ("sessionKey", key()),
                    ("changesSince", number("The version that you know")),
                ],
                &["sessionKey"],
            ),
        },
        Tool {
            name: "sessions_list",
            description: "The sessions of all machines, pinned and newest first, with their keys \
                and state versions.",
            parameters: object(
                &[
                    ("agent", text("Only of this agent")),
                    ("activeMinutes", number("Only those that changed so lately")),
                    ("limit", number("How many, at most 200")),
                    ("offset", number("How many to pass over")),
                ],
                &[],
            ),
        },
        Tool {
            name: "sessions_history",
            description: "The newest part of what was said in a session, oldest first; before \
                gives what precedes a page. Tool calls and results only with tools.",
            parameters: object(
                &[
                    ("sessionKey", key()),
                    ("limit", number("How many items, at most 50")),
                    ("before", number("As a page before this one gave it")),
                    ("tools", json!({"type": "boolean"})),
                ],
                &["sessionKey"],
            ),
        },
        Tool {
            name: "sessions_send",
            description: "Sends a session a message, which it gets at its next turn. With watch \
                true you are told once when somebody else changes that session after this.",
            parameters: object(
                &[
                    ("sessionKey", key()),
                    ("message", text("What it says")),
                    ("watch", json!({"type": "boolean"})),
                ],
                &["sessionKey", "message"],
            ),
        },
        Tool {
            name: "sessions_spawn",
            description: "Makes a child session with a task; it is run at once. You are sent a \
                message with its result.",
            parameters: object(
                &[
                    ("task", text("What it is to do")),
                    ("label", text("A name to show")),
                    ("agent", text("The child's agent; else yours")),
                ],
                &["task"],
            ),
        },
        Tool {
            name: "watch_add",
            description: "Has you told, once and at your next turn, when somebody else changes \
                that session from now on.",
            parameters: target(),
        },
        Tool {
            name: "watch_remove",
            description: "Ends your watch on a session.",
            parameters: target(),
        },
        Tool {
            name: "goal_set",
            description: "Gives a session a goal, or you yourself.",
            parameters: object(
                &[("sessionKey", key()), ("goal", text("The goal"))],
                &["sessionKey", "goal"],
            ),
        },
        Tool {
            name: "goal_clear",
            description: "Takes a session's goal away.",
            parameters: target(),
        },
    ]
}

/// The tool of the turn before a compaction.
pub(super) fn memory_tool() -> Tool {
    Tool {
        name: MEMORY_APPEND,
        description: "Appends text to today's file of durable notes, memory/YYYY-MM-DD.md in \
            your workspace.",
        parameters: object(&[("text", text("What to note, as Markdown"))], &["text"]),
    }
}

/// What a call means, or what is wrong with it: for the model.
pub(super) fn called(name: &str, arguments: &Value) -> Result<Called, String> {
    let Value::Object(arguments) = arguments else {
        return Err("The arguments are no JSON object.".to_owned());
    };
    let mut arguments = arguments.clone();
    if name == MEMORY_APPEND {
        return match arguments.get("text").and_then(Value::as_str) {
            Some(text) if !text.trim().is_empty() => Ok(Called::Memory(text.to_owned())),
            _ => Err("text: say what to note.".to_owned()),
        };
    }
    if !session_tools().iter().any(|tool| tool.name == name) {
        return Err("There is no such tool.".to_owned());
    }
    match name {
        "sessions_spawn" => {
            arguments.insert("runtime".to_owned(), "subagent".into());
        }
        "watch_add" | "watch_remove" => {
            if let Some(target) = arguments.remove("sessionKey") {
                arguments.insert("target".to_owned(), target);
            }
        }
        _ => {}
    }
    let request = Value::Object(Map::from_iter([(name.to_owned(), arguments.into())]));
    serde_json::from_value(request)
        .map(Called::Request)
        .map_err(|error| format!("The arguments cannot be read: {error}"))
}

/// What a call is answered with, and whether that is an error.
pub(super) fn result(answer: Result<Reply, ApiError>) -> (String, bool) {
    match answer {
        Ok(reply) => {
            // A reply is a map of one entry: its name, and what it says.
            let value = serde_json::to_value(&reply).unwrap_or_default();
            let body = match value {
                Value::Object(named) => named.into_iter().next().map(|(_, body)| body),
                _ => None,
            };
            (
                cut(body.unwrap_or_default().to_string(), MAX_RESULT_BYTES),
                false,
            )
        }
        Err(error) => {
            let hint = error
                .hint
                .map(|hint| format!(" ({hint})"))
                .unwrap_or_default();
            (format!("{}{hint}", error.message), true)
        }
    }
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn number(description: &str) -> Value {
    json!({"type": "integer", "description": description})
}

fn object(properties: &[(&str, Value)], required: &[&str]) -> Value {
    let named = |(name, value): &(&str, Value)| ((*name).to_owned(), value.clone());
    let properties: Map<String, Value> = properties.iter().map(named).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

#[cfg(test)]
mod tests {
    use tidings_protocol::session_api::{ErrorType, Notices, Privilege};

    use super::*;

    /// Arguments with all that a tool requires.
    fn sample(tool: &Tool) -> Value {
        let required = tool.parameters["required"].as_array().expect("a list");
        let name = |name: &Value| name.as_str().expect("a name").to_owned();
        let members = required
            .iter()
            .map(|member| (name(member), json!("agent:main:main")));
        Value::Object(members.collect())
    }

    #[test]
    fn each_tool_is_a_request_that_a_session_may_make() {
        for tool in session_tools() {
            let called = called(tool.name, &sample(&tool)).expect(tool.name);
            let Called::Request(request) = called else {
                panic!("{}", tool.name);
            };
            assert_eq!(request.privilege(), Privilege::Session, "{}", tool.name);
        }
        let note = called(MEMORY_APPEND, &json!({"text": "x"}));
        assert!(matches!(note, Ok(Called::Memory(text)) if text == "x"));
    }

    #[test]
    fn what_is_no_call_is_answered_and_not_made() {
        for (name, arguments) in [
            ("session_delete", json!({"sessionKey": "agent:main:main"})),
            ("session_status", json!("{")),
            ("session_status", json!({})),
            ("session_status", json!({"sessionKey": 7})),
            (MEMORY_APPEND, json!({"text": " "})),
            (MEMORY_APPEND, json!({})),
        ] {
            assert!(called(name, &arguments).is_err(), "{name} {arguments}");
        }
    }

    #[test]
    fn a_result_is_what_the_reply_says_and_an_error_says_what_helps() {
        let (text, is_error) = result(Ok(Reply::Notices(Notices {
            notices: Vec::new(),
        })));
        assert_eq!((text.as_str(), is_error), (r#"{"notices":[]}"#, false));
        let error = ApiError::new(ErrorType::NotFound, "no such session").with_hint("look");
        let (text, is_error) = result(Err(error));
        assert_eq!((text.as_str(), is_error), ("no such session (look)", true));
    }
}
