//! What whoever summarises is asked, and what comes back.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde::Serialize;

use super::prompt;
use crate::sessions::hygiene::Message;

/// The longest summary that is taken.
pub const MAX_SUMMARY_BYTES: usize = 64 * 1024;

/// What is to be summarised, and how.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryRequest {
    /// The version of this object, for programs that read it.
    pub schema_version: u32,
    /// Why the conversation is compacted.
    pub trigger: &'static str,
    /// What a summary has to be: the system prompt where a model makes it.
    pub instructions: String,
    /// What becomes of names and numbers; part of `instructions` too.
    pub identifier_policy: &'static str,
    /// The summary of what was before these messages: it is to be distilled again with them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_summary: Option<String>,
    /// The messages.
    pub messages: Vec<Message>,
    /// So many tokens a prompt may have.
    #[serde(skip)]
    pub prompt_tokens: u64,
}

/// Why there is no summary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// It failed; the cause holds nothing of the conversation.
    #[error("{0}")]
    Failed(String),
    /// There was an answer, and nothing in it.
    #[error("the summary is empty")]
    Empty,
    /// The prompt was too long for the model.
    #[error("what is to be summarised is too long for the model")]
    TooLong,
    /// It took too long.
    #[error("there was no summary within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// Whoever asked does not want it any more.
    #[error("the compaction was aborted")]
    Aborted,
}

/// A summary that is being made. Dropping it ends the work on it.
pub type Summarising<'a> = Pin<Box<dyn Future<Output = Result<String, SummaryError>> + Send + 'a>>;

/// Somebody who can summarise: a model, a command, an endpoint. A request to a model for a
/// summary carries no tools.
pub trait Summariser: Send + Sync {
    /// Makes a summary.
    fn summarise<'a>(&'a self, request: &'a SummaryRequest) -> Summarising<'a>;
}

impl SummaryRequest {
    /// The user message where a model makes the summary: the conversation as text, so that the
    /// model does not go on with it, within the tokens that a prompt may have.
    #[must_use]
    pub fn prompt(&self) -> String {
        prompt::of_request(self)
    }
}

impl SummaryError {
    /// True for what the caller caused, which nobody else's summary mends.
    #[must_use]
    pub fn is_the_callers(&self) -> bool {
        matches!(self, Self::TimedOut(_) | Self::Aborted)
    }
}
