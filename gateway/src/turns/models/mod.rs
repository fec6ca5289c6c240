//! Models: asked over HTTP, their answers read as they come.
//!
//! | where | what |
//! |---|---|
//! | `endpoint` | where a model is asked |
//! | `openai`, `anthropic` | the two protocols: a request as bytes, a stream's events as an answer |
//! | `draft` | an answer while it comes |
//! | `sse` | server-sent events out of bytes |
//! | `http` | one request and its answer's bytes, within time limits |
//! | `tls` | who its server must be |
//! | `patience` | how long is waited, and how often it is tried |
//! | `client` | all of it together |

mod anthropic;
mod client;
mod draft;
mod endpoint;
mod error;
mod http;
mod openai;
mod patience;
mod sse;
mod tls;

use serde_json::Value;

pub use client::{Models, post_json};
pub use endpoint::{Endpoint, EndpointError, Protocol};
pub use error::{ModelError, Refusal};
pub use patience::Patience;

use crate::sessions::hygiene::Message;

/// What a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct Prompt<'a> {
    /// What it is told before the conversation.
    pub system: &'a str,
    /// The conversation, as it stands in the transcript.
    pub messages: &'a [Message],
    /// What it may call; nothing for a summary.
    pub tools: &'a [Tool],
    /// The longest answer, in tokens.
    pub max_tokens: u32,
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// Its arguments, as a JSON schema.
    pub parameters: Value,
}

/// A model's whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What it says and calls.
    pub message: Message,
    /// What it cost, where the provider says so.
    pub usage: Option<Usage>,
}

/// Tokens, as the provider counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the prompt, what was cached included.
    pub input: u64,
    /// Of the answer.
    pub output: u64,
}

/// Is given each piece of an answer's text as it comes.
pub type OnText<'a> = &'a mut (dyn FnMut(&str) + Send);
