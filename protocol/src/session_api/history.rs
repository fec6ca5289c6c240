//! The newest part of a session's conversation, for somebody who asks for text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PrivateText;
use crate::{EpochMs, SessionKey};

/// The most items one page has.
pub const MAX_HISTORY_ITEMS: u32 = 50;
/// The longest text of one item, in characters.
pub const MAX_HISTORY_TEXT_CHARS: usize = 4_000;
/// How much text one page has, at most, in bytes.
pub const MAX_HISTORY_BYTES: usize = 80 * 1024;

/// Asks for the newest part of a conversation, or for what precedes a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionsHistory {
    /// The session.
    pub session_key: SessionKey,
    /// The agent of a bare key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// How many items, at most [`MAX_HISTORY_ITEMS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Only what stands before this place: `before` of the page that follows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// With tool calls and their results.
    #[serde(default)]
    pub tools: bool,
}

/// A part of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// The session.
    pub session_key: SessionKey,
    /// The items, oldest first.
    pub items: Vec<HistoryItem>,
    /// Where the part begins, while there may be something before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

/// Items of a conversation, as a node gives them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryItems {
    /// The items, oldest first.
    pub items: Vec<HistoryItem>,
    /// Where the part begins, while there may be something before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

/// One text of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryItem {
    /// Who speaks.
    pub role: HistoryRole,
    /// What is said; secrets are left out of it.
    pub text: PrivateText,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<EpochMs>,
    /// True when the text was longer.
    #[serde(default)]
    pub cut: bool,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HistoryRole {
    /// What the model was given as a user's words.
    User,
    /// The model.
    Assistant,
    /// A tool: how it was called, or what it answered.
    Tool,
    /// A summary that stands for what came before.
    Summary,
}

impl HistoryRole {
    /// The role's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Summary => "summary",
        }
    }
}
