//! Scratch directories.

use std::path::{Path, PathBuf};

use tidings_node::private_files;
use tidings_protocol::digest::hex;
use tidings_protocol::session_api::{ApiError, ErrorType};

use crate::nodes::authority::random;

/// A directory that goes when this is dropped.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// A fresh directory below the temporary one.
    pub(super) fn create() -> Result<Self, ApiError> {
        let cannot = |reason: String| ApiError::new(ErrorType::CannotCreate, reason);
        let unique: [u8; 8] = random().map_err(|error| cannot(error.to_string()))?;
        let name = format!("tidings-{}", hex(&unique));
        let path = std::env::temp_dir().join(name);
        private_files::create_dir(&path).map_err(|error| cannot(error.to_string()))?;
        Ok(Self(path))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
