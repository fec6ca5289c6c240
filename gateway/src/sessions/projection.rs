//! `agents/<agentId>/sessions/sessions.json`: the entries of an agent, for people to read and
//! to edit, and for programs of that layout. The database is the authority; the file follows
//! each commit, and what somebody else wrote into it is merged.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidings_node::clock::Clock;
use tidings_node::private_files::FileError;
use tidings_protocol::EpochMs;
use tidings_protocol::digest::sha256;
use tidings_protocol::session_api::{ApiError, ErrorType};

use super::differences::{overwritten, replaced};
use super::files::{Files, Seen};
use super::merge::{FileEntries, Rejected, hand_edits, read_file, shown};
use super::names;
use super::transcript::lock::{LockTimes, Locker};
use crate::config::WriteLock;
use crate::state::{
    AgentId, FileDigest, ForeignFile, InPlace, LastProjection, NextProjection, State, StateError,
};

/// A larger file is no store: some hundred thousand entries.
pub const MAX_STORE_BYTES: u64 = 256 * 1024 * 1024;
/// A file that cannot be read and was touched within this time may still be written.
const STILL_WRITTEN_MS: EpochMs = 1_000;
/// How often a projection is begun anew because the file changed meanwhile.
const ATTEMPTS: usize = 5;

/// The stores of all agents.
#[derive(Clone)]
pub struct Stores {
    /// The database.
    pub state: State,
    /// The gateway's state directory.
    pub state_dir: PathBuf,
    /// The file operations.
    pub files: Files,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// How a projection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synced {
    /// The file shows the entries; this is what it looks like, where there is one.
    InPlace(Option<Seen>),
    /// Somebody seems to be writing the file.
    BeingWritten,
}

/// Why a projection was not written. It is tried again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectionError {
    /// The entries cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Somebody writes it again and again.
    #[error("{0} changes faster than it can be written")]
    Busy(PathBuf),
}

impl From<ProjectionError> for ApiError {
    fn from(error: ProjectionError) -> Self {
        match error {
            ProjectionError::State(error) => error.into(),
            ProjectionError::File(_) => Self::new(ErrorType::CannotCreate, error.to_string()),
            ProjectionError::Busy(_) => Self::new(ErrorType::TryLater, error.to_string()),
        }
    }
}

/// What stands where the projection belongs.
struct Found {
    file: Option<(Vec<u8>, Seen)>,
    digest: Option<FileDigest>,
}

/// What is to be done about it.
enum Standing {
    /// It is ours.
    Ours(InPlace),
    /// Somebody else wrote it, and it was dealt with: look again.
    DealtWith,
    /// Somebody seems to be writing it.
    BeingWritten,
}

impl Stores {
    /// Brings the file of an agent and its entries together: what somebody else wrote is
    /// merged or set aside, then the file shows the entries as they are.
    pub async fn sync(&self, agent: &AgentId) -> Result<Synced, ProjectionError> {
        let dir = names::sessions_dir(&self.state_dir, agent);
        for _ in 0..ATTEMPTS {
            let last = self.state.last_projection(agent.clone()).await?;
            let found = match self.find(&dir).await {
                Ok(found) => found,
                Err(unreadable) => {
                    self.set_aside(&dir, &unreadable.to_string()).await?;
                    continue;
                }
            };
            let in_place = match self.standing(agent, &dir, &last, &found).await? {
                Standing::Ours(in_place) => in_place,
                Standing::DealtWith => continue,
                Standing::BeingWritten => return Ok(Synced::BeingWritten),
            };
            if let Some(synced) = self.write(agent, &dir, &last, &found, in_place).await? {
                return Ok(synced);
            }
        }
        Err(ProjectionError::Busy(dir.join(names::STORE)))
    }

    async fn find(&self, dir: &Path) -> Result<Found, FileError> {
        let path = dir.join(names::STORE);
        self.blocking(move |files| {
            let file = files.read(&path, MAX_STORE_BYTES)?;
            let digest = file.as_ref().map(|(content, _)| sha256(content));
            Ok(Found { file, digest })
        })
        .await
    }

    async fn standing(
        &self,
        agent: &AgentId,
        dir: &Path,
        last: &LastProjection,
        found: &Found,
    ) -> Result<Standing, ProjectionError> {
        let Some((content, seen)) = &found.file else {
            return Ok(Standing::Ours(InPlace::Last));
        };
        if found.digest == last.file {
            return Ok(Standing::Ours(InPlace::Last));
        }
        if found.digest == last.before {
            return Ok(Standing::Ours(InPlace::Before));
        }
        match read_foreign(content, agent, last, self.clock.now()) {
            Ok((file, foreign)) => {
                self.report_refused(dir, &file, content).await?;
                self.merge(dir, foreign).await?;
                Ok(Standing::DealtWith)
            }
            Err(_) if is_being_written(*seen, self.clock.now()) => Ok(Standing::BeingWritten),
            Err(rejected) => {
                self.set_aside(dir, &rejected.to_string()).await?;
                Ok(Standing::DealtWith)
            }
        }
    }

    async fn merge(&self, dir: &Path, foreign: ForeignFile) -> Result<(), ProjectionError> {
        let path = dir.join(names::STORE);
        let merged = self.state.merge_hand_edits(foreign).await?;
        tracing::info!(path = %path.display(), taken = merged.taken, "an edit by hand was merged");
        for session in merged.conflicts {
            tracing::warn!(
                path = %path.display(), %session,
                "an entry was edited by hand and by the gateway: the gateway's stays"
            );
        }
        Ok(())
    }

    /// Entries that cannot be meant would be gone with the next projection: the file that
    /// has them is kept.
    async fn report_refused(
        &self,
        dir: &Path,
        file: &FileEntries,
        content: &[u8],
    ) -> Result<(), FileError> {
        if file.refused.is_empty() {
            return Ok(());
        }
        let (dir, now) = (dir.to_owned(), self.clock.now());
        let content = content.to_owned();
        let keeping = move |files: &Files| {
            let kept = names::rejected(files, &dir, now)?;
            files.write(&kept, &content)?;
            Ok(kept)
        };
        let kept = self.blocking(keeping).await?;
        for refused in &file.refused {
            let session = refused.key.as_ref().map(ToString::to_string);
            tracing::warn!(
                path = %kept.display(), session, reason = refused.reason,
                "an entry that was edited by hand cannot be meant: the file is kept"
            );
        }
        Ok(())
    }

    async fn set_aside(&self, dir: &Path, reason: &str) -> Result<(), FileError> {
        let (dir, now) = (dir.to_owned(), self.clock.now());
        let setting_aside = move |files: &Files| {
            let aside = names::rejected(files, &dir, now)?;
            files.rename(&dir.join(names::STORE), &aside)?;
            files.sync_dir(&dir)?;
            Ok(aside)
        };
        let aside = self.blocking(setting_aside).await?;
        tracing::warn!(path = %aside.display(), reason, "a {} was set aside", names::STORE);
        Ok(())
    }

    /// Writes the entries as they are now. Nothing where the file changed meanwhile.
    async fn write(
        &self,
        agent: &AgentId,
        dir: &Path,
        last: &LastProjection,
        found: &Found,
        in_place: InPlace,
    ) -> Result<Option<Synced>, ProjectionError> {
        let projection = self.state.projection(agent.clone()).await?;
        let content = format!("{}\n", projection.json).into_bytes();
        let file = sha256(&content);
        let seen = found.file.as_ref().map(|(_, seen)| *seen);
        let shows_it = found.digest == Some(file) && last.file == Some(file);
        let is_nothing = projection.entries.is_empty() && seen.is_none();
        if (shows_it && last.before.is_none()) || (is_nothing && last.file.is_none()) {
            return Ok(Some(Synced::InPlace(seen)));
        }
        if last.before.is_some() {
            // Whichever is in place, it must stay so before a third may come; where the last
            // process ended early, not even the directory is there.
            let dir = dir.to_owned();
            let settling = move |files: &Files| {
                files.create_dir(&dir)?;
                files.sync_dir(&dir)
            };
            self.blocking(settling).await?;
        }
        let next = NextProjection {
            agent: agent.clone(),
            in_place,
            file,
            differences: replaced(&last.entries, in_place, &projection.entries),
        };
        self.state.announce_projection(next).await?;
        let dir = dir.to_owned();
        let placed = self
            .blocking(move |files| put_in_place(files, &dir, &content, seen))
            .await?;
        if placed.is_some() {
            self.state.projection_in_place(agent.clone()).await?;
        }
        Ok(placed.map(|seen| Synced::InPlace(Some(seen))))
    }

    /// Takes write locks of transcripts by these settings, and by the environment.
    #[must_use]
    pub fn locker(&self, settings: &WriteLock) -> Locker {
        let times = LockTimes::resolve(settings, |name| std::env::var(name).ok());
        Locker::new(self.files.clone(), self.clock.clone(), times)
    }

    /// Runs file operations where they may block.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Files) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        let files = self.files.clone();
        let dir = self.state_dir.clone();
        match tokio::task::spawn_blocking(move || work(&files)).await {
            Ok(result) => result,
            // Only a panic or a stopping runtime ends a blocking task early.
            Err(error) => Err(FileError::at("work in", &dir)(io::Error::other(error))),
        }
    }
}

/// What somebody else's file means; an error where it is to be set aside whole.
fn read_foreign(
    content: &[u8],
    agent: &AgentId,
    last: &LastProjection,
    now: EpochMs,
) -> Result<(FileEntries, ForeignFile), Rejected> {
    let file = read_file(content, agent, now)?;
    let foreign = ForeignFile {
        agent: agent.clone(),
        file: sha256(content),
        differences: overwritten(&last.entries, &shown(&last.entries, &file)),
        edits: hand_edits(&last.entries, &file)?,
    };
    Ok((file, foreign))
}

fn is_being_written(seen: Seen, now: EpochMs) -> bool {
    (0..STILL_WRITTEN_MS).contains(&(now - seen.modified))
}

/// Puts the content in the place of the file that was seen; nothing where another stands
/// there by now.
fn put_in_place(
    files: &Files,
    dir: &Path,
    content: &[u8],
    seen: Option<Seen>,
) -> Result<Option<Seen>, FileError> {
    let (temporary, path) = (names::temporary(dir), dir.join(names::STORE));
    files.create_dir(dir)?;
    files.write(&temporary, content)?;
    // The last look before the rename: whoever writes in between is lost, and nobody can.
    if files.look(&path)? != seen {
        return Ok(None);
    }
    let written = files.look(&temporary)?;
    files.rename(&temporary, &path)?;
    files.sync_dir(dir)?;
    Ok(written)
}
