//! A session's goal: set and cleared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PrivateText;
use crate::SessionKey;

/// Gives a session a goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoalSet {
    /// The session. It must exist, unless it gives the goal to itself.
    pub session_key: SessionKey,
    /// The agent of a bare key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The goal.
    pub goal: PrivateText,
    /// The session that does this; none for that of the caller, or an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<SessionKey>,
}

/// Takes a session's goal away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoalClear {
    /// The session.
    pub session_key: SessionKey,
    /// The agent of a bare key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The session that does this; none for that of the caller, or an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<SessionKey>,
}

/// What became of a goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoalChanged {
    /// False when the goal was the same before.
    pub changed: bool,
    /// The signal that says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
}
