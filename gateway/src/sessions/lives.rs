//! The end of a conversation before somebody's message: a new session id, where the one that
//! stands is too old.

use std::path::PathBuf;

use jiff::tz::TimeZone;
use serde_json::Value;
use tidings_node::private_files::FileError;
use tidings_protocol::EpochMs;

use super::artefacts::{Named, transcript_name};
use super::lifecycle::{End, Ended, Times, end_of, policy};
use super::local_time::offset_at;
use super::names;
use super::projection::Stores;
use crate::config::Session;
use crate::state::{Entry, RollOver, SessionAddress, StateError};
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
    /// The only conversation that the message is for: while another stands, nothing ends.
    pub expected: Option<&'a str>,
    /// The conversation that an operator's interface shows and has come back to: it is kept
    /// for this one message.
    pub resumed: Option<&'a str>,
    /// The message's dedupe key: one that was recorded before ends nothing.
    pub dedupe_key: Option<&'a str>,
}

/// What became of a conversation before a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continued {
    /// It goes on.
    Same,
    /// Another has begun; the transcript of the one before is to be put away.
    RolledOver(Ended),
}

/// Why nobody knows whether a conversation has ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LifeError {
    /// The entry cannot be read or changed.
    #[error(transparent)]
    State(#[from] StateError),
    /// The transcript cannot be looked at.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Stores {
    /// Before somebody's message: begins another conversation where the one that stands is
    /// too old. Only for a session whose transcript is here, and in which no turn runs.
    pub async fn before_message(
        &self,
        session: &SessionAddress,
        life: Life<'_>,
    ) -> Result<Continued, LifeError> {
        if is_adopted(session.key()) {
            return Ok(Continued::Same);
        }
        let Some(entry) = self.entry(session).await? else {
            return Ok(Continued::Same);
        };
        if life
            .expected
            .is_some_and(|expected| expected != entry.session_id)
        {
            return Ok(Continued::Same);
        }
        let Some(end) = self.end(session, &entry, &life).await? else {
            return Ok(Continued::Same);
        };
        let (session, session_id) = (session.clone(), entry.session_id);
        if life.resumed == Some(session_id.as_str()) {
            let keeping = self
                .state
                .keep_conversation(session.clone(), session_id.clone(), end.at);
            if keeping.await? {
                return Ok(Continued::Same);
            }
        }
        let roll_over = RollOver {
            session_id: Some(session_id),
            dedupe_key: life.dedupe_key.map(str::to_owned),
            ..RollOver::of(session)
        };
        let rolled_over = self.state.roll_over_session(roll_over).await?;
        Ok(match rolled_over {
            Some(_) => Continued::RolledOver(end.why),
            None => Continued::Same,
        })
    }

    /// The end of the conversation that stands, where it has come.
    async fn end(
        &self,
        session: &SessionAddress,
        entry: &Entry,
        life: &Life<'_>,
    ) -> Result<Option<End>, LifeError> {
        if !self.has_transcript(session, entry).await? {
            return Ok(None);
        }
        let started_at = match entry.session_started_at {
            Some(at) => Some(at),
            None => self.started_by_header(session, entry).await?,
        };
        let times = Times {
            started_at,
            last_interaction_at: entry.last_interaction_at,
            updated_at: entry.updated_at,
        };
        let policy = policy(life.settings, session.key(), entry.chat_type.as_deref());
        let offset = |time: EpochMs| offset_at(life.zone, time);
        Ok(end_of(times, self.clock.now(), policy, &offset))
    }

    /// A session's entry; `None` where it has none.
    pub(crate) async fn entry(
        &self,
        session: &SessionAddress,
    ) -> Result<Option<Entry>, StateError> {
        let found = match self.state.session_entry(session.clone()).await {
            Err(StateError::UnknownSession(_)) => return Ok(None),
            found => found?,
        };
        let entry = serde_json::from_str(&found.entry);
        entry
            .map(Some)
            .map_err(|error| StateError::Invalid(error.to_string()))
    }

    /// Where the transcript of an entry is; `None` where it names a file elsewhere.
    pub(crate) fn transcript_path(
        &self,
        session: &SessionAddress,
        entry: &Entry,
    ) -> Option<PathBuf> {
        let dir = names::sessions_dir(&self.state_dir, session.agent());
        transcript_name(&dir, Named::by(session.key(), entry)).map(|name| dir.join(name))
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
