//! What decides about one line of a transcript: its type, its place in the tree. Pure.

use std::borrow::Cow;

use serde::Deserialize;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The header.
    Session,
    /// A message of a person, or what stands for one.
    User,
    /// A message of the model.
    Assistant,
    /// What a tool gave back.
    ToolResult,
    /// A message of another role.
    OtherMessage,
    /// A message of an extension, in the model's context.
    CustomMessage,
    /// State of an extension, not in the model's context.
    Custom,
    /// A summary of what was before.
    Compaction,
    /// A summary of a branch that was left.
    BranchSummary,
    /// Anything else: names, labels, changes of the model.
    Other,
}

impl Kind {
    /// True for what the model sees.
    #[must_use]
    pub fn is_in_context(self) -> bool {
        matches!(
            self,
            Self::User
                | Self::Assistant
                | Self::ToolResult
                | Self::OtherMessage
                | Self::CustomMessage
                | Self::BranchSummary
        )
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its id; older files have none.
    pub id: Option<Cow<'a, str>>,
    /// What it follows.
    pub parent: Parent<'a>,
    /// Of a compaction: the first entry that is kept beside the summary.
    pub first_kept: Option<Cow<'a, str>>,
}

/// What a line follows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Parent<'a> {
    /// It does not say.
    #[default]
    Unsaid,
    /// Nothing: it is the first.
    Nothing,
    /// The entry with this id.
    Entry(Cow<'a, str>),
}

impl<'a> Parent<'a> {
    fn said(id: Option<Cow<'a, str>>) -> Self {
        id.map_or(Self::Nothing, Self::Entry)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Parent<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self::said)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    parent_id: Parent<'a>,
    #[serde(borrow, default)]
    first_kept_entry_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<RawMessage<'a>>,
}

#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow, default)]
    role: Option<Cow<'a, str>>,
}

/// Reads a whole line without its line end; `None` for what is no record.
#[must_use]
pub fn read(line: &[u8]) -> Option<Line<'_>> {
    let raw: Raw<'_> = serde_json::from_slice(line).ok()?;
    let role = raw.message.and_then(|message| message.role);
    Some(Line {
        kind: kind(&raw.kind, role.as_deref()),
        id: raw.id,
        parent: raw.parent_id,
        first_kept: raw.first_kept_entry_id,
    })
}

/// Reads the beginning of a line that is too long to keep: the members before the first one
/// that is large itself. Programs of this layout put there what decides.
#[must_use]
pub fn skim(head: &[u8]) -> Option<Line<'static>> {
    let mut kind_name = None;
    let mut line = Line {
        kind: Kind::Other,
        id: None,
        parent: Parent::Unsaid,
        first_kept: None,
    };
    let mut role = None;
    let mut rest = skip(head, b"{")?;
    while let Some((name, after)) = string(rest) {
        rest = skip(after, b":")?;
        let value = match string(rest) {
            Some((text, after)) => {
                rest = after;
                Some(text)
            }
            None if rest.starts_with(b"null") => {
                rest = &rest[4..];
                None
            }
            None => {
                role = skip(rest, b"{").and_then(role_of);
                break;
            }
        };
        match name.as_str() {
            "type" => kind_name = value,
            "id" => line.id = value.map(Cow::Owned),
            "parentId" => line.parent = Parent::said(value.map(Cow::Owned)),
            "firstKeptEntryId" => line.first_kept = value.map(Cow::Owned),
            _ => {}
        }
        match skip(rest, b",") {
            Some(next) => rest = next,
            None => break,
        }
    }
    line.kind = kind(&kind_name?, role.as_deref());
    Some(line)
}

/// The role at the beginning of a message.
fn role_of(message: &[u8]) -> Option<String> {
    let (name, rest) = string(message)?;
    let (role, _) = string(skip(rest, b":")?)?;
    (name == "role").then_some(role)
}

/// What follows a token, white space around it left out.
fn skip<'a>(bytes: &'a [u8], token: &[u8]) -> Option<&'a [u8]> {
    let rest = bytes.trim_ascii_start().strip_prefix(token)?;
    Some(rest.trim_ascii_start())
}

/// The string at the beginning, and what follows it.
fn string(bytes: &[u8]) -> Option<(String, &[u8])> {
    let mut strings = serde_json::Deserializer::from_slice(bytes).into_iter::<String>();
    let text = strings.next()?.ok()?;
    let after = strings.byte_offset();
    Some((text, bytes.get(after..)?.trim_ascii_start()))
}

fn kind(name: &str, role: Option<&str>) -> Kind {
    match (name, role) {
        ("session", _) => Kind::Session,
        ("message", Some("user")) => Kind::User,
        ("message", Some("assistant")) => Kind::Assistant,
        ("message", Some("toolResult")) => Kind::ToolResult,
        ("message", _) => Kind::OtherMessage,
        ("custom_message", _) => Kind::CustomMessage,
        ("custom", _) => Kind::Custom,
        ("compaction", _) => Kind::Compaction,
        ("branch_summary", _) => Kind::BranchSummary,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whole_and_a_long_one_from_its_beginning_alike() {
        let entry = |id: &'static str| Parent::Entry(id.into());
        for (line, expected) in [
            (
                r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"x"}}"#,
                (Kind::User, Some("a"), Parent::Nothing),
            ),
            (
                r#" { "type" : "message" , "id":"b\u0041", "parentId":"a", "message":{"role":"toolResult"}}"#,
                (Kind::ToolResult, Some("bA"), entry("a")),
            ),
            (
                r#"{"type":"custom_message","id":"c","parentId":"b","content":"x"}"#,
                (Kind::CustomMessage, Some("c"), entry("b")),
            ),
            (
                r#"{"type":"message","message":{"role":"assistant"}}"#,
                (Kind::Assistant, None, Parent::Unsaid),
            ),
            (
                r#"{"type":"message","id":"d","parentId":"c"}"#,
                (Kind::OtherMessage, Some("d"), entry("c")),
            ),
            (
                r#"{"type":"new_in_2030","id":"e","parentId":"d"}"#,
                (Kind::Other, Some("e"), entry("d")),
            ),
        ] {
            for found in [read(line.as_bytes()), skim(line.as_bytes())] {
                let found = found.expect(line);
                let found = (found.kind, found.id.as_deref(), found.parent.clone());
                assert_eq!(found, expected, "{line}");
            }
        }
        let compaction = br#"{"type":"compaction","id":"f","firstKeptEntryId":"b","summary":"s"}"#;
        for found in [read(compaction), skim(compaction)] {
            assert_eq!(found.expect("a line").first_kept.as_deref(), Some("b"));
        }
    }

    #[test]
    fn what_is_no_record_is_none() {
        for line in [
            "",
            "null",
            "7",
            "[]",
            "{",
            "{}",
            "\0\0",
            r#"{"type":7}"#,
            r#"{"type":"m"#,
        ] {
            assert_eq!(read(line.as_bytes()), None, "{line}");
            assert_eq!(skim(line.as_bytes()), None, "{line}");
        }
    }
}
