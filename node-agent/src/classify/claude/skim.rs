//! Turns away lines of the fast path that hold the right bytes in the wrong places: above all
//! the results of tools, which are `user` records too.
//!
//! A line is turned away if its brackets, quotes and separators are those of one JSON object
//! that closes exactly at the line's end, no key that matters is escaped, and its last `type`
//! and last `message` make it a record of another type or a tool's result without a text
//! beside it. A line with a torn record before another one is no such object: the torn one
//! leaves a bracket open, or a quote, and then a key stands where a separator must.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::super::json::Walk;
use super::super::sieve::{Needle, Wanted};

static USER: Needle = LazyLock::new(|| Finder::new("\"user\""));
/// `queue-operation` and `queued_command`.
static QUEUE: Needle = LazyLock::new(|| Finder::new("\"queue"));

/// What a line that matters contains.
pub(in super::super) fn wanted() -> Wanted {
    Wanted::Needles((&USER, [Some(&QUEUE), None, None]))
}

/// True when the line, parsed, would be found not to matter.
pub(in super::super) fn cannot_matter(line: &[u8]) -> bool {
    is_other_record(line) == Some(true)
}

/// What the last `message` of a record holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Message {
    /// Results of tools and no text.
    ToolResults,
    Other,
}

/// True for one record that is neither a prompt nor anything of the queue; `None` where
/// that cannot be told without parsing.
fn is_other_record(line: &[u8]) -> Option<bool> {
    let mut walk = Walk::new(line);
    let mut kind: &[u8] = b"";
    let mut message = Message::Other;
    let mut has_prompt_source = false;
    walk.members(|key, walk| {
        match plain(key)? {
            b"type" => kind = plain(walk.string()?)?,
            b"message" => {
                message = message_of(walk)?;
                if kind == b"user" && message == Message::Other {
                    // Most likely a prompt: it is parsed anyhow.
                    return None;
                }
            }
            b"promptSource" => {
                has_prompt_source = true;
                walk.value()?;
            }
            _ => {
                walk.value()?;
            }
        }
        Some(())
    })?;
    let ends = walk
        .rest()
        .iter()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | 0));
    if !ends {
        return None;
    }
    match kind {
        b"user" => Some(message == Message::ToolResults && !has_prompt_source),
        b"attachment" | b"queue-operation" => Some(false),
        _ => Some(true),
    }
}

fn message_of(walk: &mut Walk<'_>) -> Option<Message> {
    let mut message = Message::Other;
    if walk.peek()? != b'{' {
        walk.value()?;
        return Some(message);
    }
    walk.members(|key, walk| {
        if plain(key)? == b"content" {
            message = content_of(walk)?;
        } else {
            walk.value()?;
        }
        Some(())
    })?;
    Some(message)
}

fn content_of(walk: &mut Walk<'_>) -> Option<Message> {
    if walk.peek()? != b'[' {
        walk.value()?;
        return Some(Message::Other);
    }
    let (mut has_result, mut has_text) = (false, false);
    walk.items(|walk| {
        if walk.peek()? != b'{' {
            has_text = true;
            return walk.value().map(|_| ());
        }
        let mut kind: &[u8] = b"";
        walk.members(|key, walk| {
            if plain(key)? == b"type" {
                kind = plain(walk.string()?)?;
            } else {
                walk.value()?;
            }
            Some(())
        })?;
        has_result |= kind == b"tool_result";
        has_text |= kind == b"text";
        Some(())
    })?;
    let only_results = has_result && !has_text;
    Some(if only_results {
        Message::ToolResults
    } else {
        Message::Other
    })
}

/// A key or name without escapes; with one, it may be another than it looks.
#[inline]
fn plain(raw: &[u8]) -> Option<&[u8]> {
    // Without a branch: keys are short, and there are many of them.
    let escapes = raw.iter().fold(0, |found, b| found | u8::from(*b == b'\\'));
    (escapes == 0).then_some(raw)
}
