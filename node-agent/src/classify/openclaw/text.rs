//! The text of a user's message, and what OpenClaw puts around it.

use super::super::Value;
use super::super::json::first_value;

/// How texts begin that OpenClaw writes by itself, and the rule each is named by.
const MARKERS: &[(&str, &str)] = &[
    ("[OpenClaw heartbeat poll]", "heartbeat"),
    ("Read HEARTBEAT.md if it exists", "heartbeat"),
    ("System: [", "exec-result"),
    (
        "An async command you ran earlier has completed",
        "exec-result",
    ),
    ("[cron:", "cron"),
    ("[Inter-session message]", "inter-session"),
];

const METADATA: &str = "(untrusted metadata):";
const WEEKDAYS: &[&str] = &["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// The parts of a message.
#[derive(Default)]
pub(super) struct Content {
    /// What a person wrote.
    pub(super) texts: Vec<String>,
    /// Why the first text that nobody wrote is none.
    pub(super) marker: Option<&'static str>,
    pub(super) has_image: bool,
}

impl Content {
    /// Weighs a string or an array of blocks.
    pub(super) fn of(content: Option<Value<'_>>) -> Self {
        let mut weighed = Self::default();
        let Some(content) = content else {
            return weighed;
        };
        if let Some(text) = content.text() {
            weighed.weigh(&text);
        }
        content.items(|block| {
            let text = block.text().or_else(|| block.get("text")?.text());
            match text {
                Some(text) => weighed.weigh(&text),
                None => weighed.has_image |= is_image(block),
            }
        });
        weighed
    }

    fn weigh(&mut self, text: &str) {
        let text = without_metadata(text);
        let own = MARKERS.iter().find(|(begin, _)| text.starts_with(begin));
        match own {
            None => self.texts.push(without_stamp(text).to_owned()),
            Some((_, rule)) => match stamped_part(text) {
                Some(part) => self.texts.push(without_stamp(part).to_owned()),
                None => {
                    self.marker.get_or_insert(rule);
                }
            },
        }
    }
}

fn is_image(block: Value<'_>) -> bool {
    let kind = block.get("type").and_then(Value::text);
    matches!(kind.as_deref(), Some("image" | "document" | "file"))
}

/// Takes metadata blocks from the beginning: a line that says so, and the JSON behind it,
/// fenced or not.
fn without_metadata(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
        if !line.trim_end().ends_with(METADATA) {
            return rest;
        }
        let json = behind.trim_start();
        let behind = if let Some(fenced) = json.strip_prefix("```") {
            fenced.split_once("```").map_or("", |(_, behind)| behind)
        } else if json.starts_with('{') {
            let end = first_value(json.as_bytes()).unwrap_or(0);
            json.get(end..).unwrap_or_default()
        } else {
            json
        };
        rest = behind.trim_start();
    }
}

/// The part behind the program's own lines that begins with a time stamp: a person's.
fn stamped_part(text: &str) -> Option<&str> {
    let starts = text.match_indices('\n').map(|(at, _)| &text[at + 1..]);
    starts
        .map(str::trim_start)
        .find(|part| stamp_len(part).is_some())
}

fn without_stamp(text: &str) -> &str {
    match stamp_len(text) {
        Some(length) => &text[length..],
        None => text,
    }
}

/// The length of a stamp like `[Sun 2026-03-08 22:03 GMT+9]` at the beginning of `text`.
fn stamp_len(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let day = WEEKDAYS.iter().find_map(|day| inner.strip_prefix(day))?;
    let date = day.strip_prefix(' ')?.as_bytes().get(..10)?;
    let is_date = date.iter().enumerate().all(|(at, byte)| match at {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let close = text.find(']')?;
    is_date.then_some(close + 1)
}
