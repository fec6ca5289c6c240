//! What goes wrong with a model. No error repeats what was said, nor a key: what a provider
//! answers may hold both, and is looked at only for what it means.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tidings_protocol::session_api::PrivateText;

use crate::turns::overflow::{self, Overflow};

/// A provider's code of an error has at most so many characters; anything longer is none.
const MAX_CODE_CHARS: usize = 64;

/// Why a model has given no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The variable that holds the key is not set, or holds no key.
    #[error("the environment of the gateway has no {variable}, which holds the model's key")]
    NoKey {
        /// The variable.
        variable: String,
    },
    /// Nobody answers there.
    #[error("{host}:{port} cannot be reached: {reason}")]
    Unreachable {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// What stands in the way.
        reason: String,
    },
    /// The authorities that its server is to be verified by cannot be read.
    #[error(
        "the authorities in {path}, which models.<name>.caFile names, cannot be read: {reason}"
    )]
    NoAuthority {
        /// The file.
        path: PathBuf,
        /// What stands in the way.
        reason: String,
    },
    /// Its server shows a certificate that is not to be trusted.
    #[error("the certificate of {host}:{port} is not trusted: {reason}")]
    Untrusted {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// Why not.
        reason: String,
    },
    /// The provider says no.
    #[error("the model's provider refuses: {0}")]
    Refused(Refusal),
    /// Nothing came in time.
    #[error("the model has not begun to answer within {} s", .0.as_secs_f32())]
    SlowStart(Duration),
    /// Nothing came any more.
    #[error("the model's answer stood still for {} s", .0.as_secs_f32())]
    Stalled(Duration),
    /// The answer ended before its end.
    #[error("the model's answer was cut off")]
    Cut,
    /// What came is not what the protocol says.
    #[error("what the model's provider answers is not understood: {0}")]
    Strange(&'static str),
    /// More came than is taken.
    #[error("the model's answer has more than {0}")]
    TooMuch(&'static str),
    /// It came, and came, and did not end.
    #[error("the model's answer has not ended within {} s", .0.as_secs_f32())]
    Endless(Duration),
    /// Whoever asked has gone.
    #[error("nobody waits for the model's answer any more")]
    Unwanted,
}

/// What a provider says when it refuses.
#[derive(Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status; none where it came in the middle of an answer.
    pub status: Option<u16>,
    /// The provider's own code or type, such as `rate_limit_error`.
    pub code: Option<String>,
    /// When it wants to be asked again.
    pub retry_after: Option<Duration>,
    /// All that it said: only for telling what it means.
    pub body: PrivateText,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "status {status}")?,
            None => f.write_str("an error in the middle of its answer")?,
        }
        match &self.code {
            Some(code) => write!(f, ", {code}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Refusal({self})")
    }
}

impl Refusal {
    /// What it means where it means that the prompt was too long.
    pub fn overflow(&self) -> Option<Overflow> {
        overflow::recognise(self.status, &self.body.0)
    }

    /// What a provider said with this status.
    pub(super) fn of(status: Option<u16>, body: String) -> Self {
        let value: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
        let error = value.get("error").unwrap_or(&value);
        let code = ["code", "type"]
            .iter()
            .filter_map(|name| error.get(name).and_then(serde_json::Value::as_str))
            .find(|code| is_code(code));
        Self {
            status,
            code: code.map(str::to_owned),
            retry_after: None,
            body: body.into(),
        }
    }
}

/// A code is a word of letters, digits, `_`, `-` and `.`: nothing that somebody said.
fn is_code(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=MAX_CODE_CHARS).contains(&text.len()) && text.chars().all(is_plain)
}

impl ModelError {
    /// True where the same request may well be answered a little later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::SlowStart(_) | Self::Stalled(_) | Self::Cut => true,
            // Some say with a status of their own fault that a prompt is too long.
            Self::Refused(refusal) if refusal.overflow().is_some() => false,
            Self::Refused(refusal) => match refusal.status {
                Some(status) => matches!(status, 408 | 409 | 425 | 429 | 500..=599),
                None => true,
            },
            Self::NoKey { .. }
            | Self::NoAuthority { .. }
            | Self::Untrusted { .. }
            | Self::Strange(_)
            | Self::TooMuch(_)
            | Self::Endless(_)
            | Self::Unwanted => false,
        }
    }

    /// True where time ran out.
    pub fn is_timeout(&self) -> bool {
        matches!(
            self,
            Self::SlowStart(_) | Self::Stalled(_) | Self::Endless(_)
        )
    }

    /// What it means where it means that the prompt was too long.
    pub fn overflow(&self) -> Option<Overflow> {
        self.refusal().and_then(Refusal::overflow)
    }

    /// What the provider said, where it refused.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_status_and_code_and_nothing_that_was_said() {
        for (status, body, shown) in [
            (
                Some(429),
                r#"{"error":{"type":"rate_limit_error","message":"secret words"}}"#,
                "the model's provider refuses: status 429, rate_limit_error",
            ),
            (
                Some(400),
                r#"{"error":{"code":"context_length_exceeded","type":"x","message":"secret"}}"#,
                "the model's provider refuses: status 400, context_length_exceeded",
            ),
            (
                Some(400),
                r#"{"error":{"code":"the secret words","message":"secret"}}"#,
                "the model's provider refuses: status 400",
            ),
            (
                Some(502),
                "<html>secret</html>",
                "the model's provider refuses: status 502",
            ),
            (
                None,
                r#"{"type":"overloaded_error","message":"secret"}"#,
                "the model's provider refuses: an error in the middle of its answer, \
                 overloaded_error",
            ),
        ] {
            let error = ModelError::Refused(Refusal::of(status, body.to_owned()));
            assert_eq!(error.to_string(), shown);
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        }
    }

    #[test]
    fn what_passes_is_told_from_what_stays() {
        let refused = |status| ModelError::Refused(Refusal::of(Some(status), String::new()));
        for (error, is_passing) in [
            (refused(429), true),
            (refused(529), true),
            (refused(500), true),
            (refused(400), false),
            (refused(401), false),
            (refused(413), false),
            (ModelError::Cut, true),
            (ModelError::SlowStart(Duration::from_secs(1)), true),
            (ModelError::Strange("x"), false),
            (ModelError::Endless(Duration::from_secs(1)), false),
            (ModelError::Unwanted, false),
        ] {
            assert_eq!(error.is_passing(), is_passing, "{error}");
        }
    }
}
