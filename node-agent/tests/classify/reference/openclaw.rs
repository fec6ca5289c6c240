//! OpenClaw, by the numbers of the rules.

use serde_json::Value;
use tidings_node::classify::Verdict;

use super::{Judged, Program, Ruling, human, ms, normal, not};

#[derive(Default)]
pub(super) struct Openclaw {
    headed: bool,
    forked: bool,
    created: Option<i64>,
    last: Option<String>,
    replied: bool,
    ids: Vec<String>,
    human_ids: Vec<String>,
}

impl Program for Openclaw {
    fn judge(&mut self, _: usize, record: &Value, _: &mut Vec<Judged>) -> Ruling {
        let ruling = self.rule(record);
        let id = record["id"]
            .as_str()
            .filter(|_| record["type"] != "session");
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            let mut all = vec![&mut self.ids];
            if ruling.0 == Verdict::Human {
                all.push(&mut self.human_ids);
            }
            for ids in all {
                ids.retain(|own| own != id);
                ids.push(id.to_owned());
            }
        }
        ruling
    }

    fn other(&mut self, _: &mut Vec<Judged>) {}
    fn end(&mut self, _: &mut Vec<Judged>) {}

    fn knows(&self, kind: &str) -> bool {
        [
            "session",
            "message",
            "compaction",
            "custom",
            "custom_message",
            "label",
        ]
        .contains(&kind)
    }
}

impl Openclaw {
    fn rule(&mut self, record: &Value) -> Ruling {
        if record["type"] == "session" && !self.headed {
            let names = |name: &str| record[name].as_str().is_some_and(|text| !text.is_empty());
            self.headed = true;
            self.created = ms(record);
            self.forked = names("parentSession") || names("branchedFrom");
            return not("record-type");
        }
        if record["type"] != "message" {
            return not("record-type");
        }
        let (ruling, text) = match record["message"]["role"].as_str() {
            Some("user") => user(&record["message"]),
            Some("bashExecution") => (human("bash-mode"), String::new()),
            Some("assistant") => {
                self.replied = true;
                return not("record-type");
            }
            _ => return not("record-type"),
        };
        if ruling.0 != Verdict::Human {
            return ruling;
        }
        let id = record["id"].as_str().unwrap_or_default();
        let newest = |ids: &Vec<String>| ids.iter().rev().take(64).any(|own| own == id);
        let is_old = self.forked
            && ms(record)
                .zip(self.created)
                .is_some_and(|(at, made)| at < made);
        if newest(&self.ids) || newest(&self.human_ids) || is_old {
            return not("copy");
        }
        if text.is_empty() {
            return ruling;
        }
        let is_retry = self.last.as_ref() == Some(&text) && !self.replied;
        self.last = Some(text);
        self.replied = false;
        if is_retry { not("retry-copy") } else { ruling }
    }
}

fn user(message: &Value) -> (Ruling, String) {
    let kind = &message["provenance"]["kind"];
    if !kind.is_null() && kind != "external_user" {
        return (not("provenance"), String::new());
    }
    let mut own = Vec::new();
    let mut marker = None;
    let mut has_image = false;
    let blocks = match &message["content"] {
        Value::Array(blocks) => blocks.clone(),
        other => vec![other.clone()],
    };
    for block in blocks {
        let Some(text) = block.as_str().or_else(|| block["text"].as_str()) else {
            has_image |=
                ["image", "document", "file"].contains(&block["type"].as_str().unwrap_or_default());
            continue;
        };
        match written(text) {
            Ok(text) => own.push(text),
            Err(rule) => marker = marker.or(Some(rule)),
        }
    }
    let text = normal(&own);
    let ruling = match marker {
        _ if !text.is_empty() => human("user-message"),
        Some(rule) => not(rule),
        None if has_image => human("image-prompt"),
        None => not("empty"),
    };
    (ruling, text)
}

/// What a person wrote of a text.
fn written(text: &str) -> Result<String, &'static str> {
    let text = without_metadata(text.trim_start());
    let markers = [
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
    match markers.iter().find(|(begin, _)| text.starts_with(begin)) {
        None => Ok(without_stamp(text).unwrap_or(text).to_owned()),
        Some((_, rule)) => {
            let mut lines = text.split_inclusive('\n').scan(0, |at, line| {
                *at += line.len();
                Some(*at)
            });
            let part = lines.find_map(|at| without_stamp(text[at..].trim_start()));
            part.map(str::to_owned).ok_or(rule)
        }
    }
}

fn without_metadata(text: &str) -> &str {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    if !line.trim_end().ends_with("(untrusted metadata):") {
        return text;
    }
    let rest = rest.trim_start();
    let rest = if rest.starts_with("```") {
        rest.splitn(3, "```").nth(2).unwrap_or_default()
    } else if rest.starts_with('{') {
        let length = super::first(rest.as_bytes()).map_or(0, |(_, length)| length);
        &rest[length..]
    } else {
        rest
    };
    without_metadata(rest.trim_start())
}

/// What follows `[Www YYYY-MM-DD…]`.
fn without_stamp(text: &str) -> Option<&str> {
    let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let inner = text.strip_prefix('[')?;
    let date = days
        .iter()
        .find_map(|day| inner.strip_prefix(day))?
        .strip_prefix(' ')?;
    let is_like = |(own, form): (u8, u8)| own == form || (form == b'0' && own.is_ascii_digit());
    if date.len() < 10 || !date.bytes().zip(*b"0000-00-00").all(is_like) {
        return None;
    }
    Some(text.split_once(']')?.1)
}
