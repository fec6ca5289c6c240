//! Configuration: one schema, layer over layer, and where each value came from.

mod layers;
mod legacy;
mod schema;
mod values;

pub use layers::{ConfigError, Configuration, Layers, Origin, Setting, alone};
pub use legacy::{LEGACY_KEYS, legacy_keys, without_legacy};
pub use schema::{
    ArchiveRetention, Config, Cron, DmScope, HighWater, Http, Maintenance, MaintenanceMode, Reset,
    ResetMode, ResetOverride, ResetType, RunLog, Session, SessionScope, Visibility, Wake,
    WriteLock,
};
pub use values::{Age, Hour, Ignored, Size, Switch};
