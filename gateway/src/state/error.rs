//! What an operation on the state database can fail with.

use std::path::PathBuf;

use tidings_protocol::session_api::{ApiError, ErrorType};

/// Why an operation failed. None of them repeats message text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The request cannot be meant: the caller's fault, and not to be tried again.
    #[error("{0}")]
    Invalid(String),
    /// The caller may not do this.
    #[error("{0}")]
    NotPermitted(String),
    /// There is no such session, or no entry of it.
    #[error("there is no session {0}")]
    UnknownSession(String),
    /// Another transcript continues the session than the caller expected.
    #[error("{0} goes on as another conversation than the one expected; nothing was sent")]
    OtherConversation(String),
    /// Too many messages wait for a session: its turns must take some first.
    #[error("too many messages wait for {0} already")]
    QueueFull(String),
    /// There is no such signal.
    #[error("there is no signal {0}")]
    UnknownSignal(u64),
    /// There is no node on that host, or no longer: its reports are refused from then on.
    #[error("{0} is no active node")]
    NodeNotActive(String),
    /// A host name is taken; another is free.
    #[error("the host name {name} is taken; {free} is free")]
    NameTaken {
        /// The name asked for.
        name: String,
        /// One that is free.
        free: String,
    },
    /// Another token in use has that name.
    #[error("there is a token {0} already")]
    TokenTaken(String),
    /// There are as many tokens as there may be.
    #[error("there are too many tokens in use")]
    TooManyTokens,
    /// Another process holds the database: trying again later may help.
    #[error("{path} is locked by another process")]
    Locked {
        /// The database.
        path: PathBuf,
    },
    /// The disk is full. Nothing was written; readers go on, and the writer tries again by
    /// itself.
    #[error("{path} cannot be written: the disk is full")]
    DiskFull {
        /// The database.
        path: PathBuf,
    },
    /// Writing failed in a way that leaves the file's content unknown: the process must
    /// end, and nothing is tried again.
    #[error("{path} cannot be trusted any more: {detail}")]
    Fatal {
        /// The database.
        path: PathBuf,
        /// What the database engine said.
        detail: String,
    },
    /// A file of the database was deleted, or another was put in its place: what is written to
    /// the one that is open is lost, so the process must end.
    #[error("{path} was deleted or replaced while the gateway ran: nothing is written any more")]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// The database engine refused a statement: our fault.
    #[error("{path}: {detail}")]
    Database {
        /// The database.
        path: PathBuf,
        /// What the database engine said.
        detail: String,
    },
    /// A file beside the database could not be written.
    #[error("{path}: {detail}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        detail: String,
    },
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes")]
    NoRandomness,
    /// The state layer is shutting down; nothing was written.
    #[error("the state database is closed")]
    Closed,
}

impl StateError {
    /// An [`StateError::Invalid`] with this message.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }
}

impl StateError {
    /// What an operator does about a failure after which nothing is written any more.
    pub(crate) fn way_out(&self) -> &'static str {
        match self {
            Self::Replaced { .. } => {
                "with no gateway running, put the file back or restore a backup (as state.sqlite, \
                 with no state.sqlite-wal beside it), then start the gateway again"
            }
            _ => "check the disk, then start the gateway again: it recovers by itself",
        }
    }
}

impl From<StateError> for ApiError {
    fn from(error: StateError) -> Self {
        let error_type = match &error {
            StateError::Invalid(_) => ErrorType::InvalidRequest,
            StateError::UnknownSession(_) | StateError::UnknownSignal(_) => ErrorType::NotFound,
            StateError::NodeNotActive(_) | StateError::NotPermitted(_) => ErrorType::NotPermitted,
            StateError::NameTaken { .. }
            | StateError::OtherConversation(_)
            | StateError::TokenTaken(_)
            | StateError::TooManyTokens => ErrorType::Conflict,
            StateError::Locked { .. } | StateError::DiskFull { .. } | StateError::QueueFull(_) => {
                ErrorType::TryLater
            }
            StateError::Closed => ErrorType::Unavailable,
            StateError::File { .. } => ErrorType::CannotCreate,
            StateError::Fatal { .. }
            | StateError::Replaced { .. }
            | StateError::Database { .. }
            | StateError::NoRandomness => ErrorType::Internal,
        };
        let answer = Self::new(error_type, error.to_string());
        match error {
            StateError::DiskFull { .. } => {
                answer.with_hint("free some space; the gateway goes on by itself")
            }
            StateError::OtherConversation(session) => answer.with_hint(format!(
                "tidings sessions show {session} names the one it is"
            )),
            StateError::QueueFull(_) => {
                answer.with_hint("they go once the session takes a turn and confirms it")
            }
            StateError::TokenTaken(name) => answer.with_hint(format!(
                "give another name, or first: tidings token revoke {name}"
            )),
            StateError::TooManyTokens => {
                answer.with_hint("tidings token list shows them, tidings token revoke ends one")
            }
            StateError::NameTaken { free, .. } => answer.with_hint(format!("--name {free}")),
            _ => answer,
        }
    }
}
