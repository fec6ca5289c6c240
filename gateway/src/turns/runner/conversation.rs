//! The transcript of a session's conversation, as its turns read and write it.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tidings_node::private_files::FileError;

use crate::sessions::files::Files;
use crate::sessions::names::sessions_dir;
use crate::sessions::projection::Stores;
use crate::sessions::transcript::cache::Indexes;
use crate::sessions::transcript::entry::{Display, Stem, header};
use crate::sessions::transcript::index::Index;
use crate::sessions::transcript::lock::{LockError, Locker};
use crate::sessions::transcript::write::WriteError;
use crate::state::{Entry, SessionAddress, StateError};
use crate::turns::view::View;

/// Where conversations are, and how they are reached.
#[derive(Clone)]
pub(crate) struct Shelves {
    pub(crate) stores: Stores,
    pub(crate) indexes: Indexes,
    pub(crate) locker: Locker,
}

/// The conversation that continues a session.
pub(super) struct Conversation {
    shelves: Shelves,
    /// Its transcript.
    pub(super) path: PathBuf,
    /// The session's entry, as it stood when this was opened.
    pub(super) entry: Entry,
    leaf: Option<String>,
}

/// Why a conversation cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ConversationError {
    /// The entry cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// The entry names a file elsewhere.
    #[error("the entry of {0} names no transcript in its agent's directory")]
    Elsewhere(SessionAddress),
    /// Somebody else writes the transcript.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Conversation {
    /// Opens the conversation that continues a session; one without a transcript is empty.
    pub(super) async fn open(
        shelves: &Shelves,
        session: &SessionAddress,
    ) -> Result<Self, ConversationError> {
        let found = shelves.stores.state.session_entry(session.clone()).await?;
        let entry: Entry = serde_json::from_str(&found.entry)
            .map_err(|error| StateError::Invalid(error.to_string()))?;
        let dir = sessions_dir(&shelves.stores.state_dir, session.agent());
        let path = shelves.stores.transcript_path(session, &entry);
        let path = path.ok_or_else(|| ConversationError::Elsewhere(session.clone()))?;
        let mut conversation = Self {
            shelves: shelves.clone(),
            path,
            entry,
            leaf: None,
        };
        let dir_to_make = dir.clone();
        conversation
            .blocking(move |files| files.create_dir(&dir_to_make))
            .await?;
        conversation.leaf = conversation.last_id().await?;
        Ok(conversation)
    }

    /// What the model sees of it.
    pub(super) async fn view(&self) -> Result<View, ConversationError> {
        let Some(index) = self.index().await? else {
            return Ok(View::default());
        };
        let path = self.path.clone();
        let view = self.blocking(move |files| match files.open(&path)? {
            Some(file) => View::read(&file, &index).map_err(FileError::at("read", &path)),
            None => Ok(View::default()),
        });
        Ok(view.await?)
    }

    /// How large its transcript is, in bytes.
    pub(super) async fn bytes(&self) -> Result<u64, ConversationError> {
        Ok(self.index().await?.map_or(0, |index| index.end()))
    }

    /// Appends messages; they are durable when this returns.
    pub(super) async fn append(&mut self, messages: &[Value]) -> Result<(), ConversationError> {
        self.append_as(messages, Stem::message).await
    }

    /// Appends what the model is told and no view shows.
    pub(super) async fn append_hidden(
        &mut self,
        kind: &str,
        text: &str,
    ) -> Result<(), ConversationError> {
        let hidden = |stem: &Stem, text: &Value| stem.custom_message(kind, text, Display::Hidden);
        self.append_as(&[text.into()], hidden).await
    }

    async fn append_as(
        &mut self,
        messages: &[Value],
        line: impl Fn(&Stem, &Value) -> Value,
    ) -> Result<(), ConversationError> {
        let now = self.shelves.stores.clock.now();
        let lock = self.shelves.locker.acquire(&self.path).await?;
        let mut lines = Vec::with_capacity(messages.len() + 1);
        if self.index().await?.is_none() {
            let cwd = self.path.parent().map(|dir| dir.display().to_string());
            let started = self.entry.session_started_at.unwrap_or(now);
            let cwd = cwd.unwrap_or_default();
            lines.push(header(&self.entry.session_id, &cwd, started, None));
        }
        let mut leaf = self.leaf.clone();
        for message in messages {
            let stem = Stem::following(leaf, now)?;
            lines.push(line(&stem, message));
            leaf = Some(stem.id);
        }
        lock.append(&lines).await?;
        self.leaf = leaf;
        Ok(())
    }

    async fn index(&self) -> Result<Option<Arc<Index>>, FileError> {
        self.shelves.indexes.of(&self.path).await
    }

    /// The id of the last entry, which the next one follows; an older file's entries have none.
    async fn last_id(&self) -> Result<Option<String>, ConversationError> {
        let Some(index) = self.index().await? else {
            return Ok(None);
        };
        let Some(place) = index.leaf().and_then(|leaf| index.place(leaf)) else {
            return Ok(None);
        };
        let path = self.path.clone();
        let read = self.blocking(move |files| {
            let Some(file) = files.open(&path)? else {
                return Ok(Value::Null);
            };
            let mut line = vec![0; usize::try_from(place.length).unwrap_or(usize::MAX)];
            file.read_exact_at(&mut line, place.offset)
                .map_err(FileError::at("read", &path))?;
            Ok(serde_json::from_slice(&line).unwrap_or_default())
        });
        let entry = read.await?;
        Ok(entry["id"].as_str().map(str::to_owned))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Files) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        let files = self.shelves.stores.files.clone();
        match tokio::task::spawn_blocking(move || work(&files)).await {
            Ok(result) => result,
            Err(error) => Err(FileError::at("work in", &self.path)(error.into())),
        }
    }
}
