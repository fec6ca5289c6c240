//! What a wake starts.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::values::Switch;

/// What a wake starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Wake {
    /// A program to run for each wake, with the session key as its only argument.
    pub command: Switch<PathBuf>,
}

impl Default for Wake {
    fn default() -> Self {
        Self {
            command: Switch::Off,
        }
    }
}
