//! Reading and replacing a file that belongs to a program: whole or not at all, where its
//! links lead, with a copy of what it was.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tidings_protocol::session_api::{ApiError, ErrorType};

/// The largest configuration that is edited, in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// What the copy's name ends in.
const BACKUP: &str = "tidings-backup";

/// A file as it was found.
#[derive(Debug)]
pub(super) struct Found {
    /// Where its links lead.
    pub(super) path: PathBuf,
    /// What is in it; empty for one that is not there.
    pub(super) text: String,
    mode: Option<u32>,
}

/// Reads a file, following its links to one that is regular and this user's own.
pub(super) fn read(path: &Path) -> Result<Found, ApiError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found {
            path: path.to_owned(),
            text: String::new(),
            mode: None,
        }),
        Err(error) => Err(unreadable(path, &error)),
        Ok(_) => read_there(path),
    }
}

fn read_there(path: &Path) -> Result<Found, ApiError> {
    let real = fs::canonicalize(path).map_err(|error| {
        if error.kind() == ErrorKind::NotFound {
            refused(path, "it is a link that leads nowhere")
        } else {
            unreadable(path, &error)
        }
    })?;
    let metadata = real.metadata().map_err(|error| unreadable(path, &error))?;
    if !metadata.is_file() {
        return Err(refused(path, "it is no regular file"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused(path, "it belongs to another user"));
    }
    let mut bytes = Vec::new();
    File::open(&real)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refused(path, "it has more than 16 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| refused(path, "it is no UTF-8 text"))?;
    Ok(Found {
        path: real,
        text,
        mode: Some(metadata.mode() & 0o7777),
    })
}

impl Found {
    /// Puts `text` in its place, unless somebody has changed it meanwhile. Where it was there,
    /// answers where the copy of what it was is.
    pub(super) fn replace(&self, text: &str, new_mode: u32) -> Result<Option<PathBuf>, ApiError> {
        let now = read(&self.path)?;
        if now.text != self.text || now.mode.is_some() != self.mode.is_some() {
            return Err(ApiError::new(
                ErrorType::TryLater,
                format!("{} was changed meanwhile", self.path.display()),
            )
            .with_hint("run the command again"));
        }
        let backup = match self.mode {
            None => None,
            Some(mode) => {
                let backup = with_ending(&self.path, BACKUP);
                write(&backup, &self.text, mode)?;
                Some(backup)
            }
        };
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        }
        write(&self.path, text, self.mode.unwrap_or(new_mode))?;
        Ok(backup)
    }

    /// Takes the file away: nothing is left in it. Answers where the copy of what it was is.
    pub(super) fn remove(&self) -> Result<Option<PathBuf>, ApiError> {
        let Some(mode) = self.mode else {
            return Ok(None);
        };
        let backup = with_ending(&self.path, BACKUP);
        write(&backup, &self.text, mode)?;
        fs::remove_file(&self.path).map_err(|error| unwritable(&self.path, &error))?;
        Ok(Some(backup))
    }

    /// True for a file that is there.
    pub(super) fn is_there(&self) -> bool {
        self.mode.is_some()
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{ending}"));
    name.into()
}

/// Writes a file in one step.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), ApiError> {
    let temporary = with_ending(path, &format!("{}.new", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        match path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    })();
    written.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        unwritable(path, &error)
    })
}

fn refused(path: &Path, why: &str) -> ApiError {
    ApiError::new(
        ErrorType::InvalidData,
        format!("{} is not edited: {why}", path.display()),
    )
    .with_hint("mend that, then run the command again")
}

fn unreadable(path: &Path, error: &io::Error) -> ApiError {
    ApiError::new(
        ErrorType::NotPermitted,
        format!("{} cannot be read: {error}", path.display()),
    )
    .with_hint("run the command as the user whose configuration it is")
}

fn unwritable(path: &Path, error: &io::Error) -> ApiError {
    ApiError::new(
        ErrorType::CannotCreate,
        format!("{} cannot be written: {error}", path.display()),
    )
    .with_hint("check the owner and the permissions of its directory, and free space")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_replaced_where_its_links_lead_and_keeps_its_permissions() {
        let dir = tempfile::tempdir().expect("scratch");
        let real = dir.path().join("dotfiles.json");
        fs::write(&real, "one").expect("a file");
        fs::set_permissions(&real, Permissions::from_mode(0o640)).expect("permissions");
        let link = dir.path().join("settings.json");
        symlink("dotfiles.json", &link).expect("a link");
        let found = read(&link).expect("read");
        let backup = found
            .replace("two", 0o600)
            .expect("replaced")
            .expect("a copy");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(&real).expect("text"), "two");
        assert_eq!(fs::read_to_string(backup).expect("text"), "one");
        assert_eq!(real.metadata().expect("there").mode() & 0o777, 0o640);
        let stale = found
            .replace("three", 0o600)
            .expect_err("changed meanwhile");
        assert_eq!(stale.error_type, ErrorType::TryLater);
        assert_eq!(fs::read_dir(dir.path()).expect("files").count(), 3);
    }

    #[test]
    fn what_is_no_file_of_this_user_is_refused_with_its_name() {
        let dir = tempfile::tempdir().expect("scratch");
        let path = dir.path().join("settings.json");
        symlink("nowhere", &path).expect("a link");
        assert!(
            read(&path)
                .expect_err("refused")
                .message
                .contains("leads nowhere")
        );
        fs::remove_file(&path).expect("removed");
        fs::create_dir(&path).expect("a folder");
        assert!(
            read(&path)
                .expect_err("refused")
                .message
                .contains("no regular file")
        );
        fs::remove_dir(&path).expect("removed");
        fs::write(&path, b"\xff").expect("a file");
        assert!(
            read(&path)
                .expect_err("refused")
                .message
                .contains("no UTF-8")
        );
    }

    #[test]
    fn a_new_file_gets_the_folder_that_it_needs_and_no_copy() {
        let dir = tempfile::tempdir().expect("scratch");
        let path = dir.path().join("a/b/hooks.json");
        let found = read(&path).expect("not there");
        assert_eq!(found.replace("{}", 0o600), Ok(None));
        assert_eq!(path.metadata().expect("there").mode() & 0o777, 0o600);
    }
}
