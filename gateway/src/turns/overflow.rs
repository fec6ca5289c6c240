//! Whether a provider refused a prompt because it was too long, and how long it said it was.
//! Pure: providers say it in words of their own, so this is a table of wordings.

mod wording;

use self::wording::{Found, Wording, find};
use super::budget::Budget;

/// Of an answer this much is looked at: what decides stands at its beginning.
const MAX_LOOKED_AT_BYTES: usize = 16 * 1024;

/// What is said where a conversation does not fit even after a compaction. The session stays
/// what it is.
pub const GUIDANCE: &str = "The conversation does not fit the model's window, also after it was \
    compacted. Nothing was lost, and this is still the same session. Send the message again, run \
    /compact to summarise everything, or /new to begin another conversation.";

/// A prompt was refused as too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow {
    /// How many tokens it had, where the provider said so.
    pub observed: Option<u64>,
}

impl Overflow {
    /// How many tokens the prompt is taken to have had: what the provider said, else a little
    /// more than fits.
    #[must_use]
    pub fn attempted(self, budget: Budget) -> u64 {
        self.observed.unwrap_or_else(|| budget.minimal_overrun())
    }
}

/// What a provider's error means: its status, where it came by HTTP, and its text. `None` for
/// an error that no shorter prompt mends.
#[must_use]
pub fn recognise(status: Option<u16>, body: &str) -> Option<Overflow> {
    if matches!(status, Some(401 | 403 | 404 | 408 | 429 | 502..=504 | 529)) {
        return None;
    }
    let text = plain(body);
    if NEAR_MISSES.iter().any(|miss| text.contains(miss)) {
        return None;
    }
    let found: Vec<Found> = WORDINGS
        .iter()
        .filter_map(|wording| find(wording, &text))
        .collect();
    let is_bare = status == Some(413);
    if found.is_empty() && !is_bare {
        return None;
    }
    let counted = found.iter().find_map(|found| found.number);
    let elsewhere = || COUNTS.iter().find_map(|count| find(count, &text)?.number);
    let observed = counted.or_else(elsewhere);
    Some(Overflow {
        observed: observed.filter(|tokens| *tokens > 0),
    })
}

/// The text in lower case, with single spaces, `_` and `-` as such, and no quotes.
fn plain(body: &str) -> String {
    let end = body.floor_char_boundary(MAX_LOOKED_AT_BYTES);
    let mut text = String::with_capacity(end);
    for c in body[..end].chars() {
        let c = match c {
            '_' | '-' => ' ',
            '"' | '\'' | '`' | '\\' | '’' => continue,
            c if c.is_whitespace() => ' ',
            c => c.to_ascii_lowercase(),
        };
        if c != ' ' || !text.ends_with(' ') {
            text.push(c);
        }
    }
    text
}

/// What is said of limits that a shorter prompt does not mend: how often one may ask, how much
/// may come back, what one has paid for.
const NEAR_MISSES: [&str; 16] = [
    "rate limit",
    "ratelimit",
    "rate exceeded",
    "tokens per min",
    "tokens per day",
    "(tpm)",
    "(tpd)",
    "requests per",
    "too many requests",
    "throttl",
    "quota",
    "billing",
    "overloaded",
    "maximum allowed number of output tokens",
    "please wait before trying again",
    "max tokens must be",
];

/// The wordings, as [`plain`] leaves them. `#` is the number of tokens of the prompt, `%` a
/// number that is none, and `…` anything on the way.
const WORDINGS: [Wording; 41] = [
    // Anthropic.
    "prompt is too long: # tokens",
    "prompt is too long",
    "request too large",
    "request exceeds the maximum size",
    "input length and max tokens exceed context limit: # +",
    "model context window exceeded",
    // OpenAI, and servers that speak like it.
    "context length exceeded",
    "maximum context length is % tokens…resulted in # tokens",
    "maximum context length is % tokens…requested % tokens (# in the messages",
    "maximum context length is % tokens…requested % tokens (# in your prompt",
    "maximum context length is % tokens…requested about # tokens",
    "maximum context length is % tokens…requested # tokens",
    "maximum context length",
    "exceeds the context window",
    "exceeds model context window",
    "context window exceeded",
    "maximum allowed input length is % but the input (# tokens)",
    "reduce the length of the messages",
    "input tokens exceed the configured limit…resulted in # tokens",
    "input tokens exceed the configured limit",
    // Google.
    "input token count (#) exceeds the maximum number of",
    "input token count…exceeds the maximum number of",
    "input exceeds the maximum number of tokens",
    // Bedrock.
    "input is too long",
    // xAI.
    "maximum prompt length is % but the request contains # tokens",
    "maximum prompt length is %",
    // GitHub.
    "prompt token count of # exceeds the limit of %",
    // llama.cpp, LM Studio, Ollama.
    "exceeds the available context size",
    "exceed context size",
    "context size has been exceeded",
    "greater than the context length",
    "exceeded max context length",
    // MiniMax, Moonshot, Mistral, Qwen, Doubao.
    "context window exceeds limit",
    "exceeded model token limit: % (requested: #)",
    "exceeded model token limit",
    "prompt contains # tokens…too large for model",
    "range of input length should be",
    "exceed max message tokens",
    "上下文过长",
    "上下文超出",
    "超出最大上下文",
];

/// Where else such an answer says how long the prompt was.
const COUNTS: [Wording; 3] = [
    "n prompt tokens:#",
    "n prompt tokens: #",
    "request (# tokens) exceeds",
];

#[cfg(test)]
mod tests;
