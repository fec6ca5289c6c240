//! What kind of conversation a session is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What kind of conversation a session is, as its key says, else the chat type of its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionKind {
    /// An agent's main session, or `global`.
    Main,
    /// With one person.
    Direct,
    /// A group.
    Group,
    /// A room, or a channel of a server.
    Room,
    /// A sub-agent.
    Subagent,
    /// A child that an ACP program runs.
    Acp,
    /// A thread of an agent program.
    Adopted,
    /// The session of a cron job.
    Cron,
    /// The session of a webhook.
    Hook,
    /// Any other.
    Other,
}

impl SessionKind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Main,
        Self::Direct,
        Self::Group,
        Self::Room,
        Self::Subagent,
        Self::Acp,
        Self::Adopted,
        Self::Cron,
        Self::Hook,
        Self::Other,
    ];

    /// The kind's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Direct => "direct",
            Self::Group => "group",
            Self::Room => "room",
            Self::Subagent => "subagent",
            Self::Acp => "acp",
            Self::Adopted => "adopted",
            Self::Cron => "cron",
            Self::Hook => "hook",
            Self::Other => "other",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_written_as_it_is_named() {
        for kind in SessionKind::ALL {
            let written = rmp_serde::to_vec(&kind).expect("a name");
            let named = rmp_serde::to_vec(kind.as_str()).expect("a name");
            assert_eq!(written, named);
            assert_eq!(SessionKind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(SessionKind::parse("Main"), None);
    }
}
