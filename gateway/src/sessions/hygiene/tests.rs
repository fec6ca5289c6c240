//! Conversations, and what the providers get of them.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A conversation, one message a line: `u`, `a` or `t`, then its blocks; `!` ends a message of
/// the model that was aborted. Blocks: `"text"`, `?thought`, `?signed+`, `@<bytes>` (an image),
/// `>id` (a call), `<id` (a result).
fn conversation(text: &str) -> Vec<Message> {
    text.split('|').map(str::trim).map(message).collect()
}

fn message(line: &str) -> Message {
    let mut words = line.split(' ');
    let role = match words.next() {
        Some("u") => Role::User,
        Some("a") => Role::Assistant,
        Some("t") => Role::ToolResult,
        other => panic!("{other:?}"),
    };
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let was_aborted = words.contains(&"!");
    let blocks = words.iter().filter(|word| **word != "!");
    Message {
        role,
        content: blocks.map(|word| block(word)).collect(),
        stop_reason: was_aborted.then(|| "aborted".to_owned()),
    }
}

fn block(word: &str) -> Block {
    let (kind, rest) = word.split_at(1);
    match kind {
        "\"" => Block::Text {
            text: rest.trim_end_matches('"').replace('_', " "),
        },
        "?" => Block::Thinking {
            thinking: rest.to_owned(),
            signature: rest.strip_suffix('+').map(str::to_owned),
        },
        "@" => Block::Image {
            data: "x".repeat(rest.parse().expect("a size")),
            mime_type: "image/png".to_owned(),
        },
        ">" => Block::ToolCall {
            id: rest.to_owned(),
            name: "bash".to_owned(),
            arguments: json!({}),
        },
        "<" => Block::ToolOutput {
            call_id: rest.to_owned(),
            text: "out".to_owned(),
            is_error: false,
        },
        other => panic!("{other}"),
    }
}

/// The conversation as [`conversation`] reads it; a result that was made up is `<~id`.
fn shown(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let role = match message.role {
            Role::User => "u",
            Role::Assistant => "a",
            Role::ToolResult => "t",
        };
        let separator = if text.is_empty() { "" } else { " | " };
        let _ = write!(text, "{separator}{role}");
        for block in &message.content {
            let _ = match block {
                Block::Text { text: said } => write!(text, " \"{said}\""),
                Block::Thinking { thinking, .. } => write!(text, " ?{thinking}"),
                Block::Image { data, .. } => write!(text, " @{}", data.len()),
                Block::ToolCall { id, .. } => write!(text, " >{id}"),
                Block::ToolOutput {
                    call_id, is_error, ..
                } => write!(text, " <{}{call_id}", if *is_error { "~" } else { "" }),
            };
        }
    }
    text
}

#[track_caller]
fn check(given: &str, openai: &str, anthropic: &str) {
    let given = conversation(given);
    for (rules, expected) in [(OPENAI, openai), (ANTHROPIC, anthropic)] {
        let (mended, _) = mend(&given, &rules);
        assert_eq!(shown(&mended), expected);
        let (again, found) = mend(&mended, &rules);
        assert_eq!(shown(&again), expected, "a second time");
        assert_eq!(
            (found.missing_results, found.stray_results, found.ids),
            (0, 0, 0)
        );
    }
}

#[test]
fn a_sound_conversation_stays_as_it_is() {
    let sound = r#"u "hi" | a "yes" >1 | t <1 | a "done""#;
    check(sound, sound, r#"u "hi" | a "yes" >1 | t <1 | a "done""#);
}

#[test]
fn every_call_has_its_result_behind_it_and_every_result_its_call() {
    check(
        r#"u "x" | a >1 >2 | u "y" | t <2 | t <3 | a "z" | t <2"#,
        r#"u "x" | a >1 >2 | t <~1 | t <2 | u "y" | a "z""#,
        r#"u "x" | a >1 >2 | u <~1 <2 "y" | a "z""#,
    );
    check(
        r#"u "x" | a >1 | t <1 | a >1 | t <1 | a "z""#,
        r#"u "x" | a >1 | t <1 | a "z""#,
        r#"u "x" | a >1 | t <1 | a "z""#,
    );
}

#[test]
fn a_call_that_was_aborted_was_never_made_unless_it_has_a_result() {
    check(
        r#"u "x" | a "so" >1 ! | u "y" | a >2 ! | t <2"#,
        r#"u "x" | a "so" | u "y" | a >2 | t <2"#,
        r#"u "x" | a "so" | u "y" | a >2 | t <2"#,
    );
    check(
        r#"u "x" | a >1 ! | u "y""#,
        r#"u "x" | u "y""#,
        r#"u "x" "y""#,
    );
}

#[test]
fn empty_turns_go_and_people_and_model_speak_by_turns_where_they_must() {
    check(
        r#"a "first" | u "" | a "_" | u "a" | u "b" | a "c" | a "d""#,
        r#"a "first" | u "a" | u "b" | a "c" | a "d""#,
        r#"u "(the conversation goes on)" | a "first" | u "a" "b" | a "c" "d""#,
    );
    assert_eq!(mend(&[], &ANTHROPIC).0, []);
}

#[test]
fn thoughts_go_where_nobody_knows_them_again() {
    check(
        r#"u "x" | a ?secret ?signed+ "y" | u "z" | a ?alone"#,
        r#"u "x" | a "y" | u "z""#,
        r#"u "x" | a ?signed+ "y" | u "z""#,
    );
}

#[test]
fn ids_are_written_as_the_provider_accepts_them_alike_in_call_and_result() {
    let long = "c".repeat(70);
    let given = format!(r#"u "x" | a >call.1 >call/1 >{long} | t <call/1 | t <call.1 | t <{long}"#);
    for rules in [OPENAI, ANTHROPIC] {
        let (mended, found) = mend(&conversation(&given), &rules);
        let calls: Vec<String> = mended.iter().flat_map(Message::calls).collect();
        let answers: Vec<String> = mended.iter().flat_map(Message::answers).collect();
        assert_eq!(calls, answers);
        assert_eq!(
            calls.iter().collect::<BTreeSet<_>>().len(),
            3,
            "still different"
        );
        assert!(
            calls.iter().all(|id| id.len() <= rules.id_bytes),
            "{calls:?}"
        );
        assert_eq!(found.ids, 3);
    }
}

#[test]
fn the_newest_images_stay_and_one_that_is_too_large_goes() {
    let rules = Rules {
        images: 2,
        image_bytes: 5,
        ..OPENAI
    };
    let given = conversation(r#"u @1 @2 | a "x" | u @6 @3 "y""#);
    let (mended, found) = mend(&given, &rules);
    assert_eq!(
        shown(&mended),
        r#"u "[image left out]" @2 | a "x" | u "[image left out]" @3 "y""#
    );
    assert_eq!(found.images, 2);
}

fn any_block() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("\"x\"".to_owned()),
        Just("\"\"".to_owned()),
        Just("?t".to_owned()),
        (0..4u8).prop_map(|id| format!(">{id}.")),
        (0..4u8).prop_map(|id| format!("<{id}.")),
        Just("@3".to_owned()),
    ]
}

fn any_message() -> impl Strategy<Value = Message> {
    let blocks = proptest::collection::vec(any_block(), 0..4);
    (0..3usize, blocks, any::<bool>()).prop_map(|(role, blocks, aborted)| {
        // A model calls, a tool answers, and only they do.
        let fits = |block: &String| match role {
            0 => !block.starts_with(['<', '>']),
            1 => !block.starts_with('<'),
            _ => block.starts_with('<'),
        };
        let blocks: Vec<String> = blocks.into_iter().filter(fits).collect();
        let end = if aborted && role == 1 { " !" } else { "" };
        message(&format!(
            "{} {}{end}",
            ["u", "a", "t"][role],
            blocks.join(" ")
        ))
    })
}

proptest! {
    #[test]
    fn whatever_was_said_the_provider_accepts_it(
        given in proptest::collection::vec(any_message(), 0..12)
    ) {
        for rules in [OPENAI, ANTHROPIC] {
            let (mended, _) = mend(&given, &rules);
            let mut open: Vec<String> = Vec::new();
            for message in &mended {
                prop_assert!(!message.content.is_empty());
                if message.role == Role::Assistant {
                    prop_assert!(open.is_empty(), "{}", shown(&mended));
                    open.extend(message.calls());
                }
                for answer in message.answers() {
                    prop_assert_eq!(Some(0), open.iter().position(|id| *id == answer));
                    open.remove(0);
                }
                if message.role == Role::User {
                    prop_assert!(open.is_empty(), "{}", shown(&mended));
                }
            }
            prop_assert!(open.is_empty(), "{}", shown(&mended));
            if rules.turns == Turns::Strict {
                let is_model = |message: &Message| message.role == Role::Assistant;
                prop_assert!(!mended.first().is_some_and(is_model));
                let by_turns = mended.windows(2).all(|two| is_model(&two[0]) != is_model(&two[1]));
                prop_assert!(by_turns, "{}", shown(&mended));
            }
        }
    }
}
