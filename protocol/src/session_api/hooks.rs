//! What an agent program's hook says, and what it is told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CompactionTrigger, TurnBegun};

/// What happened in a program, as its hooks name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HookMoment {
    /// A conversation began or was taken up again.
    SessionStart,
    /// The conversation was left behind for an empty one: Claude's `clear`.
    SessionCleared,
    /// A prompt was handed in.
    UserPromptSubmit,
    /// A tool is about to be used.
    PreToolUse,
    /// A tool was used.
    PostToolUse,
    /// The turn ended well.
    Stop,
    /// The turn ended in an error.
    StopFailure,
    /// A sub-agent began.
    SubagentStart,
    /// A sub-agent ended.
    SubagentStop,
    /// The history was compacted.
    PostCompact,
    /// The hook has handed its program what it was told: from now on the program may have
    /// read it.
    AnswerShown,
    /// News came while the program was idle: a hook that waited for it takes the notices, and
    /// wakes the program with them.
    Woken,
}

/// Says that a hook fired in the conversation of the caller. A conversation that was not
/// adopted is looked up and nothing more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookEvent {
    /// What happened.
    pub moment: HookMoment,
    /// The prompt that it belongs to, as the program names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<String>,
    /// The sub-agent that it happened in, or that began or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// What kind of sub-agent that is: one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// The lease of what was handed over, with `answer_shown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// What had the history compacted.
    #[serde(default)]
    pub trigger: CompactionTrigger,
}

impl HookEvent {
    /// Of this moment, with nothing more known.
    #[must_use]
    pub fn new(moment: HookMoment) -> Self {
        Self {
            moment,
            prompt_id: None,
            agent_id: None,
            agent_type: None,
            lease: None,
            trigger: CompactionTrigger::default(),
        }
    }
}

/// What a hook is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HookAnswer {
    /// False for a conversation that is no session of the gateway: nothing was done.
    pub adopted: bool,
    /// What the turn takes. Its lease is the gateway's to confirm, by the hooks that follow.
    pub turn: TurnBegun,
}
