//! Copies of the state database.

use std::path::{Path, PathBuf};

use tidings_protocol::session_api::{ApiError, BackedUp, Backup, ErrorType};

use super::Service;

impl Service {
    pub(super) async fn backup(&self, backup: Backup) -> Result<BackedUp, ApiError> {
        let path = new_file(&backup.file)?;
        self.nodes.state.back_up(path.clone()).await?;
        let written =
            std::fs::metadata(&path).map_err(|error| cannot_create(&path, &error.to_string()))?;
        tracing::info!(file = %path.display(), "the state database was backed up");
        Ok(BackedUp {
            file: backup.file,
            bytes: written.len(),
        })
    }
}

/// The path of a file that is not there yet. Whoever asks may have another working directory
/// than the gateway, so a relative path means nothing here.
fn new_file(file: &str) -> Result<PathBuf, ApiError> {
    let path = Path::new(file);
    if !path.is_absolute() {
        let message = "a backup needs an absolute path";
        return Err(ApiError::new(ErrorType::InvalidRequest, message));
    }
    match path.symlink_metadata() {
        Ok(_) => Err(cannot_create(path, "it exists already").with_hint("give another name")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(cannot_create(path, &error.to_string())),
    }
}

fn cannot_create(path: &Path, why: &str) -> ApiError {
    let message = format!("cannot write the backup {}: {why}", path.display());
    ApiError::new(ErrorType::CannotCreate, message)
}
