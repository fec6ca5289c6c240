//! An answer while it comes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Answer, ModelError, Usage};
use crate::sessions::hygiene::{Block, Message, Role};

/// How much text, thought and arguments an answer may have in all.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// How many blocks it may have: text, thoughts and calls.
const MAX_BLOCKS: usize = 256;

/// What came of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing to see.
    Quiet,
    /// A piece of text.
    Text(String),
    /// The end of the answer.
    End,
}

/// A block while it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Text.
    Text(String),
    /// A thought, and its signature.
    Thought(String, String),
    /// A call: its id, the tool, its arguments as text.
    Call(String, String, String),
}

/// An answer while it comes: its blocks by their place.
#[derive(Debug, Default)]
pub(super) struct Draft {
    parts: BTreeMap<u64, Part>,
    bytes: usize,
    /// Why it ended, in the transcript's words.
    pub(super) stop_reason: Option<&'static str>,
    /// What it cost.
    pub(super) usage: Option<Usage>,
}

impl Draft {
    /// The block at a place, made by `new` where there is none.
    pub(super) fn part(
        &mut self,
        place: u64,
        new: impl FnOnce() -> Part,
    ) -> Result<&mut Part, ModelError> {
        if !self.parts.contains_key(&place) && self.parts.len() == MAX_BLOCKS {
            return Err(ModelError::TooMuch("256 blocks"));
        }
        Ok(self.parts.entry(place).or_insert_with(new))
    }

    /// Counts what came.
    pub(super) fn count(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes += bytes;
        if self.bytes > MAX_BYTES {
            return Err(ModelError::TooMuch("8 MiB"));
        }
        Ok(())
    }

    /// The whole answer.
    pub(super) fn finish(self) -> Answer {
        let content: Vec<Block> = self.parts.into_values().filter_map(block).collect();
        let calls = content
            .iter()
            .any(|block| matches!(block, Block::ToolCall { .. }));
        let stop_reason = self.stop_reason.unwrap_or("stop");
        let stop_reason = if calls { "toolUse" } else { stop_reason };
        Answer {
            message: Message {
                role: Role::Assistant,
                content,
                stop_reason: Some(stop_reason.to_owned()),
            },
            usage: self.usage,
        }
    }
}

fn block(part: Part) -> Option<Block> {
    Some(match part {
        Part::Text(text) if text.is_empty() => return None,
        Part::Text(text) => Block::Text { text },
        Part::Thought(thinking, signature) => Block::Thinking {
            thinking,
            signature: Some(signature).filter(|signature| !signature.is_empty()),
        },
        Part::Call(id, name, arguments) => Block::ToolCall {
            id,
            name,
            arguments: arguments_of(arguments),
        },
    })
}

/// Arguments are an object. What is none stays as it was written: the call is answered with
/// an error, and the model sees what it wrote.
fn arguments_of(text: String) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    match serde_json::from_str(&text) {
        Ok(value @ Value::Object(_)) => value,
        _ => Value::String(text),
    }
}

#[cfg(test)]
pub(super) mod reading {
    //! Events of a protocol, read as they stand in a test.

    use super::*;
    use crate::turns::models::sse::Event;

    /// How a protocol takes an event.
    pub(in crate::turns::models) type Take = fn(&mut Draft, &Event) -> Result<Step, ModelError>;

    /// What comes of each event, and the answer that all of them are.
    pub(in crate::turns::models) fn read(
        take: Take,
        events: &[&str],
    ) -> Result<(Vec<Step>, Answer), ModelError> {
        let mut draft = Draft::default();
        let mut steps = Vec::new();
        for data in events {
            let event = Event {
                data: (*data).to_owned(),
                ..Event::default()
            };
            steps.push(take(&mut draft, &event)?);
        }
        Ok((steps, draft.finish()))
    }
}
