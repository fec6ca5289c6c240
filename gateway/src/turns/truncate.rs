//! Whether a prompt fits, before it is sent: at the beginning of a turn, and within one after
//! the results of tools. Pure.
//!
//! Results that are too long are shortened in the prompt only, and only where that is enough;
//! the transcript keeps them whole. What is decided depends on the conversation alone, so the
//! next prompt of the same conversation shortens the same results.

use super::budget::Budget;
use super::tokens;
use crate::sessions::hygiene::{Block, Message};
use crate::sessions::transcript::fork::BYTES_PER_TOKEN;

/// The largest share of a window that one result takes once it is shortened.
const RESULT_SHARE: (u64, u64) = (3, 10);
/// Of a shortened result this share is its beginning, and the rest its end.
const HEAD_SHARE: (usize, usize) = (2, 3);

/// Whether a prompt fits.
#[derive(Debug, Clone, PartialEq)]
pub enum Fit {
    /// As it is.
    Whole(Vec<Message>),
    /// With so many results shortened.
    Shortened(Vec<Message>, usize),
    /// Not at all: the conversation is to be compacted, and the prompt made anew.
    TooLong {
        /// Its tokens, by estimate.
        estimate: u64,
    },
}

/// Fits a conversation into a model's budget; `overhead` is what stands beside it in a request:
/// instructions and tools.
#[must_use]
pub fn fit(mut messages: Vec<Message>, overhead: u64, budget: Budget) -> Fit {
    let estimate = overhead.saturating_add(tokens::of_messages(&messages));
    if estimate <= budget.threshold() {
        return Fit::Whole(messages);
    }
    let shortened = shorten(&mut messages, budget);
    if overhead.saturating_add(tokens::of_messages(&messages)) > budget.threshold() {
        return Fit::TooLong { estimate };
    }
    Fit::Shortened(messages, shortened)
}

/// Shortens every result that is too long for the window; answers how many those were.
fn shorten(messages: &mut [Message], budget: Budget) -> usize {
    let (share, of) = RESULT_SHARE;
    let most = (budget.window() / of)
        .saturating_mul(share)
        .saturating_mul(BYTES_PER_TOKEN);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut shortened = 0;
    for block in messages.iter_mut().flat_map(|message| &mut message.content) {
        if let Block::ToolOutput { text, .. } = block
            && text.len() > most
        {
            *text = cut(text, most);
            shortened += 1;
        }
    }
    shortened
}

/// The beginning and the end of a text, `most` bytes in all, and what was left out between.
#[must_use]
pub fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let note = |left_out: usize| format!("\n[{left_out} bytes left out here]\n");
    let room = most.saturating_sub(note(text.len()).len());
    let head = text.floor_char_boundary(room / HEAD_SHARE.1 * HEAD_SHARE.0);
    let tail = text.ceil_char_boundary(text.len() - (room - head));
    format!("{}{}{}", &text[..head], note(tail - head), &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Compaction;
    use crate::sessions::hygiene::Role;

    fn result(bytes: usize) -> Message {
        Message {
            role: Role::ToolResult,
            content: vec![Block::ToolOutput {
                call_id: "1".to_owned(),
                text: "é".repeat(bytes / 2),
                is_error: false,
            }],
            stop_reason: None,
        }
    }

    fn said(bytes: usize) -> Message {
        Message {
            role: Role::User,
            content: vec![Block::Text {
                text: "x".repeat(bytes),
            }],
            stop_reason: None,
        }
    }

    #[test]
    fn long_results_are_shortened_where_that_is_enough_and_else_the_turn_is_compacted() {
        // A window of 1 000 tokens: 500 for the prompt, and 300 for one result.
        let budget = Budget::new(1_000, &Compaction::default());
        for (messages, overhead, expected) in [
            (vec![], 0, Some(0)),
            (vec![said(1_000), result(900)], 0, Some(0)),
            (vec![said(200), result(8_000)], 0, Some(1)),
            (vec![said(200), result(8_000)], 200, None),
            (vec![result(8_000), result(8_000)], 0, None),
            (vec![said(8_000)], 0, None),
            (vec![], 501, None),
        ] {
            let before = tokens::of_messages(&messages) + overhead;
            match (fit(messages.clone(), overhead, budget), expected) {
                (Fit::Whole(whole), Some(0)) => assert_eq!(whole, messages),
                (Fit::Shortened(short, count), Some(expected)) => {
                    assert_eq!(count, expected);
                    assert!(tokens::of_messages(&short) + overhead <= budget.threshold());
                }
                (Fit::TooLong { estimate }, None) => assert_eq!(estimate, before),
                (found, expected) => panic!("{found:?} {expected:?}"),
            }
        }
    }

    #[test]
    fn a_shortened_text_has_its_beginning_its_end_and_says_what_is_missing() {
        let text = format!("head {} tail", "é".repeat(500));
        for most in [60, 100, 101, 500] {
            let short = cut(&text, most);
            assert!(short.len() <= most, "{most}: {}", short.len());
            assert!(
                short.starts_with("head") && short.ends_with("tail"),
                "{short}"
            );
            assert!(short.contains("bytes left out here"), "{short}");
        }
        assert_eq!(cut("short", 5), "short");
        assert!(!cut(&text, 0).contains("head"));
    }
}
