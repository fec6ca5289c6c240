//! A slow, obvious classifier: every line parsed whole, every rule spelled out once more
//! from the specification. What ships must agree with it.

mod claude;
mod codex;
mod openclaw;

use serde_json::Value;
use tidings_node::classify::Verdict;
use tidings_protocol::Catalog;

/// A verdict, its rule and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judged {
    pub(crate) line: u64,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) verdict: Verdict,
    pub(crate) rule: &'static str,
}

type Ruling = (Verdict, &'static str);

const fn human(rule: &'static str) -> Ruling {
    (Verdict::Human, rule)
}

const fn not(rule: &'static str) -> Ruling {
    (Verdict::NotHuman, rule)
}

const fn unclassified(rule: &'static str) -> Ruling {
    (Verdict::Unclassified, rule)
}

/// What a classifier of one program does.
trait Program {
    /// Judges a record; it may change the rulings of earlier ones, by index.
    fn judge(&mut self, index: usize, record: &Value, earlier: &mut Vec<Judged>) -> Ruling;
    /// Something that is no record came.
    fn other(&mut self, earlier: &mut Vec<Judged>);
    /// Nothing more comes.
    fn end(&mut self, earlier: &mut Vec<Judged>);
    /// The types it knows.
    fn knows(&self, kind: &str) -> bool;
}

/// Judges a whole file, in which lines end with LF only.
pub(crate) fn classify(catalog: Catalog, file: &[u8]) -> Vec<Judged> {
    let mut program: Box<dyn Program> = match catalog {
        Catalog::Claude => Box::new(claude::Claude::default()),
        Catalog::Codex => Box::new(codex::Codex::default()),
        Catalog::Openclaw => Box::new(openclaw::Openclaw::default()),
    };
    let mut judged = Vec::new();
    let mut start = 0;
    let mut number = 0;
    while start < file.len() {
        number += 1;
        let end = file[start..].iter().position(|b| *b == b'\n');
        let line_end = end.map_or(file.len(), |length| start + length);
        line(
            &mut *program,
            number,
            start,
            &file[start..line_end],
            end.is_some(),
            &mut judged,
        );
        start = line_end + 1;
    }
    program.end(&mut judged);
    judged
}

fn line(
    program: &mut dyn Program,
    number: u64,
    start: usize,
    line: &[u8],
    is_terminated: bool,
    judged: &mut Vec<Judged>,
) {
    let mut at = 0;
    let is_padding = |b: &u8| b" \t\r\0".contains(b);
    let end = line
        .iter()
        .rposition(|b| !is_padding(b))
        .map_or(0, |last| last + 1);
    loop {
        while at < end && (is_padding(&line[at]) || line[at..].starts_with(b"\xef\xbb\xbf")) {
            at += if is_padding(&line[at]) { 1 } else { 3 };
        }
        if at >= end {
            return;
        }
        let Some((value, length)) = first(&line[at..end]) else {
            break;
        };
        let index = judged.len();
        let ruling = if value.is_object() {
            program.judge(index, &value, judged)
        } else {
            program.other(judged);
            not("not-an-object")
        };
        push(judged, number, start + at, start + at + length, ruling);
        at += length;
    }
    let rule = if is_terminated {
        "not-json"
    } else {
        "incomplete"
    };
    let glued = (at + 1..end).find_map(|from| {
        let (value, length) = first(&line[from..end]).filter(|_| line[from] == b'{')?;
        let kind = value.get("type").and_then(Value::as_str)?;
        (is_terminated && from + length == end && program.knows(kind)).then_some((from, value))
    });
    program.other(judged);
    let bad_end = glued.as_ref().map_or(end, |(from, _)| *from);
    push(judged, number, start + at, start + bad_end, not(rule));
    if let Some((from, value)) = glued {
        let ruling = program.judge(judged.len(), &value, judged);
        push(judged, number, start + from, start + end, ruling);
    }
}

/// The first value of a text, and how long it is.
fn first(text: &[u8]) -> Option<(Value, usize)> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, values.byte_offset()))
}

fn push(judged: &mut Vec<Judged>, line: u64, start: usize, end: usize, ruling: Ruling) {
    let (verdict, rule) = ruling;
    judged.push(Judged {
        line,
        start,
        end,
        verdict,
        rule,
    });
}

/// The texts of a string or of an array of blocks.
fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| {
                let text = block.as_str().or_else(|| block["text"].as_str());
                text.map(str::to_owned)
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn normal(texts: &[String]) -> String {
    let words: Vec<_> = texts.iter().flat_map(|t| t.split_whitespace()).collect();
    words.join(" ")
}

/// Present and not null.
fn has(record: &Value, name: &str) -> bool {
    record.get(name).is_some_and(|value| !value.is_null())
}

/// A UTC time stamp as the generator writes it, in milliseconds of its day.
fn ms(record: &Value) -> Option<i64> {
    let text = record.get("timestamp")?.as_str()?;
    let is_like = |(own, form): (u8, u8)| own == form || (form == b'0' && own.is_ascii_digit());
    let form = b"2026-09-00T00:00:00.000Z";
    if text.len() != form.len() || !text.bytes().zip(*form).all(is_like) {
        return None;
    }
    let part = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let days = part(8..10)?;
    let seconds = (days * 24 + part(11..13)?) * 3600 + part(14..16)? * 60 + part(17..19)?;
    Some(seconds * 1000 + part(20..23)?)
}
