//! What is left of conversations and agents that have ended: a transcript goes among the
//! archives, the files of an agent go with it. What a process could not finish, the next does.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tidings_node::private_files::FileError;
use tidings_protocol::session_api::{ApiError, ErrorType};

use super::artefacts::{Artefact, Kind, Named, classify, transcript_name};
use super::files::Files;
use super::names;
use super::projection::Stores;
use super::transcript::lock::{LockError, Locker};
use crate::state::{AgentId, EndedTranscript, StateError};

/// How many archives of one transcript may be made in one millisecond.
const MOST_AT_ONCE: u32 = 1_000;

/// Why something was not put away. It is tried again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PutAwayError {
    /// What is to be put away is not known.
    #[error(transparent)]
    State(#[from] StateError),
    /// Somebody writes the transcript.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file cannot be moved or removed.
    #[error(transparent)]
    File(#[from] FileError),
}

impl From<PutAwayError> for ApiError {
    fn from(error: PutAwayError) -> Self {
        match error {
            PutAwayError::State(error) => error.into(),
            PutAwayError::Lock(_) => Self::new(ErrorType::TryLater, error.to_string()),
            PutAwayError::File(_) => Self::new(ErrorType::CannotCreate, error.to_string())
                .with_hint("what is left goes at the next start, or when it is asked for again"),
        }
    }
}

impl Stores {
    /// Puts the transcripts of ended conversations among the archives; answers how many are
    /// left, because somebody writes them or they cannot be moved.
    pub async fn put_away(&self, locker: &Locker) -> Result<usize, StateError> {
        let (mut left, mut after) = (0, 0);
        loop {
            let page = self.state.ended_transcripts(after).await?;
            let Some(last) = page.last() else {
                return Ok(left);
            };
            after = last.number;
            for ended in &page {
                if let Err(error) = self.put_away_one(ended, locker).await {
                    let (agent, session_id) = (&ended.agent, &ended.session_id);
                    tracing::warn!(
                        %agent, session_id, %error,
                        "the transcript of an ended conversation stays where it is for now"
                    );
                    left += 1;
                }
            }
        }
    }

    async fn put_away_one(
        &self,
        ended: &EndedTranscript,
        locker: &Locker,
    ) -> Result<(), PutAwayError> {
        let dir = names::sessions_dir(&self.state_dir, &ended.agent);
        let named = Named {
            session_id: &ended.session_id,
            topic: None,
            file: ended.session_file.as_deref(),
        };
        let name = transcript_name(&dir, named);
        if let Some(path) = name.map(|name| dir.join(name)) {
            self.archive(&dir, path, ended, locker).await?;
        }
        Ok(self.state.transcript_put_away(ended.number).await?)
    }

    async fn archive(
        &self,
        dir: &Path,
        path: PathBuf,
        ended: &EndedTranscript,
        locker: &Locker,
    ) -> Result<(), PutAwayError> {
        let looked = path.clone();
        let seen = self.blocking(move |files| files.look(&looked)).await?;
        let lock = match seen {
            Some(_) => Some(locker.acquire(&path).await?),
            None => None,
        };
        let suffix = format!("{}.{}", ended.fate.as_str(), names::stamp(ended.ended_at));
        let dir = dir.to_owned();
        self.blocking(move |files| {
            // Somebody else may have put it away meanwhile, or the process that did has ended
            // before the new name was durable.
            if files.look(&path)?.is_some() {
                files.rename(&path, &free_name(files, &path, &suffix)?)?;
            }
            if dir.is_dir() {
                files.sync_dir(&dir)
            } else {
                Ok(())
            }
        })
        .await?;
        drop(lock);
        Ok(())
    }

    /// Finishes what was begun with agents that leave.
    pub async fn finish_leaving(&self) -> Result<(), PutAwayError> {
        for agent in self.state.leaving_agents().await? {
            self.state.delete_agent(agent.clone()).await?;
            self.agent_leaves(&agent).await?;
        }
        Ok(())
    }

    /// Removes the files of an agent that has nothing left in the database.
    pub async fn agent_leaves(&self, agent: &AgentId) -> Result<(), PutAwayError> {
        // A session that was made anew meanwhile has its own.
        let entries = self.state.stored_entries(agent.clone()).await?;
        let ids: BTreeSet<String> = entries
            .into_iter()
            .map(|stored| stored.entry.session_id)
            .collect();
        let dir = names::sessions_dir(&self.state_dir, agent);
        self.blocking(move |files| remove_files(files, &dir, &ids))
            .await?;
        Ok(self.state.agent_left(agent.clone()).await?)
    }
}

/// A name for an archive that nothing has yet.
fn free_name(files: &Files, path: &Path, suffix: &str) -> Result<PathBuf, FileError> {
    let named = |end: String| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let mut archive = named(format!(".{suffix}"));
    for count in 2..MOST_AT_ONCE {
        if files.look(&archive)?.is_none() {
            break;
        }
        archive = named(format!(".{suffix}-{count}"));
    }
    Ok(archive)
}

/// Removes what belongs to sessions other than these, and stores that were set aside. The
/// store itself follows the entries, and what is somebody else's stays.
fn remove_files(files: &Files, dir: &Path, kept: &BTreeSet<String>) -> Result<(), FileError> {
    let listed = files.list(dir)?;
    for file in &listed {
        let goes = match classify(&file.name) {
            Artefact::Of(Kind::Lock, _) | Artefact::Foreign => false,
            Artefact::Of(_, id) => !kept.contains(id),
            Artefact::Ours => kept.is_empty() && file.name.starts_with(names::REJECTED),
        };
        if goes {
            files.remove(&dir.join(&file.name))?;
        }
    }
    if listed.is_empty() {
        Ok(())
    } else {
        files.sync_dir(dir)
    }
}
