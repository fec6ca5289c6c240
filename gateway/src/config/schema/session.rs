//! Sessions of the gateway's own.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::reset::{Reset, ResetOverride, ResetType};
use crate::config::values::{Age, Ignored, Size, Switch};

/// Sessions of the gateway's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Session {
    /// Whether each conversation has a session, or all share one.
    pub scope: SessionScope,
    /// Which direct conversations share a session.
    pub dm_scope: DmScope,
    /// Which sessions a program may see from its own.
    pub visibility: Visibility,
    /// The last part of the key of an agent's main session.
    pub main_key: String,
    /// One person's names on several channels: name → `<channel>:<peer>`, or a bare peer.
    pub identity_links: BTreeMap<String, Vec<String>>,
    /// When the next message begins a new conversation.
    pub reset: Reset,
    /// What is otherwise for a type of chat.
    pub reset_by_type: BTreeMap<ResetType, ResetOverride>,
    /// What is otherwise for a channel; before the type.
    pub reset_by_channel: BTreeMap<String, ResetOverride>,
    /// The upkeep of the store.
    pub maintenance: Maintenance,
    /// The lock on a transcript.
    pub write_lock: WriteLock,
    /// The older name of `session.reset.idleMinutes`; alone it means silence only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_minutes: Option<Switch<u32>>,
    /// How large a fork could be: decided by the model's window, so without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_fork_max_tokens: Option<Ignored>,
}

/// Whether each conversation has a session, or all share one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionScope {
    /// Each sender has its own.
    #[default]
    PerSender,
    /// All share `global`.
    Global,
}

/// Which direct conversations share a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DmScope {
    /// All of them: the agent's main session.
    #[default]
    Main,
    /// Those with one person, on whatever channel.
    PerPeer,
    /// Those with one person on one channel.
    PerChannelPeer,
    /// Those with one person on one account of one channel.
    PerAccountChannelPeer,
}

/// Which sessions a program may see from its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Visibility {
    /// Only itself.
    #[serde(rename = "self")]
    Own,
    /// Itself and its children, and theirs.
    Tree,
    /// Those, and all of its agent.
    Agent,
    /// All of them.
    #[default]
    All,
}

impl fmt::Display for Visibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "self",
            Self::Tree => "tree",
            Self::Agent => "agent",
            Self::All => "all",
        })
    }
}

/// The upkeep of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Maintenance {
    /// Whether it acts, or only says what it would do.
    pub mode: MaintenanceMode,
    /// An entry that did not change for this long goes.
    pub prune_after: Age,
    /// How many entries an agent's store holds.
    pub max_entries: u32,
    /// How long the transcript of an ended conversation is kept.
    pub reset_archive_retention: ArchiveRetention,
    /// The budget of an agent's session directory; absent, 0 or `false`: none.
    pub max_disk_bytes: Switch<Size>,
    /// Down to where the budget is enforced.
    pub high_water_bytes: HighWater,
    /// Of backups that are no longer made: without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotate_bytes: Option<Ignored>,
}

/// Whether the upkeep acts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MaintenanceMode {
    /// It acts.
    #[default]
    Enforce,
    /// It reports and changes nothing.
    Warn,
}

/// How long the transcript of an ended conversation is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ArchiveRetention {
    /// As long as an entry.
    #[default]
    PruneAfter,
    /// This long.
    Age(Age),
    /// For ever.
    Off,
}

/// Down to where a budget is enforced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HighWater {
    /// 80 % of the budget.
    #[default]
    Share,
    /// This many bytes.
    Bytes(u64),
}

/// The lock on a transcript. The environment overrides each:
/// `TIDINGS_SESSION_WRITE_LOCK_ACQUIRE_TIMEOUT_MS`, `…_STALE_MS`, `…_MAX_HOLD_MS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct WriteLock {
    /// How long a writer waits for it.
    pub acquire_timeout_ms: u64,
    /// From what age on a lock that its owner left is taken over.
    pub stale_ms: u64,
    /// How long a writer of this process may hold it.
    pub max_hold_ms: u64,
}

const PRUNE_AFTER: &str = "pruneAfter";
const SHARE: &str = "80%";

impl ArchiveRetention {
    /// The retention, where entries are kept for `prune_after`; `None` for ever.
    #[must_use]
    pub fn resolve(self, prune_after: Age) -> Option<Age> {
        match self {
            Self::PruneAfter => Some(prune_after),
            Self::Age(age) => Some(age),
            Self::Off => None,
        }
    }
}

impl HighWater {
    /// The mark below a budget. One that is of no use is the usual one.
    #[must_use]
    pub fn resolve(self, budget: u64) -> u64 {
        match self {
            Self::Bytes(bytes) if (1..=budget).contains(&bytes) => bytes,
            Self::Bytes(_) | Self::Share => budget / 5 * 4 + budget % 5 * 4 / 5,
        }
    }
}

impl Default for Session {
    fn default() -> Self {
        Self {
            scope: SessionScope::default(),
            dm_scope: DmScope::default(),
            visibility: Visibility::default(),
            main_key: "main".to_owned(),
            identity_links: BTreeMap::new(),
            reset: Reset::default(),
            reset_by_type: BTreeMap::new(),
            reset_by_channel: BTreeMap::new(),
            maintenance: Maintenance::default(),
            write_lock: WriteLock::default(),
            idle_minutes: None,
            parent_fork_max_tokens: None,
        }
    }
}

impl Default for Maintenance {
    fn default() -> Self {
        Self {
            mode: MaintenanceMode::default(),
            prune_after: Age(Duration::from_hours(30 * 24)),
            max_entries: 500,
            reset_archive_retention: ArchiveRetention::default(),
            max_disk_bytes: Switch::Off,
            high_water_bytes: HighWater::default(),
            rotate_bytes: None,
        }
    }
}

impl Default for WriteLock {
    fn default() -> Self {
        Self {
            acquire_timeout_ms: 60_000,
            stale_ms: 1_800_000,
            max_hold_ms: 300_000,
        }
    }
}

impl Serialize for ArchiveRetention {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::PruneAfter => serializer.serialize_str(PRUNE_AFTER),
            Self::Age(age) => age.serialize(serializer),
            Self::Off => serializer.serialize_bool(false),
        }
    }
}

impl<'de> Deserialize<'de> for ArchiveRetention {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AsWritten;

        impl serde::de::Visitor<'_> for AsWritten {
            type Value = ArchiveRetention;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as 30d, pruneAfter, or false")
            }

            fn visit_bool<E: serde::de::Error>(self, on: bool) -> Result<Self::Value, E> {
                if on {
                    Err(E::invalid_type(serde::de::Unexpected::Bool(on), &self))
                } else {
                    Ok(ArchiveRetention::Off)
                }
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                if text.eq_ignore_ascii_case(PRUNE_AFTER) {
                    return Ok(ArchiveRetention::PruneAfter);
                }
                Age::parse(text)
                    .map(ArchiveRetention::Age)
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(AsWritten)
    }
}

impl Serialize for HighWater {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Share => serializer.serialize_str(SHARE),
            Self::Bytes(bytes) => Size(*bytes).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for HighWater {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A value that is of no use is the usual one, whatever it is.
        let value = toml::Value::deserialize(deserializer)?;
        let size = Size::deserialize(value).map(|Size(bytes)| bytes);
        Ok(size.map_or(Self::Share, Self::Bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_high_water_mark_that_is_of_no_use_is_four_fifths_of_the_budget() {
        let mark = |text: &str| {
            let table: toml::Table = toml::from_str(&format!("mark = {text}")).expect("toml");
            HighWater::deserialize(table["mark"].clone()).expect("anything is a mark")
        };
        for (written, budget, expected) in [
            ("500", 1_000, 500),
            ("\"1kb\"", 2_000, 1_024),
            ("1000", 1_000, 1_000),
            ("1001", 1_000, 800),
            ("0", 1_000, 800),
            ("-5", 1_000, 800),
            ("false", 1_000, 800),
            ("\"80%\"", 7, 5),
            ("\"soon\"", u64::MAX, u64::MAX / 5 * 4),
            ("[1]", 1_000, 800),
        ] {
            assert_eq!(mark(written).resolve(budget), expected, "{written}");
        }
    }

    #[test]
    fn archives_are_kept_as_long_as_entries_unless_somebody_says_otherwise() {
        let prune_after = Age(Duration::from_hours(1));
        let retention = |text: &str| {
            let table: toml::Table = toml::from_str(&format!("r = {text}")).expect("toml");
            ArchiveRetention::deserialize(table["r"].clone()).map(|r| r.resolve(prune_after))
        };
        assert_eq!(retention("\"pruneAfter\""), Ok(Some(prune_after)));
        assert_eq!(retention("\"2h\""), Ok(Age::parse("2h")));
        assert_eq!(retention("false"), Ok(None));
        for wrong in ["true", "\"soon\"", "3"] {
            assert!(retention(wrong).is_err(), "{wrong}");
        }
    }
}
