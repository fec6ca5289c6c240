//! The one schema. Names are spelled as in the documents the system was asked for in.

mod agents;
mod compaction;
mod cron;
mod http;
mod models;
mod reset;
mod session;
mod wake;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::values::Age;
pub use agents::{AgentDefaults, AgentSettings, Agents, WorkspaceAccess};
pub use compaction::{
    Compaction, CompactionMode, KeepRecent, MemoryFlush, MidTurnPrecheck, ProviderKind,
    ProviderSection, QualityGuard,
};
pub use cron::{Cron, RunLog};
pub use http::Http;
pub use models::{Model, ModelKind, ModelSection};
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
    /// Models that turns are run against, by name.
    pub models: BTreeMap<String, ModelSection>,
    /// The HTTP door.
    pub http: Http,
    /// Sessions of the gateway's own: keys, lives, upkeep.
    pub session: Session,
    /// The signal log.
    pub signals: Signals,
    /// What a wake starts.
    pub wake: Wake,
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

impl Config {
    /// The model of this name; `None` where there is none.
    #[must_use]
    pub fn model(&self, name: &str) -> Option<Model> {
        self.models.get(name)?.resolve().ok()
    }

    /// The model that turns are run against, and its name; `None` where no turn is run here.
    #[must_use]
    pub fn default_model(&self) -> Option<(&str, Model)> {
        let name = self.agents.defaults.model.as_deref()?;
        Some((name, self.model(name)?))
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
