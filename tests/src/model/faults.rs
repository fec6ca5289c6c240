//! How providers say that a prompt is too long.

use serde_json::json;

use super::Play;

/// One wording.
#[derive(Debug, Clone)]
pub struct Overflow {
    /// What the provider does.
    pub play: Play,
    /// How many tokens it says were sent, where it says so.
    pub observed: Option<u64>,
}

fn refusal(status: u16, code: &str, message: &str) -> Play {
    let body =
        json!({"error": {"type": "invalid_request_error", "code": code, "message": message}});
    Play::Refuse {
        status,
        body: body.to_string(),
        retry_after: None,
    }
}

/// Every wording that the documents name, as a provider would put it.
#[must_use]
pub fn overflows() -> Vec<Overflow> {
    [
        (
            413,
            "request_too_large",
            "Request exceeds the maximum size",
            None,
        ),
        (
            400,
            "context_length_exceeded",
            "This model's maximum context length is 8192 tokens. However, your messages \
             resulted in 9100 tokens. Please reduce the length of the messages.",
            Some(9_100),
        ),
        (400, "bad_request", "context length exceeded", None),
        (
            400,
            "bad_request",
            "input exceeds the maximum number of tokens",
            None,
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count exceeds the maximum number of input tokens",
            None,
        ),
        (400, "bad_request", "input is too long for the model", None),
        (
            500,
            "api_error",
            "ollama error: context length exceeded",
            None,
        ),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 213462 tokens > 200000 maximum",
            Some(213_462),
        ),
    ]
    .into_iter()
    .map(|(status, code, message, observed)| Overflow {
        play: refusal(status, code, message),
        observed,
    })
    .collect()
}
