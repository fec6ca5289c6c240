//! Codex, by the numbers of the rules.

use serde_json::Value;
use tidings_node::classify::Verdict;

use super::{Judged, Program, Ruling, human, ms, normal, not, texts, unclassified};

#[derive(Default)]
pub(super) struct Codex {
    headed: bool,
    thread: Option<&'static str>,
    /// When a fork was made; nothing for other threads.
    forked_at: Option<i64>,
    replaying: bool,
    events: bool,
    waiting: Vec<Waiting>,
    ids: Vec<String>,
}

struct Waiting {
    index: usize,
    text: String,
    has_kinds: bool,
    followed_by: u8,
}

impl Program for Codex {
    fn judge(&mut self, index: usize, record: &Value, earlier: &mut Vec<Judged>) -> Ruling {
        let payload = record.get("payload").unwrap_or(record);
        if record["type"] == "session_meta" && !self.headed {
            self.head(record, payload);
        }
        let ruling = self.rule(index, record, payload, earlier);
        let id = payload["id"]
            .as_str()
            .or_else(|| payload["item"]["id"].as_str());
        if let Some(id) = id.filter(|id| !id.is_empty() && record["type"] != "session_meta") {
            self.ids.retain(|own| own != id);
            self.ids.push(id.to_owned());
        }
        ruling
    }

    fn other(&mut self, earlier: &mut Vec<Judged>) {
        self.follow(earlier);
    }

    fn end(&mut self, earlier: &mut Vec<Judged>) {
        for waiting in self.waiting.drain(..) {
            set(earlier, waiting.index, human("response-item"));
        }
    }

    fn knows(&self, kind: &str) -> bool {
        [
            "session_meta",
            "turn_context",
            "event_msg",
            "response_item",
            "compacted",
            "message",
        ]
        .contains(&kind)
    }
}

fn set(earlier: &mut [Judged], index: usize, (verdict, rule): (Verdict, &'static str)) {
    earlier[index].verdict = verdict;
    earlier[index].rule = rule;
}

impl Codex {
    fn head(&mut self, record: &Value, meta: &Value) {
        self.headed = true;
        let source = &meta["source"];
        let agents = [
            "subagent", "internal", "review", "guardian", "memory", "compact",
        ];
        let is_agent = |value: &Value| {
            value
                .as_str()
                .is_some_and(|text| agents.iter().any(|name| text.starts_with(name)))
        };
        let originator = meta["originator"]
            .as_str()
            .unwrap_or_default()
            .trim()
            .to_lowercase();
        let is_own =
            originator.is_empty() || originator == "user" || originator.starts_with("codex");
        let is_driven = ["exec", "mcp", "sdk"]
            .iter()
            .any(|part| originator.contains(part));
        self.thread = if source.get("subagent").is_some()
            || source.get("internal").is_some()
            || is_agent(source)
            || is_agent(&meta["thread_source"])
        {
            Some("subagent-thread")
        } else if source == "exec" || source == "mcp" || !is_own || is_driven {
            Some("programmatic")
        } else {
            None
        };
        let parent = meta["forked_from_id"].as_str().unwrap_or_default();
        let created = ms(meta).or_else(|| ms(record));
        self.forked_at = created.filter(|_| !parent.is_empty());
        self.replaying = self.forked_at.is_some();
    }

    fn follow(&mut self, earlier: &mut [Judged]) {
        for waiting in &mut self.waiting {
            waiting.followed_by += 1;
            if waiting.followed_by >= 4 {
                set(earlier, waiting.index, human("response-item"));
            }
        }
        self.waiting.retain(|waiting| waiting.followed_by < 4);
    }

    fn rule(
        &mut self,
        index: usize,
        record: &Value,
        payload: &Value,
        earlier: &mut [Judged],
    ) -> Ruling {
        let ruling = self.alone(record, payload);
        let text = normal(&own_texts(payload));
        if ruling == human("user-message") {
            self.events = true;
            let twin = self.waiting.iter().position(|waiting| waiting.text == text);
            if let Some(twin) = twin {
                let twin = self.waiting.remove(twin);
                set(earlier, twin.index, not("duplicate-of-event"));
            }
            for waiting in self.waiting.extract_if(.., |waiting| !waiting.has_kinds) {
                set(earlier, waiting.index, not("response-item-after-event"));
            }
        }
        self.follow(earlier);
        if ruling == not("waiting") {
            self.waiting.push(Waiting {
                index,
                text,
                has_kinds: kinds(payload).is_some(),
                followed_by: 0,
            });
        }
        ruling
    }

    fn alone(&mut self, record: &Value, payload: &Value) -> Ruling {
        if let Some(rule) = self.thread {
            return not(rule);
        }
        if let Some(created) = self.forked_at {
            let at = ms(record);
            let is_later = at.is_some_and(|at| at > created + 1000);
            let passed = &payload["internal_chat_message_metadata_passthrough"]["turn_id"];
            let turn = payload["turn_id"].as_str().or_else(|| passed.as_str());
            // The generator's turn ids are no UUIDs.
            let starts = turn.is_some() || record["type"] == "turn_context";
            if starts && is_later {
                self.replaying = false;
            }
            if self.replaying || at.is_some_and(|at| at < created) {
                return not("copy");
            }
        }
        let kind = record["type"].as_str();
        let payload_kind = payload["type"].as_str();
        match (kind, payload_kind) {
            (Some("event_msg"), Some("user_message")) => {
                if ["user_instructions", "environment_context"]
                    .contains(&payload["kind"].as_str().unwrap_or_default())
                {
                    return not("injected-context");
                }
                event(payload)
            }
            (Some("event_msg"), Some("item_completed"))
                if payload["item"]["type"] == "UserMessage" =>
            {
                event(payload)
            }
            (Some("response_item" | "message") | None, None | Some("message"))
                if payload["role"] == "user" =>
            {
                let id = payload["id"].as_str().unwrap_or_default();
                if self.ids.iter().rev().take(64).any(|own| own == id) {
                    return not("copy");
                }
                self.item(payload)
            }
            _ => not("record-type"),
        }
    }

    fn item(&self, payload: &Value) -> Ruling {
        if payload.get("content").is_none() {
            return unclassified("unknown-shape");
        }
        let says_user = kinds(payload);
        if says_user == Some(false) {
            return not("injected-context");
        }
        let texts = own_texts(payload);
        let begins =
            |text: &String, marker: &str| text.trim_start().to_lowercase().starts_with(marker);
        if texts
            .first()
            .is_some_and(|text| begins(text, "<user_shell_command>"))
        {
            return human("bash-mode");
        }
        if says_user.is_none() {
            let markers = [
                "# agents.md instructions",
                "<user_instructions>",
                "<environment_context>",
                "<extension_context>",
                "<skill>",
                "<turn_aborted>",
                "<subagent_notification>",
                "<goal_context>",
                "<codex_internal_context",
                "<recommended_plugins>",
                "<instructions>",
            ];
            if texts
                .iter()
                .any(|text| markers.iter().any(|marker| begins(text, marker)))
            {
                return not("injected-context");
            }
            if self.events {
                return not("response-item-after-event");
            }
        }
        if is_empty(payload) {
            not("empty")
        } else {
            not("waiting")
        }
    }
}

fn kinds(payload: &Value) -> Option<bool> {
    let passed = &payload["internal_chat_message_metadata_passthrough"];
    let kinds = passed["content_item_kinds"].as_array()?;
    Some(
        kinds
            .iter()
            .any(|kind| kind.as_str().is_some_and(|kind| kind.starts_with("user."))),
    )
}

fn event(payload: &Value) -> Ruling {
    if is_empty(payload) {
        not("empty")
    } else {
        human("user-message")
    }
}

fn contents(payload: &Value) -> &Value {
    if payload["type"] == "user_message" {
        &payload["message"]
    } else if payload["type"] == "item_completed" {
        &payload["item"]["content"]
    } else {
        &payload["content"]
    }
}

fn is_wrapper(text: &str) -> bool {
    let text = text.trim();
    text == "</image>" || (text.starts_with("<image name=") && text.ends_with('>'))
}

fn preamble(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("# Context from my IDE setup:")
        || text.starts_with("# Files mentioned by the user:")
}

fn own_texts(payload: &Value) -> Vec<String> {
    let all = texts(contents(payload)).into_iter();
    let all = all.filter(|text| !is_wrapper(text)).filter_map(|text| {
        if !preamble(&text) {
            return Some(text);
        }
        let (_, request) = text.split_once("## My request for Codex:")?;
        Some(request.to_owned())
    });
    all.collect()
}

fn is_empty(payload: &Value) -> bool {
    let content = contents(payload);
    let has_other_parts = content.as_array().is_some_and(|parts| {
        parts
            .iter()
            .any(|part| part.as_str().is_none() && part["text"].as_str().is_none())
    });
    let all = texts(content);
    let is_event = payload["type"] == "user_message";
    let has_images = is_event
        && ["images", "local_images"].iter().any(|name| {
            payload[name]
                .as_array()
                .is_some_and(|images| !images.is_empty())
        });
    let has_attachment =
        has_other_parts || has_images || all.iter().any(|text| is_wrapper(text) || preamble(text));
    !has_attachment && normal(&own_texts(payload)).is_empty()
}
