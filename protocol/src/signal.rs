//! Signals: what the durable log says about a session, and never what was written in it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Catalog, Host, SessionKey};

/// The longest summary, in characters.
pub const MAX_SUMMARY_CHARS: usize = 200;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    /// A human sent a turn directly to a watched session.
    HumanDirectMessage,
    /// The upstream file of an adopted session is gone.
    UpstreamMissing,
    /// The session's goal was created, updated or cleared.
    GoalChanged,
    /// A sub-agent or ACP child session was created.
    ChildSpawned,
    /// A child run ended well.
    RunCompleted,
    /// A child run failed, timed out or was cancelled.
    RunFailed,
    /// The session's history was compacted.
    Compacted,
    /// A catalog thread was adopted.
    Adopted,
}

impl SignalKind {
    /// Every kind, in the order of the specification's table.
    pub const ALL: [Self; 8] = [
        Self::HumanDirectMessage,
        Self::UpstreamMissing,
        Self::GoalChanged,
        Self::ChildSpawned,
        Self::RunCompleted,
        Self::RunFailed,
        Self::Compacted,
        Self::Adopted,
    ];

    /// The kind's name in the log, on the wire and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HumanDirectMessage => "human_direct_message",
            Self::UpstreamMissing => "upstream_missing",
            Self::GoalChanged => "goal_changed",
            Self::ChildSpawned => "child_spawned",
            Self::RunCompleted => "run_completed",
            Self::RunFailed => "run_failed",
            Self::Compacted => "compacted",
            Self::Adopted => "adopted",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// True for the kinds that make a watcher's view stale; the others are history only.
    pub fn notifies(self) -> bool {
        matches!(
            self,
            Self::HumanDirectMessage | Self::UpstreamMissing | Self::GoalChanged
        )
    }
}

impl fmt::Display for SignalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who did it, without saying which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActorType {
    /// A person.
    Human,
    /// A session.
    Agent,
    /// The gateway or an internal effect.
    System,
}

impl ActorType {
    /// The name in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Agent => "agent",
            Self::System => "system",
        }
    }

    /// The actor type of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Human, Self::Agent, Self::System]
            .into_iter()
            .find(|actor| actor.as_str() == name)
    }
}

/// Who did it. An agent is named by its session key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// A person.
    Human,
    /// The session that acted.
    Agent(SessionKey),
    /// The gateway or an internal effect.
    System,
}

impl Actor {
    /// The actor's type.
    pub fn actor_type(&self) -> ActorType {
        match self {
            Self::Human => ActorType::Human,
            Self::Agent(_) => ActorType::Agent,
            Self::System => ActorType::System,
        }
    }

    /// The acting session, where there is one.
    pub fn id(&self) -> Option<&SessionKey> {
        match self {
            Self::Agent(key) => Some(key),
            Self::Human | Self::System => None,
        }
    }

    /// Reads `human`, `system` or the acting session's key.
    pub fn parse(text: &str) -> Result<Self, crate::key::KeyError> {
        match text.trim() {
            "human" => Ok(Self::Human),
            "system" => Ok(Self::System),
            key => SessionKey::parse(key).map(Self::Agent),
        }
    }
}

/// How a run that did not end well ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// It failed.
    Error,
    /// It ran out of time.
    Timeout,
    /// Somebody stopped it.
    Cancelled,
}

impl RunOutcome {
    /// The summary of a run that ended so.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Error => "child run failed",
            Self::Timeout => "child run timed out",
            Self::Cancelled => "child run cancelled",
        }
    }

    /// The outcome of that name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "error" => Some(Self::Error),
            "timeout" => Some(Self::Timeout),
            "cancelled" => Some(Self::Cancelled),
            _ => None,
        }
    }
}

/// The closed set of what a signal says beyond its summary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Payload {
    /// How a failed run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RunOutcome>,
    /// The channel a message came by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// How many human turns this signal stands for, where it is two or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// The catalog of the upstream file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<Catalog>,
    /// The host of the upstream file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
}

impl Payload {
    /// True when it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One line about a signal: no control characters, at most [`MAX_SUMMARY_CHARS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary(String);

impl Summary {
    /// Makes a summary of `text`: control characters (line ends too) become spaces, runs
    /// of white space one space, and what is too long is cut. `None` when nothing is left.
    pub fn from_text(text: &str) -> Option<Self> {
        let plain: String = text
            .chars()
            .map(|c| {
                if c.is_control() || turns_text(c) {
                    ' '
                } else {
                    c
                }
            })
            .collect();
        let line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.is_empty() {
            return None;
        }
        Some(Self(line.chars().take(MAX_SUMMARY_CHARS).collect()))
    }

    /// The summary as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The summary of a human message that came by `channel` (blank: `unknown`).
    pub fn human_message(channel: &str) -> Self {
        let channel = Self::from_text(channel).map_or_else(|| "unknown".to_owned(), |s| s.0);
        Self::from_text(&format!("human message via {channel}"))
            .unwrap_or_else(|| Self("human message via unknown".to_owned()))
    }

    /// The line of the specification's table for `kind`.
    pub fn of_kind(kind: SignalKind, payload: &Payload) -> Self {
        let catalog = || payload.catalog.map_or("unknown", Catalog::as_str);
        let line = match kind {
            SignalKind::HumanDirectMessage => {
                let channel = payload.channel.as_deref();
                return Self::human_message(channel.unwrap_or_else(|| catalog()));
            }
            SignalKind::UpstreamMissing => format!("upstream missing via {}", catalog()),
            SignalKind::GoalChanged => "goal updated".to_owned(),
            SignalKind::ChildSpawned => "child session spawned".to_owned(),
            SignalKind::RunCompleted => "child run completed".to_owned(),
            SignalKind::RunFailed => payload
                .outcome
                .unwrap_or(RunOutcome::Error)
                .summary()
                .to_owned(),
            SignalKind::Compacted => "session compacted".to_owned(),
            SignalKind::Adopted => format!("adopted from {}", catalog()),
        };
        Self(line)
    }
}

/// True for the characters that turn the direction of writing: they can make a line read as
/// another.
fn turns_text(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_one_name_and_three_notify() {
        for kind in SignalKind::ALL {
            assert_eq!(SignalKind::parse(kind.as_str()), Some(kind));
        }
        let notifying: Vec<_> = SignalKind::ALL
            .into_iter()
            .filter(|k| k.notifies())
            .collect();
        assert_eq!(
            notifying,
            [
                SignalKind::HumanDirectMessage,
                SignalKind::UpstreamMissing,
                SignalKind::GoalChanged
            ]
        );
        assert_eq!(SignalKind::parse("Adopted"), None);
    }

    #[test]
    fn a_summary_is_one_line_of_bounded_length() {
        assert_eq!(
            Summary::from_text(" a\n b\u{7}c\t\u{202e}").map(|s| s.0),
            Some("a b c".to_owned())
        );
        assert_eq!(Summary::from_text(" \n"), None);
        let long = Summary::from_text(&"ä".repeat(300)).expect("text");
        assert_eq!(long.as_str().chars().count(), MAX_SUMMARY_CHARS);
    }

    #[test]
    fn each_kind_has_the_line_of_the_table() {
        let payload = Payload {
            catalog: Some(Catalog::Claude),
            ..Payload::default()
        };
        let lines: Vec<_> = SignalKind::ALL
            .into_iter()
            .map(|kind| Summary::of_kind(kind, &payload).0)
            .collect();
        assert_eq!(
            lines,
            [
                "human message via claude",
                "upstream missing via claude",
                "goal updated",
                "child session spawned",
                "child run completed",
                "child run failed",
                "session compacted",
                "adopted from claude",
            ]
        );
        assert_eq!(
            Summary::human_message(" ").as_str(),
            "human message via unknown"
        );
        assert_eq!(RunOutcome::Timeout.summary(), "child run timed out");
    }
}
