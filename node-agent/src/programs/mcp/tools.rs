//! The tools: their names, their arguments, and the request that each becomes. Pure.

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{
    ApiError, ErrorType, PrivateText, Reply, Request, SessionKind, SessionsHistory, SessionsList,
    SessionsSend, StatusQuery, WatchPair,
};

/// How many sessions one call lists, where nobody says: what a conversation can bear.
const DEFAULT_SESSIONS: u32 = 50;

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    SessionStatus,
    SessionsList,
    SessionsHistory,
    SessionsSend,
    SessionWatch,
    SessionUnwatch,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StatusArguments {
    session_key: SessionKey,
    changes_since: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListArguments {
    agent: Option<String>,
    kind: Option<SessionKind>,
    host: Option<String>,
    active_minutes: Option<u32>,
    #[serde(default)]
    archived: bool,
    limit: Option<u32>,
    #[serde(default)]
    offset: u32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HistoryArguments {
    session_key: SessionKey,
    limit: Option<u32>,
    before: Option<u64>,
    #[serde(default)]
    tools: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SendArguments {
    session_key: SessionKey,
    message: PrivateText,
    watch: Option<bool>,
    expected_session_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TargetArguments {
    session_key: SessionKey,
}

impl Tool {
    /// Every tool, in the order in which they are listed.
    pub(super) const ALL: [Self; 6] = [
        Self::SessionStatus,
        Self::SessionsList,
        Self::SessionsHistory,
        Self::SessionsSend,
        Self::SessionWatch,
        Self::SessionUnwatch,
    ];

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SessionStatus => "session_status",
            Self::SessionsList => "sessions_list",
            Self::SessionsHistory => "sessions_history",
            Self::SessionsSend => "sessions_send",
            Self::SessionWatch => "session_watch",
            Self::SessionUnwatch => "session_unwatch",
        }
    }

    /// The tool of that name.
    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// True for a tool that speaks as the caller's own session.
    pub(super) fn needs_caller(self) -> bool {
        matches!(
            self,
            Self::SessionsSend | Self::SessionWatch | Self::SessionUnwatch
        )
    }

    /// The request that a call of it becomes.
    pub(super) fn request(self, arguments: JsonObject) -> Result<Request, ApiError> {
        Ok(match self {
            Self::SessionStatus => {
                let given: StatusArguments = self.read(arguments)?;
                Request::SessionStatus(StatusQuery {
                    session_key: given.session_key,
                    agent: None,
                    changes_since: given.changes_since,
                    reader: None,
                })
            }
            Self::SessionsList => {
                let given: ListArguments = self.read(arguments)?;
                Request::SessionsList(SessionsList {
                    agent: given.agent,
                    kind: given.kind,
                    host: given.host,
                    active_minutes: given.active_minutes,
                    archived: given.archived,
                    limit: Some(given.limit.unwrap_or(DEFAULT_SESSIONS)),
                    offset: given.offset,
                })
            }
            Self::SessionsHistory => {
                let given: HistoryArguments = self.read(arguments)?;
                Request::SessionsHistory(SessionsHistory {
                    session_key: given.session_key,
                    agent: None,
                    limit: given.limit,
                    before: given.before,
                    tools: given.tools,
                })
            }
            Self::SessionsSend => {
                let given: SendArguments = self.read(arguments)?;
                Request::SessionsSend(SessionsSend {
                    session_key: given.session_key,
                    agent: None,
                    message: given.message,
                    sender: None,
                    watch: given.watch,
                    expected_session_id: given.expected_session_id,
                })
            }
            Self::SessionWatch => Request::WatchAdd(self.pair(arguments)?),
            Self::SessionUnwatch => Request::WatchRemove(self.pair(arguments)?),
        })
    }

    fn pair(self, arguments: JsonObject) -> Result<WatchPair, ApiError> {
        let given: TargetArguments = self.read(arguments)?;
        Ok(WatchPair {
            watcher: None,
            target: given.session_key,
            target_agent: None,
        })
    }

    /// Reads arguments. The error names members and types, and no value of a message.
    fn read<T: DeserializeOwned>(self, arguments: JsonObject) -> Result<T, ApiError> {
        serde_json::from_value(Value::Object(arguments)).map_err(|error| {
            ApiError::new(
                ErrorType::InvalidRequest,
                format!("the arguments of {} are not right: {error}", self.name()),
            )
            .with_hint("its input schema says which there are")
        })
    }

    /// What a reply to its request says; `None` for a reply to another.
    pub(super) fn result(self, reply: Reply) -> Option<Value> {
        let value = match (self, reply) {
            (Self::SessionStatus, Reply::SessionStatus(body)) => serde_json::to_value(body),
            (Self::SessionsList, Reply::SessionsList(body)) => serde_json::to_value(body),
            (Self::SessionsHistory, Reply::SessionsHistory(body)) => serde_json::to_value(body),
            (Self::SessionsSend, Reply::SessionsSend(body)) => serde_json::to_value(body),
            (Self::SessionWatch, Reply::WatchAdd(body)) => serde_json::to_value(body),
            (Self::SessionUnwatch, Reply::WatchRemove(body)) => serde_json::to_value(body),
            _ => return None,
        };
        value.ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::listing::object;
    use super::*;

    #[test]
    fn a_schema_has_just_the_arguments_that_are_read() {
        for tool in Tool::ALL {
            let listed = tool.listed();
            let properties = listed.input_schema["properties"].clone();
            for (name, property) in properties.as_object().expect("properties") {
                assert!(!name.contains('_'), "{name} is in camelCase");
                let mut arguments = object(json!({"sessionKey": "agent:main:t", "message": "m"}));
                arguments.retain(|known, _| properties.get(known).is_some());
                let value = match property["type"].as_str() {
                    _ if property["enum"].is_array() => property["enum"][0].clone(),
                    Some("integer") => json!(7),
                    Some("boolean") => json!(true),
                    _ => json!("agent:main:t"),
                };
                arguments.insert(name.clone(), value);
                tool.request(arguments).expect(name);
            }
        }
    }

    #[test]
    fn what_is_not_in_a_schema_or_missing_is_a_named_error_without_a_message() {
        for (tool, arguments, named) in [
            (Tool::SessionStatus, json!({}), "sessionKey"),
            (
                Tool::SessionStatus,
                json!({"sessionKey": "agent:main:t", "changes_since": 1}),
                "changes_since",
            ),
            (
                Tool::SessionWatch,
                json!({"sessionKey": ""}),
                "session_watch",
            ),
            (
                Tool::SessionsSend,
                json!({"sessionKey": "agent:main:t", "message": ["secret words"]}),
                "sessions_send",
            ),
            (
                Tool::SessionsSend,
                json!({"sessionKey": "agent:main:t", "message": "secret words", "watch": "yes"}),
                "sessions_send",
            ),
        ] {
            let error = tool.request(object(arguments)).expect_err(named);
            assert_eq!(error.error_type, ErrorType::InvalidRequest);
            assert!(error.message.contains(named), "{error}");
            assert!(!error.message.contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_tool_that_reconciles_says_what_a_gap_means() {
        let status = Tool::SessionStatus.listed();
        let description = status.description.expect("a description");
        for word in [
            "changesSince",
            "historyGap",
            "sessions_history",
            "nextSince",
        ] {
            assert!(description.contains(word), "{word}");
        }
    }
}
