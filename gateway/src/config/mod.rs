//! Configuration: one schema, layer over layer, and where each value came from.

mod check;
mod layers;
mod legacy;
mod schema;
mod values;

pub use layers::{ConfigError, Configuration, Layers, Origin, Setting, alone};
pub use legacy::{LEGACY_KEYS, legacy_keys, without_legacy};
pub use schema::{
    AgentDefaults, AgentSettings, Agents, ArchiveRetention, Compaction, CompactionMode, Config,
    Cron, DmScope, HighWater, Http, KeepRecent, Maintenance, MaintenanceMode, MemoryFlush,
    MidTurnPrecheck, Model, ModelKind, ModelSection, ProviderKind, ProviderSection, QualityGuard,
    Reset, ResetMode, ResetOverride, ResetType, RunLog, Session, SessionScope, Visibility, Wake,
    WorkspaceAccess, WriteLock,
};
pub use values::{Age, Hour, Ignored, Size, Switch};
