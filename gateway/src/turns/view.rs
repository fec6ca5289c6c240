//! What a turn's prompt is made of: the newest summary, what was kept beside it, and what came
//! after. Made from the entries of a branch; nothing of it is stored.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;

use serde_json::Value;

use super::chunks::Piece;
use super::message;
use super::tokens::{self, Figure};
use crate::sessions::hygiene::{Block, Message};
use crate::sessions::transcript::fork;
use crate::sessions::transcript::index::{EntryRef, Index};
use crate::sessions::transcript::line::{self, Kind};

/// More than this no model sees at once: what would be read is not read.
pub const MAX_VIEW_BYTES: u64 = 128 * 1024 * 1024;

/// The member of a message that names the queued messages in it.
pub const MESSAGE_IDS: &str = "messageIds";

/// What a turn's prompt is made of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// The newest summary.
    pub summary: Option<Summary>,
    /// What the model sees beside it, in order.
    pub items: Vec<Item>,
}

/// A summary of what was before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The entry's id.
    pub id: Option<String>,
    /// The summary.
    pub text: String,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The entry's id; older files have none.
    pub id: Option<String>,
    /// What the entry is.
    pub kind: Kind,
    /// What it says.
    pub message: Message,
    /// Its tokens, by estimate.
    pub tokens: u64,
    /// The ids of the queued messages that it says.
    pub message_ids: Vec<u64>,
    /// How many tokens the context had when the model had said it, where its provider counted
    /// them and nothing was compacted since.
    pub counted: Option<u64>,
}

impl View {
    /// What the model sees of a branch, given from its beginning.
    #[must_use]
    pub fn of_branch(branch: &[(Kind, Value)]) -> Self {
        let compaction = |(kind, _): &(Kind, Value)| *kind == Kind::Compaction;
        let Some(at) = branch.iter().rposition(compaction) else {
            return Self {
                summary: None,
                items: items(branch, Figures::Hold),
            };
        };
        let entry = &branch[at].1;
        let first_kept = entry["firstKeptEntryId"].as_str();
        let is_first_kept = |(_, entry): &(Kind, Value)| entry["id"].as_str() == first_kept;
        let kept_from = first_kept
            .and_then(|_| branch[..at].iter().position(is_first_kept))
            .unwrap_or(at);
        let mut kept = items(&branch[kept_from..at], Figures::AreOld);
        kept.extend(items(&branch[at + 1..], Figures::Hold));
        Self {
            summary: Some(Summary {
                id: entry["id"].as_str().map(str::to_owned),
                text: entry["summary"].as_str().unwrap_or_default().to_owned(),
            }),
            items: kept,
        }
    }

    /// What the model sees of a transcript's active branch; only that is read.
    pub fn read(file: &File, index: &Index) -> io::Result<Self> {
        let visible = index.visible(&index.active_branch());
        let mut entries: Vec<EntryRef> =
            visible.summary.into_iter().chain(visible.entries).collect();
        entries.sort_unstable();
        let lengths = entries.iter().filter_map(|entry| index.place(*entry));
        if lengths.map(|place| place.length).sum::<u64>() > MAX_VIEW_BYTES {
            let limit =
                format!("what a model would see of it has more than {MAX_VIEW_BYTES} bytes");
            return Err(io::Error::other(limit));
        }
        let lines = fork::lines(file, index, &entries)?;
        let branch: Vec<(Kind, Value)> = lines
            .split(|byte| *byte == b'\n')
            .filter_map(|bytes| {
                Some((line::read(bytes)?.kind, serde_json::from_slice(bytes).ok()?))
            })
            .collect();
        Ok(Self::of_branch(&branch))
    }

    /// The conversation as it goes to a provider, before what its rules mend.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        let summary = self.summary.iter();
        let summary = summary.map(|summary| message::of_summary(&summary.text));
        let items = self.items.iter().map(|item| item.message.clone());
        summary.chain(items).collect()
    }

    /// The tokens of all of it, by estimate.
    #[must_use]
    pub fn estimate(&self) -> u64 {
        let summary = self.summary.iter();
        let summary =
            summary.map(|summary| tokens::of_message(&message::of_summary(&summary.text)));
        tokens::sum(summary.chain(self.items.iter().map(|item| item.tokens)))
    }

    /// The last that was said to the model, where it has not answered: what it said stops in
    /// the middle of calls, or was cut off. Housekeeping waits for no answer.
    #[must_use]
    pub fn unanswered(&self) -> Option<&Message> {
        let asked = self
            .items
            .iter()
            .rposition(|item| item.kind == Kind::User)?;
        let is_answered = self.items[asked..].iter().any(Item::is_answer);
        (!is_answered).then(|| &self.items[asked].message)
    }

    /// The ids of the queued messages that stand in it.
    #[must_use]
    pub fn message_ids(&self) -> BTreeSet<u64> {
        let ids = self.items.iter().flat_map(|item| &item.message_ids);
        ids.copied().collect()
    }

    /// How many tokens the context holds: as the provider counted at its last answer, and what
    /// came since by estimate.
    #[must_use]
    pub fn context(&self) -> Figure {
        let last = self.items.iter().rposition(|item| item.counted.is_some());
        let counted = last.and_then(|last| self.items[last].counted);
        let since = &self.items[last.map_or(0, |last| last + 1)..];
        let since = tokens::sum(since.iter().map(|item| item.tokens));
        Figure::of(counted, since, self.estimate())
    }
}

impl Item {
    /// True for what the model said at the end of a turn.
    fn is_answer(&self) -> bool {
        let was_cut = matches!(
            self.message.stop_reason.as_deref(),
            Some("aborted" | "error")
        );
        let calls = |block: &Block| matches!(block, Block::ToolCall { .. });
        self.kind == Kind::Assistant && !was_cut && !self.message.content.iter().any(calls)
    }

    /// What decides where the conversation may be parted here. A call that was aborted or
    /// failed waits for nothing.
    #[must_use]
    pub fn piece(&self) -> Piece<'_> {
        let reason = self.message.stop_reason.as_deref();
        let was_cut = matches!(reason, Some("aborted" | "error"));
        let mut piece = Piece {
            tokens: self.tokens,
            calls: Vec::new(),
            answers: Vec::new(),
            begins_turn: self.kind == Kind::User,
        };
        for block in &self.message.content {
            match block {
                Block::ToolCall { id, .. } if !was_cut => piece.calls.push(id),
                Block::ToolOutput { call_id, .. } => piece.answers.push(call_id),
                _ => {}
            }
        }
        piece
    }
}

/// What becomes of what a provider counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Figures {
    Hold,
    /// The context was another one then.
    AreOld,
}

fn items(entries: &[(Kind, Value)], figures: Figures) -> Vec<Item> {
    let item = |(kind, entry): &(Kind, Value)| {
        let message = message::of_entry(*kind, entry)?;
        let counted = match figures {
            Figures::Hold if *kind == Kind::Assistant => counted(&entry["message"]),
            _ => None,
        };
        Some(Item {
            id: entry["id"].as_str().map(str::to_owned),
            kind: *kind,
            message_ids: message_ids(&entry["message"]),
            tokens: tokens::of_message(&message),
            message,
            counted,
        })
    };
    entries.iter().filter_map(item).collect()
}

fn message_ids(message: &Value) -> Vec<u64> {
    let ids = message[MESSAGE_IDS].as_array();
    ids.map(|ids| ids.iter().filter_map(Value::as_u64).collect())
        .unwrap_or_default()
}

/// What the provider counted for an answer: the whole context with it.
fn counted(message: &Value) -> Option<u64> {
    let usage = &message["usage"];
    let number = |name: &str| usage[name].as_u64().unwrap_or(0);
    let was_cut = matches!(message["stopReason"].as_str(), Some("aborted" | "error"));
    let parts = ["input", "cacheRead", "cacheWrite", "output"];
    let total = match number("totalTokens") {
        0 => tokens::sum(parts.into_iter().map(number)),
        total => total,
    };
    (total > 0 && !was_cut).then_some(total)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(kind: Kind, id: &str, more: Value) -> (Kind, Value) {
        let mut entry = more;
        entry["id"] = json!(id);
        (kind, entry)
    }

    fn user(id: &str) -> (Kind, Value) {
        let message = json!({"message": {"role": "user", "content": id}});
        entry(Kind::User, id, message)
    }

    fn assistant(id: &str, total: u64) -> (Kind, Value) {
        let content = json!([{"type": "text", "text": id}]);
        let usage = json!({"input": 1, "output": 1, "totalTokens": total});
        let message = json!({"message": {"role": "assistant", "content": content, "usage": usage}});
        entry(Kind::Assistant, id, message)
    }

    fn compaction(id: &str, first_kept: Option<&str>) -> (Kind, Value) {
        let members = json!({"summary": format!("sum {id}"), "firstKeptEntryId": first_kept});
        entry(Kind::Compaction, id, members)
    }

    fn shown(view: &View) -> Vec<&str> {
        let summary = view
            .summary
            .iter()
            .filter_map(|summary| summary.id.as_deref());
        let items = view.items.iter().filter_map(|item| item.id.as_deref());
        summary.chain(items).collect()
    }

    #[test]
    fn later_turns_see_the_newest_summary_and_the_entries_from_the_first_kept() {
        let note = entry(Kind::CustomMessage, "n", json!({"content": "note"}));
        let state = entry(Kind::Custom, "s", json!({"data": 1}));
        let branch = entry(Kind::BranchSummary, "b", json!({"summary": "tried"}));
        for (entries, expected) in [
            (vec![], vec![]),
            (vec![user("u1"), assistant("a1", 9)], vec!["u1", "a1"]),
            (
                vec![
                    user("u1"),
                    user("u2"),
                    assistant("a2", 9),
                    compaction("c", Some("u2")),
                    user("u3"),
                ],
                vec!["c", "u2", "a2", "u3"],
            ),
            (
                vec![user("u1"), compaction("c", None), user("u2")],
                vec!["c", "u2"],
            ),
            (
                vec![user("u1"), compaction("c", Some("gone")), user("u2")],
                vec!["c", "u2"],
            ),
            (
                vec![
                    user("u1"),
                    compaction("c1", Some("u1")),
                    user("u2"),
                    compaction("c2", Some("u2")),
                ],
                vec!["c2", "u2"],
            ),
            (vec![state, note, branch, user("u1")], vec!["n", "b", "u1"]),
        ] {
            assert_eq!(shown(&View::of_branch(&entries)), expected);
        }
    }

    #[test]
    fn a_prompt_begins_with_the_summary() {
        let view = View::of_branch(&[user("u1"), compaction("c", Some("u1"))]);
        let messages = view.messages();
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[0], message::of_summary("sum c"));
        assert_eq!(view.estimate(), tokens::of_messages(&messages));
    }

    #[test]
    fn the_context_is_what_the_provider_counted_last_and_an_estimate_where_nobody_did() {
        let of = |entries: &[(Kind, Value)]| View::of_branch(entries).context();
        let one = tokens::of_message(&View::of_branch(&[user("u1")]).messages()[0]);
        assert_eq!(of(&[]), Figure::Estimated(0));
        assert_eq!(of(&[user("u1")]), Figure::Estimated(one));
        assert_eq!(of(&[user("u1"), assistant("a1", 90)]), Figure::Counted(90));
        assert_eq!(
            of(&[user("u1"), assistant("a1", 90), user("u2")]),
            Figure::Estimated(90 + one)
        );
        // What was counted before a compaction says nothing about what is left.
        let kept = [assistant("a1", 90), compaction("c", Some("a1"))];
        let view = View::of_branch(&kept);
        assert_eq!(view.context(), Figure::Estimated(view.estimate()));
        let mut aborted = assistant("a1", 90);
        aborted.1["message"]["stopReason"] = json!("aborted");
        assert_eq!(of(&[aborted]), Figure::Estimated(one));
        let mut parts = assistant("a1", 0);
        parts.1["message"]["usage"] = json!({"input": 5, "cacheRead": 6, "output": 7});
        assert_eq!(of(&[parts]), Figure::Counted(18));
    }

    #[test]
    fn a_call_that_was_aborted_or_failed_waits_for_nothing() {
        for (reason, calls) in [
            (json!(null), &["c"][..]),
            (json!("toolUse"), &["c"]),
            (json!("aborted"), &[]),
            (json!("error"), &[]),
        ] {
            let call = json!({"type": "toolCall", "id": "c", "name": "bash", "arguments": {}});
            let message = json!({"role": "assistant", "content": [call], "stopReason": reason});
            let view = View::of_branch(&[entry(Kind::Assistant, "a", json!({"message": message}))]);
            assert_eq!(view.items[0].piece().calls, calls, "{reason}");
        }
    }

    #[test]
    fn what_is_read_of_a_file_is_what_its_branch_shows() {
        let lines = [
            json!({"type": "session", "id": "s"}),
            json!({"type": "message", "id": "u1", "parentId": null, "message": {"role": "user", "content": "one"}}),
            json!({"type": "message", "id": "u2", "parentId": "u1", "message": {"role": "user", "content": "two"}}),
            json!({"type": "message", "id": "x", "parentId": "u1", "message": {"role": "user", "content": "left"}}),
            json!({"type": "compaction", "id": "c", "parentId": "u2", "summary": "sum", "firstKeptEntryId": "u2"}),
            json!({"type": "message", "id": "u3", "parentId": "c", "message": {"role": "user", "content": "three"}}),
        ];
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let text = lines.join("\n");
        let mut file = tempfile::tempfile().expect("file");
        io::Write::write_all(&mut file, text.as_bytes()).expect("written");
        let index = Index::read(&mut text.as_bytes()).expect("index");
        let view = View::read(&file, &index).expect("a view");
        assert_eq!(shown(&view), ["c", "u2", "u3"]);
    }
}
