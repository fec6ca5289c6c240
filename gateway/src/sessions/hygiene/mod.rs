//! What a provider accepts: corrections of the copy of a conversation that goes to it, never of
//! the transcript. Pure.
//!
//! | step | what it mends |
//! |---|---|
//! | `pairs` | every call of a tool has its result, right behind it, and every result its call |
//! | `images` | not more images than the provider takes |
//! | `ids` | ids of calls as the provider accepts them |
//! | `turns` | no empty turns; and, where the provider wants it, people and model by turns |

mod ids;
mod images;
mod pairs;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Vec<Block>,
    /// How a message of the model ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// A person, or what stands for one.
    User,
    /// The model.
    Assistant,
    /// A tool.
    ToolResult,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// What the model thought.
    Thinking {
        /// The thought.
        thinking: String,
        /// By which the provider knows it again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// An image.
    Image {
        /// Its bytes in base 64.
        data: String,
        /// What kind of image.
        mime_type: String,
    },
    /// A call of a tool.
    ToolCall {
        /// Its id.
        id: String,
        /// The tool.
        name: String,
        /// What it is given.
        arguments: Value,
    },
    /// What a tool gave back; in a message of its own.
    ToolOutput {
        /// The call's id.
        call_id: String,
        /// The output.
        text: String,
        /// True where the tool failed.
        #[serde(default)]
        is_error: bool,
    },
}

/// What one provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The longest id of a call, in bytes.
    pub id_bytes: usize,
    /// How many images a request may have.
    pub images: usize,
    /// The largest image, in bytes of base 64.
    pub image_bytes: usize,
    /// Whether people and model must speak by turns, a person first.
    pub turns: Turns,
    /// What becomes of thoughts.
    pub thoughts: Thoughts,
}

/// Whether people and model must speak by turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turns {
    /// They may speak as they like.
    Free,
    /// They must.
    Strict,
}

/// What becomes of thoughts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thoughts {
    /// None is accepted.
    Dropped,
    /// Those that are signed are.
    Signed,
}

/// What servers that speak OpenAI's chat completions accept.
pub const OPENAI: Rules = Rules {
    id_bytes: 40,
    images: 500,
    image_bytes: 20 * 1024 * 1024,
    turns: Turns::Free,
    thoughts: Thoughts::Dropped,
};

/// What servers that speak Anthropic's messages accept.
pub const ANTHROPIC: Rules = Rules {
    id_bytes: 64,
    images: 100,
    image_bytes: 5 * 1024 * 1024,
    turns: Turns::Strict,
    thoughts: Thoughts::Signed,
};

/// What was mended, for a log line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mended {
    /// Calls that had no result.
    pub missing_results: usize,
    /// Results that had no call, or another already.
    pub stray_results: usize,
    /// Images that were left out.
    pub images: usize,
    /// Ids that were written otherwise.
    pub ids: usize,
    /// Messages that had nothing in them.
    pub empty: usize,
}

/// The conversation as the provider accepts it.
#[must_use]
pub fn mend(conversation: &[Message], rules: &Rules) -> (Vec<Message>, Mended) {
    let mut mended = Mended::default();
    let mut messages = conversation.to_vec();
    drop_unfinished_calls(&mut messages);
    thoughts(&mut messages, rules.thoughts);
    images::limit(&mut messages, rules, &mut mended);
    turns::drop_empty(&mut messages, &mut mended);
    let messages = pairs::mend(messages, &mut mended);
    let mut messages = turns::order(messages, rules.turns);
    ids::mend(&mut messages, rules.id_bytes, &mut mended);
    (messages, mended)
}

/// A call that was aborted or failed while it was written was never made.
fn drop_unfinished_calls(messages: &mut [Message]) {
    let answered: BTreeSet<String> = messages.iter().flat_map(Message::answers).collect();
    let was_cut = |message: &Message| {
        let reason = message.stop_reason.as_deref();
        matches!(reason, Some("aborted" | "error"))
    };
    for message in messages.iter_mut().filter(|message| was_cut(message)) {
        message.content.retain(|block| match block {
            Block::ToolCall { id, .. } => answered.contains(id),
            _ => true,
        });
    }
}

fn thoughts(messages: &mut [Message], thoughts: Thoughts) {
    for message in messages {
        message.content.retain(|block| match block {
            Block::Thinking { signature, .. } => {
                thoughts == Thoughts::Signed && signature.is_some()
            }
            _ => true,
        });
    }
}

impl Message {
    /// The ids of the calls in it.
    fn calls(&self) -> impl Iterator<Item = String> + '_ {
        self.content.iter().filter_map(|block| match block {
            Block::ToolCall { id, .. } => Some(id.clone()),
            _ => None,
        })
    }

    /// The ids of the calls it gives results of.
    fn answers(&self) -> impl Iterator<Item = String> + '_ {
        self.content.iter().filter_map(|block| match block {
            Block::ToolOutput { call_id, .. } => Some(call_id.clone()),
            _ => None,
        })
    }
}
