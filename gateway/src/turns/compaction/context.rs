//! Safeguard mode: what stands behind a summary in the words in which it was said. Pure.

use std::fmt::Write as _;

use crate::sessions::hygiene::{Block, Message, Role};
use crate::sessions::transcript::line::Kind;
use crate::turns::budget::Budget;
use crate::turns::truncate::cut;
use crate::turns::view::Item;

/// So many turns before the kept tail.
const TURNS: usize = 3;
/// So many messages of a turn that is parted: its first, and its last.
const SPLIT_MESSAGES: usize = 8;
/// So much of one message.
const MAX_MESSAGE_BYTES: usize = 600;
/// So much in all; less in a small window.
const MAX_BYTES: u64 = 12 * 1024;

/// The last turns before the kept tail, and the beginning of the turn that the cut parts, from
/// `split_from` on; empty where nothing was said.
#[must_use]
pub fn behind(items: &[Item], split_from: Option<usize>, budget: Budget) -> String {
    let (before, split) = items.split_at(split_from.unwrap_or(items.len()));
    let starts = before.iter().enumerate().rev();
    let mut starts = starts.filter(|(_, item)| item.kind == Kind::User);
    let recent_from = starts
        .by_ref()
        .take(TURNS)
        .last()
        .map_or(before.len(), |(at, _)| at);
    let mut text = String::new();
    write_part(&mut text, "## Recent turns", &said(&before[recent_from..]));
    let mut split = said(split);
    if split.len() > SPLIT_MESSAGES {
        split.drain(1..=split.len() - SPLIT_MESSAGES);
    }
    write_part(&mut text, "## Beginning of the current turn", &split);
    let most = MAX_BYTES.min(budget.threshold() / 2);
    cut(text.trim(), usize::try_from(most).unwrap_or(usize::MAX))
}

fn write_part(text: &mut String, heading: &str, said: &[String]) {
    if !said.is_empty() {
        let _ = write!(text, "\n\n{heading}\n{}", said.join("\n"));
    }
}

/// What person and model said, each message on its own.
fn said(items: &[Item]) -> Vec<String> {
    items
        .iter()
        .filter_map(|item| line(&item.message))
        .collect()
}

fn line(message: &Message) -> Option<String> {
    let who = match message.role {
        Role::User => "User",
        Role::Assistant => "Assistant",
        Role::ToolResult => return None,
    };
    let texts = message.content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.trim()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then(|| format!("- {who}: {}", cut(&text, MAX_MESSAGE_BYTES)))
}
