//! The names of the files in an agent's session directory.

use std::path::{Path, PathBuf};

use tidings_node::private_files::FileError;
use tidings_protocol::digest::{hex, sha256};
use tidings_protocol::{EpochMs, SessionKey};

use super::files::Files;
use super::transcript::entry::iso;
use crate::state::AgentId;

/// The projection of an agent's entries.
pub const STORE: &str = "sessions.json";
/// What a file that was set aside is called, before the time.
pub const REJECTED: &str = "sessions.json.rejected-";
/// A longer topic id stands in a name as its digest.
const MAX_TOPIC_BYTES: usize = 64;
const TEMPORARY: &str = "sessions.json.new";

/// The directory with one directory for each agent.
#[must_use]
pub fn agents_dir(state_dir: &Path) -> PathBuf {
    state_dir.join("agents")
}

/// Where an agent's sessions are.
#[must_use]
pub fn sessions_dir(state_dir: &Path, agent: &AgentId) -> PathBuf {
    agents_dir(state_dir).join(agent.as_str()).join("sessions")
}

/// Where a new projection is written before it takes its place.
pub(super) fn temporary(dir: &Path) -> PathBuf {
    dir.join(TEMPORARY)
}

/// How many files may be set aside within one millisecond.
const MOST_AT_ONCE: u32 = 1_000;

/// What a projection that is set aside now is called: a name that is free.
pub(super) fn rejected(files: &Files, dir: &Path, at: EpochMs) -> Result<PathBuf, FileError> {
    let mut path = dir.join(format!("{REJECTED}{}", stamp(at)));
    for count in 2..MOST_AT_ONCE {
        if files.look(&path)?.is_none() {
            break;
        }
        path = dir.join(format!("{REJECTED}{}-{count}", stamp(at)));
    }
    Ok(path)
}

/// A time as it stands in a file's name: `2026-12-01T04-00-00.000Z`. It sorts by time, and no
/// file system minds its characters.
#[must_use]
pub fn stamp(at: EpochMs) -> String {
    iso(at).replace(':', "-")
}

/// The name of a session's transcript; one of a topic has a file of its own.
#[must_use]
pub fn transcript(session_id: &str, topic: Option<&str>) -> String {
    match topic {
        None => format!("{session_id}.jsonl"),
        Some(topic) => format!("{session_id}-topic-{}.jsonl", plain(topic)),
    }
}

/// The topic that a session's key names.
#[must_use]
pub fn topic_of(key: &SessionKey) -> Option<&str> {
    let chat = key.is_agent_qualified().then(|| key.as_str())?;
    let (_, topic) = chat.rsplit_once(":topic:")?;
    Some(topic)
}

/// A topic's id as it can stand in a name.
fn plain(topic: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !topic.is_empty() && topic.len() <= MAX_TOPIC_BYTES && topic.chars().all(is_plain) {
        return topic.to_owned();
    }
    format!("x-{}", hex(&sha256(topic.as_bytes())[..16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_a_name_has_milliseconds_and_sorts() {
        assert_eq!(stamp(0), "1970-01-01T00-00-00.000Z");
        assert_eq!(stamp(1_796_097_600_007), "2026-12-01T04-00-00.007Z");
        assert_eq!(stamp(-1), "1969-12-31T23-59-59.999Z");
    }

    #[test]
    fn a_topic_has_a_file_of_its_own_whatever_its_id() {
        assert_eq!(transcript("s", None), "s.jsonl");
        assert_eq!(transcript("s", Some("77")), "s-topic-77.jsonl");
        let odd = transcript("s", Some("../up"));
        assert!(odd.starts_with("s-topic-x-") && !odd.contains('/'), "{odd}");
        assert_ne!(odd, transcript("s", Some("../down")));
        for (key, topic) in [
            ("agent:main:telegram:group:-1:topic:77", Some("77")),
            ("agent:main:telegram:group:-1", None),
            ("agent:main:main", None),
            ("cron:topic:7", None),
        ] {
            let key = SessionKey::parse(key).expect("a key");
            assert_eq!(topic_of(&key), topic, "{key}");
        }
    }
}
