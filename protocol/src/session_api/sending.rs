//! What one session gives another: a message, a task for a child, a child's result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PrivateText;
use crate::SessionKey;
use crate::signal::RunOutcome;

/// Sends a session a message. It is stored, and handed out at the session's next turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionsSend {
    /// The session it is for; it must exist.
    pub session_key: SessionKey,
    /// The agent of a bare key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What it says.
    pub message: PrivateText,
    /// The session that sends it; none for that of the caller, or an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<SessionKey>,
    /// Has the sender watch the session from the moment the message is dispatched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<bool>,
    /// Sends only while this transcript continues the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_session_id: Option<String>,
}

/// A message that was dispatched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    /// The session that received it.
    pub session_key: SessionKey,
    /// The message: handed out under this id, again only after an unconfirmed lease.
    pub message_id: u64,
    /// True while it waits for the session's turn.
    pub queued: bool,
    /// True when the session was run at once.
    pub ran: bool,
    /// Whether the sender watches the session by this; only where `watch` was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<bool>,
    /// Why it does not watch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Who runs a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChildRuntime {
    /// A sub-agent.
    Subagent,
    /// An agent program behind the Agent Client Protocol.
    Acp,
}

impl ChildRuntime {
    /// Every runtime.
    pub const ALL: [Self; 2] = [Self::Subagent, Self::Acp];

    /// The name in keys and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Subagent => "subagent",
            Self::Acp => "acp",
        }
    }

    /// The runtime of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|runtime| runtime.as_str() == name)
    }
}

/// Makes a child session with a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionsSpawn {
    /// The session that spawns it, none for that of the caller; it watches the child from
    /// then on, unless its key is bare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionKey>,
    /// The child's agent; else the parent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Who runs it.
    pub runtime: ChildRuntime,
    /// A name to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What it is to do: its first message.
    pub task: PrivateText,
}

/// A child that was spawned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spawned {
    /// The child.
    pub session_key: SessionKey,
    /// The transcript that continues it.
    pub session_id: String,
    /// The message that is its task.
    pub message_id: u64,
    /// The signal that says so.
    pub sequence: u64,
    /// True when the parent watches it from that signal on; a bare parent cannot.
    pub watched: bool,
    /// True while the task waits for the child's turn.
    pub queued: bool,
    /// True when the child was run at once.
    pub ran: bool,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// Well.
    Completed,
    /// It failed.
    Error,
    /// It ran out of time.
    Timeout,
    /// Somebody stopped it.
    Cancelled,
}

impl RunEnd {
    /// The outcome as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }

    /// How it failed; none for a run that ended well.
    pub fn failure(self) -> Option<RunOutcome> {
        match self {
            Self::Completed => None,
            Self::Error => Some(RunOutcome::Error),
            Self::Timeout => Some(RunOutcome::Timeout),
            Self::Cancelled => Some(RunOutcome::Cancelled),
        }
    }
}

/// Says that a run has ended, a child's or a cron job's. Saying it again changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunFinished {
    /// The child, or the job's session.
    pub session_key: SessionKey,
    /// The agent of a bare key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// How it ended.
    pub outcome: RunEnd,
    /// What came of it, for the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<PrivateText>,
    /// Which run it was; else the one run of the child's conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The session that says so, the child or its parent; none for that of the caller, or an
    /// operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<SessionKey>,
}

/// A run that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunEnded {
    /// The signal that says so; none for a cron job's, which is nobody's child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// The session that gets a message with the result; none where the parent is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionKey>,
}
