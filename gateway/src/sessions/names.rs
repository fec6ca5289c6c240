//! The names of the files in an agent's session directory.

use std::path::{Path, PathBuf};

use tidings_node::private_files::FileError;
use tidings_protocol::EpochMs;
use time::OffsetDateTime;

use super::files::Files;
use crate::state::AgentId;

/// The projection of an agent's entries.
pub const STORE: &str = "sessions.json";
/// What a file that was set aside is called, before the time.
pub const REJECTED: &str = "sessions.json.rejected-";
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
    let seconds = at.div_euclid(1_000);
    // Years that four digits cannot name are clocks that are wrong.
    let time = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    format!(
        "{:04}-{:02}-{:02}T{:02}-{:02}-{:02}.{:03}Z",
        time.year(),
        u8::from(time.month()),
        time.day(),
        time.hour(),
        time.minute(),
        time.second(),
        at.rem_euclid(1_000),
    )
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
}
