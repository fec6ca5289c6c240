//! What a door answers when it cannot do what was asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An error, as every door gives it. It never repeats message text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, JsonSchema)]
#[error("{message}")]
pub struct ApiError {
    /// What kind of error.
    #[serde(rename = "type")]
    pub error_type: ErrorType,
    /// What went wrong, naming what it happened to.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The kinds of error. Each has one exit code on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorType {
    /// What was asked for does not exist.
    NotFound,
    /// It exists already, or is otherwise in the way.
    Conflict,
    /// The request cannot be meant.
    InvalidRequest,
    /// The data is not what it should be.
    InvalidData,
    /// There is no file or folder of that name.
    NoInput,
    /// The other side, or a machine behind it, cannot be reached.
    Unavailable,
    /// A file or directory cannot be made.
    CannotCreate,
    /// Try again later; nothing was changed.
    TryLater,
    /// Not permitted to this caller.
    NotPermitted,
    /// The configuration is wrong.
    Configuration,
    /// This version does not know the request.
    Unsupported,
    /// A fault of ours.
    Internal,
}

impl ErrorType {
    /// The exit code of a command that ends in this error.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::NotFound | Self::Conflict => 1,
            Self::InvalidRequest => 2,
            Self::InvalidData => 65,
            Self::NoInput => 66,
            Self::Unavailable | Self::Unsupported => 69,
            Self::Internal => 70,
            Self::CannotCreate => 73,
            Self::TryLater => 75,
            Self::NotPermitted => 77,
            Self::Configuration => 78,
        }
    }
}

impl ApiError {
    /// An error of this kind, with what went wrong.
    pub fn new(error_type: ErrorType, message: impl Into<String>) -> Self {
        Self {
            error_type,
            message: message.into(),
            hint: None,
        }
    }

    /// The same error, with what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
