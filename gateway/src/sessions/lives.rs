//! The end of a conversation: a new session id, and the transcript among the archives.

use std::path::PathBuf;

use jiff::tz::TimeZone;
use serde_json::Value;
use tidings_node::private_files::FileError;
use tidings_protocol::EpochMs;

use super::artefacts::transcript_name;
use super::lifecycle::{Freshness, Times, freshness, policy};
use super::local_time::offset_at;
use super::names;
use super::projection::Stores;
use super::transcript::lock::{LockError, Locker};
use crate::config::Session;
use crate::state::{Entry, SessionAddress, StateError};
use crate::upstream::trust::is_adopted;

/// The longest header of a transcript that is looked at.
const MAX_HEADER_BYTES: usize = 64 * 1024;

/// What decides whether a conversation goes on.
#[derive(Debug, Clone, Copy)]
pub struct Life<'a> {
    /// The settings.
    pub settings: &'a Session,
    /// How local time runs.
    pub zone: &'a TimeZone,
    /// The conversation that an operator's interface shows and has come back to: it is kept
    /// for this one message.
    pub resumed: Option<&'a str>,
}

/// What became of a conversation before a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Continued {
    /// It goes on.
    Same,
    /// Another has begun.
    RolledOver {
        /// Why.
        why: Freshness,
        /// The archive of the one before, where it had a transcript.
        archive: Option<PathBuf>,
    },
}

/// Why a conversation did not end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LifeError {
    /// The entry cannot be read or changed.
    #[error(transparent)]
    State(#[from] StateError),
    /// Somebody writes the transcript.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The transcript cannot be moved.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Stores {
    /// Before somebody's message: begins another conversation where the one that stands is
    /// too old. Only for a session whose transcript is here.
    pub async fn before_message(
        &self,
        session: &SessionAddress,
        life: Life<'_>,
        locker: &Locker,
    ) -> Result<Continued, LifeError> {
        let Some(entry) = self.entry(session).await? else {
            return Ok(Continued::Same);
        };
        let is_here = !is_adopted(session.key()) && self.has_transcript(session, &entry).await?;
        if !is_here || life.resumed == Some(entry.session_id.as_str()) {
            return Ok(Continued::Same);
        }
        let started_at = match entry.session_started_at {
            Some(at) => Some(at),
            None => self.started_by_header(session, &entry).await?,
        };
        let times = Times {
            started_at,
            last_interaction_at: entry.last_interaction_at,
            updated_at: entry.updated_at,
        };
        let policy = policy(life.settings, session.key(), entry.chat_type.as_deref());
        let offset = |time: EpochMs| offset_at(life.zone, time);
        let why = freshness(times, self.clock.now(), policy, &offset);
        if why == Freshness::Fresh {
            return Ok(Continued::Same);
        }
        self.state.roll_over_session(session.clone()).await?;
        let archive = self.archive(session, &entry, locker).await?;
        Ok(Continued::RolledOver { why, archive })
    }

    /// Puts the transcript of an ended conversation among the archives; nothing where it has
    /// none here.
    pub async fn archive(
        &self,
        session: &SessionAddress,
        ended: &Entry,
        locker: &Locker,
    ) -> Result<Option<PathBuf>, LifeError> {
        let Some(path) = self.transcript_path(session, ended) else {
            return Ok(None);
        };
        if !self.has_transcript(session, ended).await? {
            return Ok(None);
        }
        let lock = locker.acquire(&path).await?;
        let stamp = names::stamp(self.clock.now());
        let mut archive = path.clone().into_os_string();
        archive.push(format!(".reset.{stamp}"));
        let archive = PathBuf::from(archive);
        let to = archive.clone();
        self.blocking(move |files| {
            files.rename(&path, &to)?;
            files.sync_dir(to.parent().unwrap_or(&to))
        })
        .await?;
        drop(lock);
        Ok(Some(archive))
    }

    async fn entry(&self, session: &SessionAddress) -> Result<Option<Entry>, StateError> {
        let found = match self.state.session_entry(session.clone()).await {
            Err(StateError::UnknownSession(_)) => return Ok(None),
            found => found?,
        };
        let entry = serde_json::from_str(&found.entry);
        entry
            .map(Some)
            .map_err(|error| StateError::Invalid(error.to_string()))
    }

    fn transcript_path(&self, session: &SessionAddress, entry: &Entry) -> Option<PathBuf> {
        let dir = names::sessions_dir(&self.state_dir, session.agent());
        transcript_name(&dir, entry).map(|name| dir.join(name))
    }

    async fn has_transcript(
        &self,
        session: &SessionAddress,
        entry: &Entry,
    ) -> Result<bool, FileError> {
        match self.transcript_path(session, entry) {
            None => Ok(false),
            Some(path) => {
                let looked = self.blocking(move |files| files.look(&path)).await?;
                Ok(looked.is_some())
            }
        }
    }

    /// When the transcript's header says that the conversation began.
    async fn started_by_header(
        &self,
        session: &SessionAddress,
        entry: &Entry,
    ) -> Result<Option<EpochMs>, FileError> {
        let Some(path) = self.transcript_path(session, entry) else {
            return Ok(None);
        };
        let head = self
            .blocking(move |files| files.head(&path, MAX_HEADER_BYTES))
            .await?;
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let header: Value = serde_json::from_slice(line).unwrap_or_default();
        let text = header["timestamp"].as_str();
        let time = text.and_then(|text| text.parse::<jiff::Timestamp>().ok());
        Ok(time.map(jiff::Timestamp::as_millisecond))
    }
}
