//! Cron runs. Tidings schedules nothing; it keeps what others started.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::values::{Age, Ignored, Switch};

/// Cron runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Cron {
    /// How long the session of an isolated run is kept; `false` keeps it.
    pub session_retention: Switch<Age>,
    /// The history of runs.
    pub run_log: RunLog,
}

/// The history of runs, in the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct RunLog {
    /// How many runs are kept for each job.
    pub keep_lines: u32,
    /// Of run logs in files: without effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<Ignored>,
}

impl Default for Cron {
    fn default() -> Self {
        Self {
            session_retention: Switch::On(Age(Duration::from_hours(24))),
            run_log: RunLog::default(),
        }
    }
}

impl Default for RunLog {
    fn default() -> Self {
        Self {
            keep_lines: 2_000,
            max_bytes: None,
        }
    }
}
