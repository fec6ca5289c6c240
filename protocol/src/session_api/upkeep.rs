//! Backups, and what is wrong with a gateway.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Asks for a copy of the state database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Backup {
    /// The new file: an absolute path on the gateway's machine. One that is there already
    /// stays as it is.
    pub file: String,
}

/// A copy of the state database, made while the gateway runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackedUp {
    /// The new file.
    pub file: String,
    /// Its size.
    pub bytes: u64,
}

/// What is wrong, the worst first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// One entry for each; none when all is well.
    pub findings: Vec<Finding>,
    /// Where HTTP is answered, as the beginning of an address; nothing where it is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, naming what it happened to.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

/// How bad a finding is. The worse is the greater.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It works, and may not for long, or not everywhere.
    Warning,
    /// It does not work.
    Error,
}
