//! The one schema. Names are spelled as in the documents the system was asked for in.

mod cron;
mod http;
mod reset;
mod session;
mod wake;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::values::Age;
pub use cron::{Cron, RunLog};
pub use http::Http;
pub use reset::{Reset, ResetMode, ResetOverride, ResetType};
pub use session::{
    ArchiveRetention, DmScope, HighWater, Maintenance, MaintenanceMode, Session, SessionScope,
    Visibility, WriteLock,
};
pub use wake::Wake;

/// Everything that can be configured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Config {
    /// Agents.
    pub agents: Agents,
    /// Cron runs.
    pub cron: Cron,
    /// The HTTP door.
    pub http: Http,
    /// Sessions of the gateway's own: keys, lives, upkeep.
    pub session: Session,
    /// The signal log.
    pub signals: Signals,
    /// What a wake starts.
    pub wake: Wake,
}

/// Agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Agents {
    /// The agent of a bare session key, and of an adopted thread, where nobody names one.
    pub default: String,
}

/// The signal log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Signals {
    /// How long a signal is kept, and a watch that does not move.
    pub max_age: Age,
    /// How many signals are kept over all sessions.
    pub max_rows: u64,
}

impl Default for Agents {
    fn default() -> Self {
        Self {
            default: "main".to_owned(),
        }
    }
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            max_age: Age(Duration::from_hours(30 * 24)),
            max_rows: 50_000,
        }
    }
}
