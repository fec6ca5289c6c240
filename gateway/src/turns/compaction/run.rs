//! A compaction from its beginning to its end: read, decide, summarise, write, record.
//!
//! The summary is made without the lock on the transcript, which may take minutes; what was
//! appended meanwhile is kept. The lines are durable before the database says that there was a
//! compaction; one that was written and not recorded counts for the conversation all the same.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tidings_node::private_files::FileError;
use tidings_protocol::session_api::{ApiError, ErrorType};

use super::command::{self, Call};
use super::plan::{Trigger, plan};
use super::request::SummaryError;
use super::stages::Work;
use super::summarise::Summarisers;
use super::written::Written;
use crate::sessions::projection::Stores;
use crate::sessions::transcript::fork;
use crate::sessions::transcript::index::Index;
use crate::sessions::transcript::line;
use crate::sessions::transcript::lock::{LockError, Locker};
use crate::sessions::transcript::write::WriteError;
use crate::state::{Entry, SessionAddress, StateError};
use crate::turns::budget::Budget;
use crate::turns::sections;
use crate::turns::view::View;

/// How long a command before a compaction may take.
const BEFORE_LIMIT: Duration = Duration::from_mins(1);

/// Compacts conversations.
#[derive(Clone, Copy)]
pub struct Compactor<'a> {
    /// Entries and files.
    pub stores: &'a Stores,
    /// Locks on transcripts.
    pub locker: &'a Locker,
    /// Who summarises, and the settings.
    pub summarisers: Summarisers<'a>,
    /// The budget of the session's model.
    pub budget: Budget,
    /// Where the session's agent has its AGENTS.md.
    pub workspace: &'a Path,
}

/// One compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The session.
    pub session: SessionAddress,
    /// Why.
    pub trigger: Trigger,
    /// What somebody asked the summary to dwell on.
    pub focus: Option<String>,
}

/// What a compaction did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How many tokens the context had: as the provider counted, else by estimate.
    pub tokens_before: u64,
    /// How many it has now, by estimate.
    pub tokens_after: u64,
    /// How many messages are in the summary.
    pub summarised: usize,
    /// How many stayed as they are.
    pub kept: usize,
    /// How many automatic compactions the session has had.
    pub compaction_count: i64,
    /// The transcript in which the conversation goes on.
    pub transcript: PathBuf,
}

/// Why there was no compaction. The conversation is what it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompactionError {
    /// The entry cannot be read or changed.
    #[error(transparent)]
    State(#[from] StateError),
    /// The transcript is not here.
    #[error("{0} has no transcript here")]
    NoTranscript(SessionAddress),
    /// The transcript cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Somebody writes the transcript.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The summary cannot be appended.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// There is no summary.
    #[error(transparent)]
    Summary(#[from] SummaryError),
    /// What was to be kept is not part of the conversation any more.
    #[error("the conversation of {0} went on from another place while it was summarised")]
    Moved(SessionAddress),
}

/// A conversation as it was read.
pub(super) struct Read {
    pub(super) entry: Entry,
    pub(super) path: PathBuf,
    pub(super) view: View,
}

impl From<CompactionError> for ApiError {
    fn from(error: CompactionError) -> Self {
        let message = error.to_string();
        match error {
            CompactionError::State(error) => error.into(),
            CompactionError::NoTranscript(_) => Self::new(ErrorType::NotFound, message)
                .with_hint("a session has one once a turn of it was run here"),
            CompactionError::File(_) | CompactionError::Write(WriteError::File(_)) => {
                Self::new(ErrorType::CannotCreate, message).with_hint("tidings doctor")
            }
            CompactionError::Lock(_) | CompactionError::Moved(_) | CompactionError::Write(_) => {
                Self::new(ErrorType::TryLater, message).with_hint("try again")
            }
            CompactionError::Summary(_) => Self::new(ErrorType::Unavailable, message)
                .with_hint("nothing was changed: try again, or begin another conversation by /new"),
        }
    }
}

impl Compactor<'_> {
    /// Compacts a conversation; `None` where there is nothing that could be summarised. Once
    /// `given_up` ends nobody wants it any more, and it is aborted unless there is a summary.
    /// The caller does not hold the lock of its transcript.
    pub async fn compact(
        &self,
        order: &Order,
        given_up: impl Future<Output = ()> + Send,
    ) -> Result<Option<Outcome>, CompactionError> {
        let read = self.read(&order.session).await?;
        let settings = self.summarisers.settings;
        let Some(plan) = plan(&read.view, order.trigger, settings, self.budget) else {
            return Ok(None);
        };
        let tokens_before = match order.trigger {
            Trigger::Overflow { attempted } => attempted,
            _ => read.view.context().tokens(),
        };
        let (session, trigger) = (&order.session, order.trigger.name());
        tracing::info!(%session, trigger, tokens_before, "compaction start");
        self.run_before(order, &read, tokens_before).await;
        let work = Work {
            items: &read.view.items[..plan.cut],
            previous_summary: read.view.summary.as_ref().map(|s| s.text.as_str()),
            trigger,
            budget: self.budget,
        };
        let focus = order.focus.as_deref();
        let summary = tokio::select! {
            summary = self.summarisers.summary(&work, &plan, focus) => summary,
            () = given_up => Err(SummaryError::Aborted),
        };
        let summary = summary.inspect_err(|error| {
            tracing::warn!(%session, trigger, %error, "compaction failed");
        })?;
        let written = Written {
            order,
            plan: &plan,
            read: &read,
            summary: &summary,
            tokens_before,
            sections: self.sections().await?,
        };
        let outcome = self.write(&written).await?;
        let (tokens_after, count) = (outcome.tokens_after, outcome.compaction_count);
        tracing::info!(%session, trigger, tokens_after, count, "compaction complete");
        Ok(Some(outcome))
    }

    async fn read(&self, session: &SessionAddress) -> Result<Read, CompactionError> {
        let absent = || CompactionError::NoTranscript(session.clone());
        let entry = self.stores.entry(session).await?.ok_or_else(absent)?;
        let path = self.stores.transcript_path(session, &entry);
        let path = path.ok_or_else(absent)?;
        let (_, view) = self.view(&path).await?.ok_or_else(absent)?;
        Ok(Read { entry, path, view })
    }

    /// The entry that a next one follows, and what a model sees of a transcript.
    pub(super) async fn view(
        &self,
        path: &Path,
    ) -> Result<Option<(Option<String>, View)>, FileError> {
        let path = path.to_owned();
        self.stores
            .blocking(move |files| {
                let Some(mut file) = files.open(&path)? else {
                    return Ok(None);
                };
                let read = Index::read(&mut file)
                    .and_then(|index| Ok((last_id(&file, &index)?, View::read(&file, &index)?)));
                read.map(Some).map_err(FileError::at("read", &path))
            })
            .await
    }

    /// Runs the operator's command. What becomes of it changes nothing here.
    async fn run_before(&self, order: &Order, read: &Read, tokens_before: u64) {
        let Some(line) = &self.summarisers.settings.before_command else {
            return;
        };
        let document = json!({
            "schemaVersion": 1,
            "sessionKey": order.session.key().as_str(),
            "agentId": order.session.agent().as_str(),
            "sessionId": read.entry.session_id,
            "transcript": read.path,
            "trigger": order.trigger.name(),
            "tokensBefore": tokens_before,
        });
        let call = Call {
            line: line.clone(),
            environment: vec![
                ("TIDINGS_SESSION_KEY", order.session.key().to_string()),
                (command::TRIGGER, order.trigger.name().to_owned()),
            ],
            input: document.to_string().into_bytes(),
            limit: BEFORE_LIMIT,
        };
        if let Err(error) = command::run(call).await {
            tracing::warn!(session = %order.session, %error, "beforeCommand failed");
        }
    }

    /// The sections of AGENTS.md that are wanted again.
    async fn sections(&self) -> Result<Option<String>, FileError> {
        let names = self.summarisers.settings.post_compaction_sections.clone();
        if names.is_empty() {
            return Ok(None);
        }
        let path = self.workspace.join(sections::FILE);
        let read = self
            .stores
            .blocking(move |files| files.read(&path, sections::MAX_FILE_BYTES))
            .await?;
        Ok(read.and_then(|(file, _)| sections::pick(&String::from_utf8_lossy(&file), &names)))
    }
}

/// The last entry of the active branch that has an id.
fn last_id(file: &File, index: &Index) -> io::Result<Option<String>> {
    for entry in index.active_branch().into_iter().rev() {
        let line = fork::lines(file, index, &[entry])?;
        let id = line::read(&line).and_then(|line| line.id);
        if let Some(id) = id {
            return Ok(Some(id.into_owned()));
        }
    }
    Ok(None)
}
