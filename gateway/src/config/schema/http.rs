//! The HTTP door.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::values::Switch;

/// The HTTP door. Where it listens is a flag of the command that runs the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Http {
    /// Names besides `localhost` under which it is asked: what a `Host` header may say.
    pub hosts: Vec<String>,
    /// The certificate that it shows, and those between it and the authority: a PEM file.
    pub tls_cert: Switch<PathBuf>,
    /// The key of the certificate: a PEM file.
    pub tls_key: Switch<PathBuf>,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            tls_cert: Switch::Off,
            tls_key: Switch::Off,
        }
    }
}
