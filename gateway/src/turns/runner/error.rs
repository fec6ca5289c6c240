//! Why a turn came to nothing.

use tidings_protocol::session_api::{ApiError, ErrorType, RunEnd};

use super::conversation::ConversationError;
use crate::turns::compaction::run::CompactionError;
use crate::turns::models::{EndpointError, ModelError};
use crate::turns::overflow;

/// Why a turn came to nothing. What was said stands in the transcript, once it does.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum TurnError {
    /// There is no model.
    #[error("no model is configured, so the gateway runs no turns")]
    NoModel,
    /// The model has no address.
    #[error("the model cannot be asked: {0}")]
    Endpoint(#[from] EndpointError),
    /// The model gave no answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The conversation does not fit, also after it was compacted.
    #[error("{}", overflow::GUIDANCE)]
    TooLong,
    /// The model called tools again and again.
    #[error("the model called tools {0} times in a row without an answer")]
    TooManyRounds(usize),
    /// The transcript cannot be read or written.
    #[error(transparent)]
    Conversation(#[from] ConversationError),
    /// The conversation was not compacted.
    #[error(transparent)]
    Compaction(#[from] CompactionError),
    /// The session interface refused.
    #[error("{}", .0.message)]
    Door(ApiError),
    /// The gateway stops.
    #[error("the gateway stopped while the turn was run")]
    Stopped,
}

impl From<ApiError> for TurnError {
    fn from(error: ApiError) -> Self {
        Self::Door(error)
    }
}

impl TurnError {
    /// How a child's run has ended by it.
    pub(super) fn run_end(&self) -> RunEnd {
        match self {
            Self::Model(error) if error.is_timeout() => RunEnd::Timeout,
            Self::Stopped => RunEnd::Cancelled,
            _ => RunEnd::Error,
        }
    }
}

impl From<TurnError> for ApiError {
    fn from(error: TurnError) -> Self {
        let (error_type, hint) = match &error {
            TurnError::Door(error) => return error.clone(),
            TurnError::NoModel => (
                ErrorType::Configuration,
                "set agents.defaults.model to one of [models.<name>] in config.toml",
            ),
            TurnError::Model(ModelError::Untrusted { .. }) => (
                ErrorType::Configuration,
                "let [models.<name>] caFile in config.toml name the authority of a server of your \
                 own, and baseUrl the name in its certificate",
            ),
            TurnError::Endpoint(_)
            | TurnError::Model(ModelError::NoKey { .. } | ModelError::NoAuthority { .. }) => (
                ErrorType::Configuration,
                "mend [models.<name>] in config.toml, or the gateway's environment",
            ),
            TurnError::Model(error) if error.is_passing() => (
                ErrorType::TryLater,
                "what was said is kept: say something again to go on",
            ),
            TurnError::Model(_) => (
                ErrorType::Unavailable,
                "check [models.<name>] in config.toml: address, model and key",
            ),
            TurnError::TooLong => (
                ErrorType::TryLater,
                "tidings sessions compact KEY, or /compact or /new in tidings chat",
            ),
            TurnError::TooManyRounds(_) => (ErrorType::TryLater, "say something again to go on"),
            TurnError::Conversation(ConversationError::Lock(_)) => {
                (ErrorType::TryLater, "another process writes the transcript")
            }
            TurnError::Compaction(CompactionError::NoTranscript(_)) => (
                ErrorType::NotFound,
                "nothing was said in it yet, or its transcript is elsewhere",
            ),
            TurnError::Compaction(_) => (
                ErrorType::TryLater,
                "the conversation is what it was; the gateway's log says more",
            ),
            TurnError::Conversation(_) => (
                ErrorType::InvalidData,
                "tidings sessions show KEY names the transcript",
            ),
            TurnError::Stopped => (ErrorType::Unavailable, "start the gateway again"),
        };
        Self::new(error_type, error.to_string()).with_hint(hint)
    }
}
