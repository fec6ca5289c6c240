//! Claude Code, by the numbers of the rules.

use std::collections::VecDeque;

use serde_json::Value;

use super::{Judged, Program, Ruling, has, human, ms, normal, not, texts, unclassified};

#[derive(Default)]
pub(super) struct Claude {
    ids: VecDeque<String>,
    human_ids: VecDeque<String>,
    queue: Vec<Item>,
    counted: Vec<(Option<i64>, String)>,
    lone_removes: Vec<String>,
    lone_attachments: Vec<String>,
    version: Option<String>,
    is_program: bool,
}

struct Item {
    text: String,
    at: Option<i64>,
    is_human: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Stands {
    Human,
    Editor,
    Open,
}

const PROGRAMS: [&str; 5] = ["sdk-cli", "sdk-ts", "sdk-py", "mcp", "local-agent"];

impl Program for Claude {
    fn judge(&mut self, _: usize, record: &Value, _: &mut Vec<Judged>) -> Ruling {
        if let Some(version) = record["version"].as_str() {
            self.version = Some(version.to_owned());
            let entrypoint = record["entrypoint"].as_str().unwrap_or_default();
            self.is_program = PROGRAMS.contains(&entrypoint);
        }
        let ruling = self.rule(record);
        if let Some(id) = record["uuid"].as_str().filter(|id| !id.is_empty()) {
            remember(&mut self.ids, id);
            if ruling.0 == tidings_node::classify::Verdict::Human {
                remember(&mut self.human_ids, id);
            }
        }
        ruling
    }

    fn other(&mut self, _: &mut Vec<Judged>) {}
    fn end(&mut self, _: &mut Vec<Judged>) {}

    fn knows(&self, kind: &str) -> bool {
        [
            "user",
            "attachment",
            "queue-operation",
            "assistant",
            "system",
            "progress",
            "summary",
        ]
        .contains(&kind)
    }
}

fn remember(ids: &mut VecDeque<String>, id: &str) {
    ids.retain(|own| own != id);
    ids.push_back(id.to_owned());
    if ids.len() > 64 {
        ids.pop_front();
    }
}

impl Claude {
    fn rule(&mut self, record: &Value) -> Ruling {
        let attachment = &record["attachment"];
        match record["type"].as_str() {
            Some("user") => match self.stands(record) {
                Ok(stands) => prompt(record, stands),
                Err(ruling) => ruling,
            },
            Some("attachment") if attachment["type"] == "queued_command" => {
                match self.stands(record) {
                    Ok(stands) => self.attachment(record, stands),
                    Err(ruling) => ruling,
                }
            }
            Some("queue-operation") => self.operation(record),
            _ => not("record-type"),
        }
    }

    /// Rules 2 to 6.
    fn stands(&self, record: &Value) -> Result<Stands, Ruling> {
        let id = record["uuid"].as_str().filter(|id| !id.is_empty());
        let is_known = |id: &str| self.ids.iter().chain(&self.human_ids).any(|own| own == id);
        if id.is_some_and(is_known) || has(record, "forkedFrom") {
            return Err(not("copy"));
        }
        if record["isSidechain"] == true || has(record, "agentId") || has(record, "teamName") {
            return Err(not("sidechain"));
        }
        for (set, rule) in [
            (record["isMeta"] == true, "meta"),
            (record["attachment"]["isMeta"] == true, "meta"),
            (record["isCompactSummary"] == true, "compact-summary"),
            (
                record["isVisibleInTranscriptOnly"] == true,
                "transcript-only",
            ),
            (record["turnCompanion"] == true, "turn-companion"),
            (has(record, "planContent"), "plan-content"),
            (record["verifiedSlackHumanTurn"] == true, "slack-turn"),
        ] {
            if set {
                return Err(not(rule));
            }
        }
        let mut says_human = false;
        for origin in [&record["attachment"]["origin"], &record["origin"]] {
            let kind = if origin.is_object() {
                &origin["kind"]
            } else {
                origin
            };
            if kind.is_null() {
                continue;
            }
            if kind != "human" {
                return Err(not("origin"));
            }
            says_human = true;
        }
        if has(record, "turnOrigin") && record["turnOrigin"] != "human" {
            return Err(not("turn-origin"));
        }
        let source = &record["promptSource"];
        if source == "system" {
            return Err(not("prompt-source"));
        }
        if says_human {
            return Ok(Stands::Human);
        }
        let entrypoint = record["entrypoint"].as_str().unwrap_or_default();
        let is_editor = ["claude-vscode", "claude-desktop", "intellij"].contains(&entrypoint)
            || entrypoint.starts_with("remote");
        match source.as_str() {
            None if source.is_null() && PROGRAMS.contains(&entrypoint) => Err(not("programmatic")),
            None if source.is_null() => Ok(Stands::Open),
            Some("typed" | "queued" | "suggestion_accepted") => Ok(Stands::Open),
            Some("sdk") if is_editor => Ok(Stands::Editor),
            Some("sdk") => Err(not("programmatic")),
            _ => Err(unclassified("unknown-prompt-source")),
        }
    }

    fn operation(&mut self, record: &Value) -> Ruling {
        let content = &record["content"];
        let text = (!content.is_null()).then(|| normal(&texts(content)));
        match record["operation"].as_str() {
            Some("enqueue") => {
                let ruling = match self.stands(record) {
                    Ok(_) if self.is_program => not("programmatic"),
                    Ok(stands) => queued(content, stands),
                    Err(ruling) => ruling,
                };
                let is_human = ruling.0 == tidings_node::classify::Verdict::Human;
                if self.queue.len() >= 256 {
                    self.queue.remove(0);
                }
                self.queue.push(Item {
                    text: text.unwrap_or_default(),
                    at: ms(record),
                    is_human,
                });
                if is_human { not("queue-held") } else { ruling }
            }
            Some("dequeue") => {
                self.take(text.as_deref());
                not("queue-dequeued")
            }
            Some("popAll") => {
                self.take(text.as_deref());
                not("queue-withdrawn")
            }
            Some("remove") => self.remove(record, text.as_deref()),
            _ => unclassified("unknown-queue-operation"),
        }
    }

    fn take_text(&mut self, text: Option<&str>) -> Option<Item> {
        let at = self
            .queue
            .iter()
            .position(|item| Some(item.text.as_str()) == text)?;
        Some(self.queue.remove(at))
    }

    fn take_oldest_human(&mut self) -> Option<Item> {
        if self.queue.is_empty() {
            return None;
        }
        let at = self
            .queue
            .iter()
            .position(|item| item.is_human)
            .unwrap_or(0);
        Some(self.queue.remove(at))
    }

    fn take(&mut self, text: Option<&str>) -> Option<Item> {
        self.take_text(text).or_else(|| self.take_oldest_human())
    }

    fn remove(&mut self, record: &Value, text: Option<&str>) -> Ruling {
        let is_absorbed = record["reason"] == "absorbed_mid_turn";
        let is_old =
            !has(record, "reason") && self.version.as_deref().is_some_and(is_before_2_1_97);
        if !is_absorbed && !is_old {
            if self.take_text(text).is_none() {
                let counted = |item: &Item| self.counted.contains(&(item.at, item.text.clone()));
                match self.queue.iter().position(counted) {
                    Some(at) => drop(self.queue.remove(at)),
                    None => drop(self.take_oldest_human()),
                }
            }
            return not("queue-removed");
        }
        let ruling = match text {
            Some(_) => queued(&record["content"], Stands::Open),
            None => human("queue-absorbed"),
        };
        let is_open = |item: &Item| {
            Some(item.text.as_str()) == text
                && !self.counted.contains(&(item.at, item.text.clone()))
        };
        let same = match self.queue.iter().position(is_open) {
            Some(at) => Some(self.queue.remove(at)),
            None => self.take_text(text),
        };
        if ruling.0 != tidings_node::classify::Verdict::Human {
            return ruling;
        }
        match same.or_else(|| self.take_oldest_human()) {
            Some(item) if item.is_human => self.count((item.at, item.text), ruling.1),
            Some(_) => not("queue-removed"),
            None => match text {
                None => not("queue-removed"),
                Some(text) => {
                    if let Some(at) = self.lone_attachments.iter().position(|own| own == text) {
                        self.lone_attachments.remove(at);
                        return not("queue-twin");
                    }
                    if self.lone_removes.iter().any(|own| own == text) {
                        return not("queue-twin");
                    }
                    self.lone_removes.push(text.to_owned());
                    human(ruling.1)
                }
            },
        }
    }

    fn count(&mut self, key: (Option<i64>, String), rule: &'static str) -> Ruling {
        if self.counted.contains(&key) {
            return not("queue-twin");
        }
        self.counted.push(key);
        human(rule)
    }

    fn attachment(&mut self, record: &Value, stands: Stands) -> Ruling {
        let attachment = &record["attachment"];
        match attachment["commandMode"].as_str() {
            None | Some("prompt" | "bash") => {}
            Some("task-notification") => return not("task-notification"),
            Some(_) if stands == Stands::Human => {}
            Some(_) => return unclassified("unknown-command-mode"),
        }
        let (verdict, rule) = queued(&attachment["prompt"], stands);
        if verdict != tidings_node::classify::Verdict::Human {
            return (verdict, rule);
        }
        let text = normal(&texts(&attachment["prompt"]));
        let key = (ms(record), text.clone());
        let is_held = self
            .queue
            .iter()
            .any(|item| (item.at, &item.text) == (key.0, &text));
        if !is_held
            && !self.counted.contains(&key)
            && let Some(at) = self.lone_removes.iter().position(|own| *own == text)
        {
            self.lone_removes.remove(at);
            return not("queue-twin");
        }
        let ruling = self.count(key, rule);
        if !is_held
            && ruling.0 == tidings_node::classify::Verdict::Human
            && !self.lone_attachments.contains(&text)
        {
            self.lone_attachments.push(text);
        }
        ruling
    }
}

fn is_before_2_1_97(version: &str) -> bool {
    let parts: Vec<u32> = version
        .split('.')
        .filter_map(|part| part.parse().ok())
        .collect();
    parts.len() == 3 && (parts[0], parts[1], parts[2]) < (2, 1, 97)
}

/// What is left of the content, and what else is in it.
struct Left {
    texts: Vec<String>,
    marker: Option<&'static str>,
    kinds: Vec<String>,
}

fn left(content: &Value, stands: Stands) -> Left {
    let mut left = Left {
        texts: Vec::new(),
        marker: None,
        kinds: Vec::new(),
    };
    let blocks = match content {
        Value::String(_) => vec![content.clone()],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    };
    for block in blocks {
        let kind = block["type"].as_str().unwrap_or("?").to_owned();
        let text = match (block.as_str(), kind.as_str()) {
            (Some(text), _) => text.to_owned(),
            (None, "text") => match block["text"].as_str() {
                Some(text) => text.to_owned(),
                None => continue,
            },
            _ => {
                left.kinds.push(kind);
                continue;
            }
        };
        match survives(&text, stands) {
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => left.texts.push(text),
            Err((rule, rest)) => {
                left.marker = left.marker.or(Some(rule));
                left.texts.extend(rest);
            }
        }
    }
    left
}

/// Rule 9: the text, or the marker's name and what follows it.
fn survives(text: &str, stands: Stands) -> Result<String, (&'static str, Option<String>)> {
    if [
        "[Request interrupted by user]",
        "[Request interrupted by user for tool use]",
    ]
    .contains(&text.trim())
    {
        return Err(("interrupted", None));
    }
    let text = text.trim_start();
    for tag in ["ide_opened_file", "ide_selection", "ide_diagnostics"] {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        if !text.starts_with(&open) {
            continue;
        }
        let rest = match text.find(&close) {
            Some(at) if !text.trim_end().ends_with(&close) => &text[at + close.len()..],
            _ => "",
        };
        let rest = match survives(rest, stands) {
            Ok(rest) => Some(rest).filter(|rest| !rest.trim().is_empty()),
            Err((_, rest)) => rest,
        };
        return Err(("ide-context", rest));
    }
    let markers = [
        ("<local-command-caveat>", "command-caveat"),
        (
            "Caveat: The messages below were generated by the user while running local commands",
            "command-caveat",
        ),
        ("<local-command-stdout>", "command-output"),
        ("<local-command-stderr>", "command-output"),
        ("<bash-stdout>", "command-output"),
        ("<bash-stderr>", "command-output"),
        ("<task-notification>", "task-notification"),
        ("<system-reminder>", "system-reminder"),
        ("<user-prompt-submit-hook>", "hook-feedback"),
        ("<session-start-hook>", "hook-feedback"),
        ("Operation stopped by hook:", "hook-feedback"),
        ("Stop hook feedback:", "hook-feedback"),
        ("<tick>", "tick"),
        ("<goal>", "goal"),
        ("<teammate-message", "peer-message"),
        ("<cross-session-message", "peer-message"),
        ("Another Claude session sent a message:", "peer-message"),
        (
            "This session is being continued from a previous conversation",
            "compact-summary",
        ),
        ("Base directory for this skill:", "skill-body"),
    ];
    match markers.iter().find(|(marker, _)| text.starts_with(marker)) {
        Some((_, rule)) if stands != Stands::Human => Err((rule, None)),
        _ => Ok(text.to_owned()),
    }
}

/// Rules 8 and 10 to 12.
fn content_ruling(left: &Left, stands: Stands) -> Ruling {
    let is_image = |kind: &String| kind == "image" || kind == "document";
    let Some(first) = left.texts.first() else {
        let only_images = !left.kinds.is_empty() && left.kinds.iter().all(is_image);
        return match left.marker {
            None | Some("ide-context") if only_images => human("image-prompt"),
            Some(rule) => not(rule),
            None if left
                .kinds
                .iter()
                .any(|kind| !is_image(kind) && kind != "tool_result") =>
            {
                unclassified("unknown-content")
            }
            None => not("empty"),
        };
    };
    let first = first.trim_start();
    if first.starts_with("<command-name>") {
        not("builtin-command")
    } else if first.starts_with("<command-message>") {
        human("custom-command")
    } else if first.starts_with("<bash-input>") {
        human("bash-mode")
    } else if first.starts_with("Implement the following plan:") && stands != Stands::Human {
        not("plan-handover")
    } else if stands == Stands::Editor {
        human("editor-prompt")
    } else {
        human("typed-prompt")
    }
}

/// Rule 7, then the content.
fn prompt(record: &Value, stands: Stands) -> Ruling {
    let left = left(&record["message"]["content"], stands);
    let answers_tool = left.kinds.iter().any(|kind| kind == "tool_result")
        || has(record, "toolUseResult")
        || has(record, "sourceToolUseID");
    match (answers_tool, left.texts.is_empty()) {
        (true, true) => not("tool-result"),
        (true, false) => human("approval-feedback"),
        (false, _) => content_ruling(&left, stands),
    }
}

/// What a queued text is by itself.
fn queued(content: &Value, stands: Stands) -> Ruling {
    let left = left(content, stands);
    let ruling = content_ruling(&left, stands);
    if ruling.0 != tidings_node::classify::Verdict::Human {
        return ruling;
    }
    let text = normal(&left.texts);
    let word = text.split(' ').next().unwrap_or_default();
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_:-".contains(c);
    let mut letters = word.chars();
    let is_command = letters.next() == Some('/')
        && letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.all(is_word);
    if is_command {
        not("builtin-command")
    } else if text.starts_with('!') || ruling.1 == "bash-mode" {
        human("bash-mode")
    } else {
        human("queue-absorbed")
    }
}
