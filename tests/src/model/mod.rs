//! A model of a script: it speaks both protocols over real sockets, says what the test has it
//! say, and goes wrong in the ways in which providers do.

mod faults;
mod server;
mod spoken;

pub use faults::{Overflow, overflows};
pub use server::{Asked, ModelServer};

use std::time::Duration;

use serde_json::Value;

/// What a scripted model does with one request.
#[derive(Debug, Clone, PartialEq)]
pub enum Play {
    /// It answers.
    Say(Say),
    /// It refuses: this status, this body.
    Refuse {
        /// The status.
        status: u16,
        /// The body.
        body: String,
        /// When it wants to be asked again, in seconds.
        retry_after: Option<u64>,
    },
    /// It answers, and the connection ends after so many events.
    Cut(Say, usize),
    /// It answers, and says no more after so many events, until the other side goes.
    Stall(Say, usize),
    /// It does not answer at all, until the other side goes.
    Silence,
    /// It reports an error in the middle of its answer.
    Break(Say),
    /// It sends these bytes as the events of its answer, whatever they are.
    Raw(Vec<u8>),
    /// It sends these bytes again and again, until the other side goes.
    Endless(&'static str),
    /// It answers after this time, or at once when nobody waits any more.
    Late(Say, Duration),
}

/// An answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Say {
    /// What it says.
    pub text: String,
    /// What it calls: the tool, and its arguments.
    pub calls: Vec<(String, Value)>,
    /// What it counts, input and output; nothing where it does not say.
    pub usage: Option<(u64, u64)>,
}

impl Say {
    /// It says this, at a cost of ten tokens for the prompt and two for the answer.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            calls: Vec::new(),
            usage: Some((10, 2)),
        }
    }

    /// It calls this.
    #[must_use]
    pub fn call(tool: &str, arguments: Value) -> Self {
        Self {
            calls: vec![(tool.to_owned(), arguments)],
            ..Self::text("")
        }
    }

    /// The same with one more call.
    #[must_use]
    pub fn and_call(mut self, tool: &str, arguments: Value) -> Self {
        self.calls.push((tool.to_owned(), arguments));
        self
    }

    /// The same with these tokens for prompt and answer.
    #[must_use]
    pub fn using(mut self, input: u64, output: u64) -> Self {
        self.usage = Some((input, output));
        self
    }

    /// The same without a word of tokens.
    #[must_use]
    pub fn without_usage(mut self) -> Self {
        self.usage = None;
        self
    }
}

impl From<Say> for Play {
    fn from(say: Say) -> Self {
        Self::Say(say)
    }
}

impl Play {
    /// It refuses with this status, and this code.
    #[must_use]
    pub fn refuse(status: u16, code: &str) -> Self {
        let body = serde_json::json!({"error": {"type": code, "message": "as was said"}});
        Self::Refuse {
            status,
            body: body.to_string(),
            retry_after: None,
        }
    }
}
