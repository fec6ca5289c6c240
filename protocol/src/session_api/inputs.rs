//! What happened in a session that runs elsewhere: an input, a compaction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EpochMs, SessionKey};

/// Where an input came from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputProvenance {
    /// A person, by whatever channel; and everything that says nothing about itself.
    #[default]
    ExternalUser,
    /// Another session.
    InterSession {
        /// The session that sent it.
        sender: SessionKey,
    },
    /// The system itself, or an internal effect: a heartbeat, a scheduled job.
    InternalSystem,
}

/// Says that a session got an input. It exists from then on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageRecorded {
    /// The session; none for that of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// The agent of a bare key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Where it came from.
    #[serde(default)]
    pub provenance: InputProvenance,
    /// The channel it came by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// When it came; now where nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurred_at: Option<EpochMs>,
    /// Records once per session under this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe_key: Option<String>,
}

/// What had a session's history compacted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactionTrigger {
    /// The program did by itself: counted in the entry.
    #[default]
    Automatic,
    /// Somebody asked for it.
    Manual,
}

/// Says that a session's history was compacted. The session exists from then on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionRecorded {
    /// The session; none for that of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// The agent of a bare key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What had it compacted.
    #[serde(default)]
    pub trigger: CompactionTrigger,
    /// Records once per session under this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe_key: Option<String>,
}
