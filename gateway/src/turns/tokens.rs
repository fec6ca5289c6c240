//! Numbers of tokens, and who counted them.

use std::fmt;

use crate::sessions::hygiene::{Block, Message};
use crate::sessions::transcript::fork::BYTES_PER_TOKEN;

/// What an image costs where nobody counted: about what providers charge for a large one.
const IMAGE_TOKENS: u64 = 1_200;
/// What each message costs beside its text: its role and its frame.
const MESSAGE_TOKENS: u64 = 4;

/// How many tokens the context holds, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// The provider counted them in its last answer.
    Counted(u64),
    /// Nobody counted: four bytes are taken for a token.
    Estimated(u64),
}

impl Figure {
    /// The number.
    #[must_use]
    pub fn tokens(self) -> u64 {
        match self {
            Self::Counted(tokens) | Self::Estimated(tokens) => tokens,
        }
    }

    /// The provider's figure where there is one, and what was added to the context since; all
    /// of it by estimate where there is none. A figure with something estimated in it is an
    /// estimate.
    #[must_use]
    pub fn of(counted: Option<u64>, added_since: u64, whole: u64) -> Self {
        match counted {
            Some(tokens) if added_since == 0 => Self::Counted(tokens),
            Some(tokens) => Self::Estimated(tokens.saturating_add(added_since)),
            None => Self::Estimated(whole),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counted(tokens) => write!(f, "{tokens} tokens"),
            Self::Estimated(tokens) => write!(f, "about {tokens} tokens (an estimate)"),
        }
    }
}

/// The tokens of a text, by estimate.
#[must_use]
pub fn of_text(text: &str) -> u64 {
    of_bytes(text.len())
}

/// The tokens of so many bytes, by estimate.
#[must_use]
pub fn of_bytes(bytes: usize) -> u64 {
    u64::try_from(bytes)
        .unwrap_or(u64::MAX)
        .div_ceil(BYTES_PER_TOKEN)
}

/// The tokens of a message, by estimate.
#[must_use]
pub fn of_message(message: &Message) -> u64 {
    let blocks = message.content.iter().map(of_block);
    MESSAGE_TOKENS.saturating_add(sum(blocks))
}

/// The tokens of a conversation, by estimate.
#[must_use]
pub fn of_messages(messages: &[Message]) -> u64 {
    sum(messages.iter().map(of_message))
}

/// A sum that ends at the largest number.
pub(super) fn sum(tokens: impl Iterator<Item = u64>) -> u64 {
    tokens.fold(0, u64::saturating_add)
}

fn of_block(block: &Block) -> u64 {
    match block {
        Block::Text { text } | Block::ToolOutput { text, .. } => of_text(text),
        Block::Thinking { thinking, .. } => of_text(thinking),
        Block::Image { .. } => IMAGE_TOKENS,
        Block::ToolCall {
            name, arguments, ..
        } => of_text(name).saturating_add(of_text(&arguments.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sessions::hygiene::Role;

    #[test]
    fn four_bytes_are_a_token_and_a_begun_one_counts() {
        for (text, tokens) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("éé€", 2)] {
            assert_eq!(of_text(text), tokens, "{text}");
        }
        let message = Message {
            role: Role::Assistant,
            content: vec![
                Block::Text {
                    text: "x".repeat(40),
                },
                Block::Image {
                    data: "x".repeat(1 << 20),
                    mime_type: "image/png".to_owned(),
                },
                Block::ToolCall {
                    id: "1".to_owned(),
                    name: "bash".to_owned(),
                    arguments: json!({"a": 1}),
                },
            ],
            stop_reason: None,
        };
        assert_eq!(of_message(&message), 4 + 10 + 1_200 + 1 + 2);
        assert_eq!(of_messages(&[message.clone(), message]), 2 * 1_217);
    }

    #[test]
    fn an_estimate_says_that_it_is_one_and_the_providers_figure_does_not() {
        for (counted, added, whole, figure, shown) in [
            (Some(7), 0, 99, Figure::Counted(7), "7 tokens"),
            (
                Some(7),
                2,
                99,
                Figure::Estimated(9),
                "about 9 tokens (an estimate)",
            ),
            (
                None,
                2,
                99,
                Figure::Estimated(99),
                "about 99 tokens (an estimate)",
            ),
        ] {
            let found = Figure::of(counted, added, whole);
            assert_eq!(found, figure);
            assert_eq!(found.to_string(), shown);
        }
    }
}
