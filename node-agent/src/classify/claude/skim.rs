//! Turns away lines of the fast path that hold the right bytes in the wrong places: above all
//! the results of tools, which are `user` records too.
//!
//! A line is turned away if its brackets, quotes and separators are those of one JSON object
//! that closes exactly at the line's end, no key that matters is escaped, and its last `type`
//! and last `message` make it a record of another type or a tool's result without a text
//! beside it. A line with a torn record before another one is no such object: the torn one
//! leaves a bracket open, or a quote, and then a key stands where a separator must.

use std::sync::LazyLock;

use memchr::memchr;
use memchr::memmem::Finder;

use super::super::json::Walk;
use super::super::sieve::{Needle, Wanted, next_hidden_letter};
use super::super::strings;

static USER: Needle = LazyLock::new(|| Finder::new("\"user\""));
/// `queue-operation` and `queued_command`.
static QUEUE: Needle = LazyLock::new(|| Finder::new("\"queue"));

/// Without it no record has a content.
static MESSAGE: Needle = LazyLock::new(|| Finder::new("\"message\""));
/// What is counted if nobody knows it, whatever the content.
static PROMPT_SOURCE: Needle = LazyLock::new(|| Finder::new("\"promptSource\""));

/// What a line that matters contains.
pub(in super::super) fn wanted() -> Wanted {
    Wanted::Needles((&USER, [Some(&QUEUE), None, None]))
}

/// True when the line, parsed, would be found not to matter.
pub(in super::super) fn cannot_matter(line: &[u8]) -> bool {
    is_tool_result(line) == Some(true) || is_other_record(line) == Some(true)
}

/// True for a line whose only message is one tool's result, written as the program writes it;
/// `None` for any other. Most lines of a transcript are told by it, without a walk through
/// all members.
///
/// However such a line is taken apart, a record of it that has a message has this one: the
/// bytes of the key stand on the line once, and where they are a key, what follows is the
/// value, to its last brace. Outside of it nothing names the queue or a prompt's source, and
/// no letter is hidden behind an escape.
fn is_tool_result(line: &[u8]) -> Option<bool> {
    let at = MESSAGE.find(line)?;
    let (front, message) = line.split_at(at);
    let rest = message.strip_prefix(b"\"message\":{\"role\":\"user\",\"content\":[{")?;
    let rest = if let Some(rest) = rest.strip_prefix(b"\"tool_use_id\":\"") {
        behind_id(rest)?.strip_prefix(b",\"type\":\"tool_result\"")?
    } else {
        behind_id(rest.strip_prefix(b"\"type\":\"tool_result\",\"tool_use_id\":\"")?)?
    };
    let (_, rest) = strings::split_end(rest.strip_prefix(b",\"content\":\"")?)?;
    let rest = match rest.strip_prefix(b",\"is_error\":") {
        Some(rest) => rest
            .strip_prefix(b"false")
            .or_else(|| rest.strip_prefix(b"true"))?,
        None => rest,
    };
    let rest = rest.strip_prefix(b"}]}")?;
    let is_silent = |part| {
        PROMPT_SOURCE.find(part).is_none()
            && QUEUE.find(part).is_none()
            && next_hidden_letter(part).is_none()
    };
    Some(MESSAGE.find(rest).is_none() && is_silent(front) && is_silent(rest))
}

/// What follows the closing quote of an id.
fn behind_id(text: &[u8]) -> Option<&[u8]> {
    let end = memchr(b'"', text)?;
    let (id, behind) = text.split_at(end);
    plain(id).map(|_| &behind[1..])
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidings_protocol::Catalog;
    use tidings_protocol::marker::{Carried, ThreadFacts};

    use super::super::super::{Before, Left, Piece, Record, Source, Verdict, judge, pieces};
    use super::*;

    const FRONT: &str = r#"{"parentUuid":"p","isSidechain":false,"type":"user","#;
    const MESSAGE_OF_A_TOOL: &str = r#""message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"say \"user\"\n{}","is_error":false}]}"#;
    const BEHIND: &str = r#","uuid":"1","version":"2.1.280","toolUseResult":{"type":"text","file":{"content":"x"}}}"#;

    struct Nothing;

    impl Before for Nothing {
        fn knows(&self, _: &str) -> bool {
            false
        }

        fn catch_up(&self, _: &mut ThreadFacts) {}
    }

    /// True when some record of the line, parsed, counts or is carried on.
    fn matters(line: &[u8]) -> bool {
        let source = Source {
            catalog: Catalog::Claude,
            side_file: false,
            pi: false,
        };
        let mut carried = Carried::default();
        pieces(Some(Catalog::Claude), line).any(|piece| {
            let Piece::Record { start, end } = piece else {
                return false;
            };
            let record = Record {
                bytes: &line[start..end],
                start: start as u64,
                end: end as u64,
            };
            let judged = judge(source, record, &Nothing, &mut carried);
            judged.ruling.verdict != Verdict::NotHuman || judged.left != Left::Nothing
        })
    }

    #[test]
    fn a_tools_result_is_told_without_a_walk_as_every_version_writes_it() {
        let other_order = MESSAGE_OF_A_TOOL.replace(
            r#""tool_use_id":"toolu_1","type":"tool_result""#,
            r#""type":"tool_result","tool_use_id":"toolu_1""#,
        );
        let failed = MESSAGE_OF_A_TOOL.replace("false", "true");
        let without = MESSAGE_OF_A_TOOL.replace(r#","is_error":false"#, "");
        for message in [MESSAGE_OF_A_TOOL, &other_order, &failed, &without] {
            let line = format!("{FRONT}{message}{BEHIND}");
            assert_eq!(is_tool_result(line.as_bytes()), Some(true), "{line}");
            assert!(!matters(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn whatever_else_may_be_on_its_line_is_looked_at() {
        let prompt = r#"{"type":"user","message":{"content":"go"}}"#;
        let line = format!("{FRONT}{MESSAGE_OF_A_TOOL}{BEHIND}");
        let with_text = MESSAGE_OF_A_TOOL.replace("}]}", r#"},{"type":"text","text":"go"}]}"#);
        let words = MESSAGE_OF_A_TOOL.replace("}]}", r#"},"go"]}"#);
        let in_front = |more: &str| format!("{FRONT}{more}{MESSAGE_OF_A_TOOL}{BEHIND}");
        let behind = |more: &str| format!("{FRONT}{MESSAGE_OF_A_TOOL}{more}{BEHIND}");
        for line in [
            format!("{FRONT}{with_text}{BEHIND}"),
            format!("{FRONT}{words}{BEHIND}"),
            format!("{line}{prompt}"),
            format!("{prompt}{line}"),
            format!("{{\"torn\":\"{line}{prompt}"),
            behind(r#","message":{"content":"go"}"#),
            behind(r#","messag\u0065":{"content":"go"}"#),
            behind(r#","promptSource":"of-tomorrow""#),
            in_front(r#""promptSource":"of-tomorrow","#),
            behind(r#","type":"queue-operation","operation":"enqueue","content":"go""#),
            format!(r#"{{"type":"queue-operation","operation":"enqueue","content":"go"}}{line}"#),
        ] {
            assert!(matters(line.as_bytes()), "{line}");
            assert_ne!(is_tool_result(line.as_bytes()), Some(true), "{line}");
        }
    }

    /// What a line is damaged with.
    const PARTS: &[&str] = &[
        "",
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\n",
        "{\"",
        "\"}",
        "}]}",
        "\\u0065",
        "x",
        r#""message":"#,
        r#","message":{"content":"go"}"#,
        r#""message":{"role":"user","content":"go"},"#,
        r#","content":"go""#,
        r#"{"type":"text","text":"go"},"#,
        r#",{"type":"text","text":"go"}"#,
        r#""promptSource":"of-tomorrow","#,
        r#","type":"queue-operation","operation":"enqueue""#,
        r#"{"type":"user","message":{"content":"go"}}"#,
        r#"{"type":"assistant","x":"torn "#,
        MESSAGE_OF_A_TOOL,
        FRONT,
        BEHIND,
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4 * ProptestConfig::default().cases))]

        #[test]
        fn no_line_that_matters_is_turned_away_however_it_is_damaged(
            damage in prop::collection::vec(
                (any::<prop::sample::Index>(), 0..40_usize, prop::sample::select(PARTS)),
                0..5,
            ),
        ) {
            let mut line = format!("{FRONT}{MESSAGE_OF_A_TOOL}{BEHIND}").into_bytes();
            for (at, cut, part) in damage {
                let at = at.index(line.len() + 1);
                // Most damage only puts something in.
                let end = if cut < 20 { at } else { line.len().min(at + cut - 20) };
                line.splice(at..end, part.bytes());
            }
            let shown = String::from_utf8_lossy(&line);
            prop_assert!(!(cannot_matter(&line) && matters(&line)), "{}", shown);
        }
    }
}
