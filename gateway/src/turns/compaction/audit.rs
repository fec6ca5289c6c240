//! Whether a summary is sound. Pure.

use std::collections::BTreeSet;

use super::prompt::HEADINGS;
use crate::sessions::hygiene::{Block, Message, Role};

/// So many identifiers are looked for: the newest.
const MAX_IDENTIFIERS: usize = 12;
/// They are taken from so many messages.
const LOOKED_AT: usize = 12;
/// Of a text this much is looked at.
const MAX_TEXT_BYTES: usize = 16 * 1024;
/// A shorter word is no identifier, and a longer one is data.
const LENGTHS: std::ops::RangeInclusive<usize> = 4..=200;

/// What a summary lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flaws {
    /// Headings.
    pub headings: Vec<&'static str>,
    /// Identifiers of the newest messages.
    pub identifiers: Vec<String>,
}

impl Flaws {
    /// What a summary of these messages lacks.
    #[must_use]
    pub fn of(summary: &str, messages: &[Message]) -> Self {
        let has_line = |heading: &str| summary.lines().any(|line| line.trim() == heading);
        let headings = HEADINGS.into_iter().filter(|heading| !has_line(heading));
        let missing = |identifier: &String| !summary.contains(identifier.as_str());
        Self {
            headings: headings.collect(),
            identifiers: identifiers(messages).into_iter().filter(missing).collect(),
        }
    }

    /// True for a sound summary.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.headings.is_empty() && self.identifiers.is_empty()
    }

    /// What is said to whoever summarises again.
    #[must_use]
    pub fn feedback(&self) -> String {
        let mut parts = Vec::new();
        if !self.headings.is_empty() {
            parts.push(format!(
                "It lacked these headings: {}.",
                self.headings.join(", ")
            ));
        }
        if !self.identifiers.is_empty() {
            let listed = self.identifiers.join(", ");
            parts.push(format!("It lacked these identifiers: {listed}."));
        }
        parts.join(" ")
    }
}

/// The identifiers in the newest of what person and model said.
fn identifiers(messages: &[Message]) -> Vec<String> {
    let said = messages.iter().rev().filter(|m| m.role != Role::ToolResult);
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for block in said.take(LOOKED_AT).flat_map(|message| &message.content) {
        let Block::Text { text } = block else {
            continue;
        };
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        for word in text.split(|c: char| c.is_whitespace() || "\"'`<>()[]{},;|".contains(c)) {
            let word = word.trim_end_matches(['.', ':', '!', '?', '*']);
            if found.len() < MAX_IDENTIFIERS && is_identifier(word) && seen.insert(word) {
                found.push(word.to_owned());
            }
        }
    }
    found
}

/// True for a URL, a path, an address with a port, a hash or an id.
fn is_identifier(word: &str) -> bool {
    if !LENGTHS.contains(&word.len()) {
        return false;
    }
    let is_url = word.contains("://");
    let is_path = word.starts_with('/') && word[1..].contains('/');
    let port = word.rsplit_once(':').map(|(host, port)| {
        host.contains(|c: char| c.is_ascii_alphabetic() || c == '.') && port.parse::<u16>().is_ok()
    });
    let hex = word.len() >= 7 && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let is_mixed = word.contains(|c: char| c.is_ascii_digit())
        && word.contains(|c: char| c.is_ascii_alphabetic());
    is_url || is_path || port == Some(true) || (hex && is_mixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(role: Role, text: &str) -> Message {
        Message {
            role,
            content: vec![Block::Text {
                text: text.to_owned(),
            }],
            stop_reason: None,
        }
    }

    #[test]
    fn identifiers_are_urls_paths_ports_hashes_and_ids() {
        for word in [
            "https://example.org/x?y",
            "/etc/tidings/config.toml",
            "db.internal:5432",
            "localhost:7431",
            "ad620e0",
            "550e8400-e29b-41d4-a716-446655440000",
        ] {
            assert!(is_identifier(word), "{word}");
        }
        for word in [
            "", "and/or", "defaced", "12345678", "10:30", "note:", "/", "abc",
        ] {
            assert!(!is_identifier(word), "{word}");
        }
    }

    #[test]
    fn a_summary_without_its_headings_or_the_newest_identifiers_is_not_sound() {
        let messages = [
            said(Role::User, "look at /srv/app/main.rs, please."),
            said(Role::ToolResult, "/not/looked/at"),
            said(Role::Assistant, "fixed in `ad620e0`."),
        ];
        let sound = format!("{}\nad620e0 /srv/app/main.rs", HEADINGS.join("\nnone\n"));
        assert!(Flaws::of(&sound, &messages).is_empty());
        let flaws = Flaws::of("## Goal\n/srv/app/main.rs", &messages);
        assert_eq!(flaws.headings, HEADINGS[1..]);
        assert_eq!(flaws.identifiers, ["ad620e0"]);
        let feedback = flaws.feedback();
        assert!(
            feedback.contains("## Open") && feedback.contains("ad620e0"),
            "{feedback}"
        );
        assert_eq!(Flaws::of(&sound, &[]).feedback(), "");
    }
}
