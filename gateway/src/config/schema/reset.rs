//! When a conversation is too old to go on.

use serde::{Deserialize, Serialize};

use crate::config::values::{Hour, Switch};

/// When the next message begins a new conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Reset {
    /// Whether the day decides, or only the silence.
    pub mode: ResetMode,
    /// The hour of the daily boundary, local time of the gateway's machine.
    pub at_hour: Hour,
    /// Minutes of silence that end a conversation; 0 or `false` for never.
    pub idle_minutes: Switch<u32>,
}

/// Whether the day decides, or only the silence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResetMode {
    /// The daily boundary, and silence where minutes are given.
    #[default]
    Daily,
    /// Silence only.
    Idle,
    /// Nothing: a conversation ends when somebody ends it.
    Off,
}

/// What is otherwise for one type of chat, or one channel. What is absent is as usual.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ResetOverride {
    /// Instead of [`Reset::mode`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ResetMode>,
    /// Instead of [`Reset::at_hour`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_hour: Option<Hour>,
    /// Instead of [`Reset::idle_minutes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_minutes: Option<Switch<u32>>,
}

/// What kind of conversation a session is, where it comes to its life.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum ResetType {
    /// With one person.
    #[default]
    #[serde(alias = "dm")]
    Direct,
    /// In a group.
    Group,
    /// In a room or channel.
    Room,
    /// A thread or topic of any of them.
    Thread,
}

impl Default for Reset {
    fn default() -> Self {
        Self {
            mode: ResetMode::Daily,
            at_hour: Hour::FOUR,
            idle_minutes: Switch::Off,
        }
    }
}
