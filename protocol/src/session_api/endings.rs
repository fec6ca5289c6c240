//! What ends a conversation, a session, or all that an agent has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EpochMs, SessionKey};

/// A conversation that was begun anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionResetDone {
    /// The session.
    pub session_key: SessionKey,
    /// The transcript that continues it now; an adopted one keeps its own.
    pub session_id: String,
    /// How many watches of the session ended with the old conversation.
    pub watches_ended: u64,
}

/// A session that was removed with everything that was its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionDeleted {
    /// The session.
    pub session_key: SessionKey,
    /// Its agent.
    pub agent_id: String,
}

/// Names an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRef {
    /// The agent.
    pub agent: String,
}

/// Agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agents {
    /// The agents that have a session, by name.
    pub agents: Vec<AgentRow>,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRow {
    /// The agent.
    pub agent_id: String,
    /// How many sessions it has.
    pub sessions: u64,
    /// When one of them last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<EpochMs>,
}

/// An agent that was removed with all that was its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentDeleted {
    /// The agent.
    pub agent_id: String,
    /// How many sessions went with it.
    pub sessions: u64,
}
