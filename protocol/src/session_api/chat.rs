//! Talking to a session that the gateway runs, and compacting one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PrivateText;
use crate::SessionKey;

/// Says something to a session, as a person: a turn of it is run at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Chat {
    /// The session; none for the default agent's main session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// The agent of a bare key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What is said; `/status`, `/new`, `/reset` and `/compact` are asked of the gateway.
    pub message: PrivateText,
}

/// What comes of it, as it comes: pieces of text, notes, and at last how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ChatNews {
    /// A piece of what the model says.
    Text {
        /// The piece.
        text: PrivateText,
    },
    /// A line that the gateway says itself.
    Note {
        /// The line.
        text: String,
    },
    /// The turn is over.
    Done(ChatDone),
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatDone {
    /// What the model said at last; none where it was silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<PrivateText>,
    /// The session.
    pub session_key: SessionKey,
    /// What it cost.
    pub usage: ChatUsage,
    /// True where the history was compacted on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<bool>,
}

/// What a turn cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChatUsage {
    /// Tokens of all prompts of the turn.
    pub input_tokens: u64,
    /// Tokens of all answers of the turn.
    pub output_tokens: u64,
    /// Tokens that the context holds now.
    pub context_tokens: u64,
    /// Tokens that the model sees at most.
    pub context_window: u64,
    /// True where any of it is an estimate, because the provider did not say.
    pub estimated: bool,
}

/// Has a session's history compacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionCompact {
    /// The session.
    pub session_key: SessionKey,
    /// The agent of a bare key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What the summary is to dwell on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<PrivateText>,
}

/// A history that was compacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionCompacted {
    /// The session.
    pub session_key: SessionKey,
    /// False where there was nothing to summarise.
    pub compacted: bool,
    /// Tokens of the context before.
    pub tokens_before: u64,
    /// Tokens of the context now, by estimate.
    pub tokens_after: u64,
}
