//! A transcript's entry as a message of a conversation, and back. Pure.

use serde_json::{Value, json};

use crate::sessions::hygiene::{Block, Message, Role};
use crate::sessions::transcript::line::Kind;

/// What stands before a summary where the model reads it.
const SUMMARY: (&str, &str) = (
    "The conversation before this point was compacted into this summary:\n\n<summary>\n",
    "\n</summary>",
);
const BRANCH_SUMMARY: (&str, &str) = (
    "This is a summary of a branch that the conversation came back from:\n\n<summary>\n",
    "\n</summary>",
);

/// The message that an entry is; `None` for one that the model does not see, or that says
/// nothing.
#[must_use]
pub fn of_entry(kind: Kind, entry: &Value) -> Option<Message> {
    let message = &entry["message"];
    let message = match kind {
        Kind::User | Kind::OtherMessage => said(Role::User, blocks(&message["content"])),
        Kind::Assistant => Message {
            stop_reason: text(&message["stopReason"]),
            ..said(Role::Assistant, blocks(&message["content"]))
        },
        Kind::ToolResult => said(Role::ToolResult, result(message)),
        Kind::CustomMessage => said(Role::User, blocks(&entry["content"])),
        Kind::BranchSummary => framed(BRANCH_SUMMARY, entry["summary"].as_str()?),
        Kind::Session | Kind::Custom | Kind::Compaction | Kind::Other => return None,
    };
    (!message.content.is_empty()).then_some(message)
}

/// A summary as the model reads it.
#[must_use]
pub fn of_summary(summary: &str) -> Message {
    framed(SUMMARY, summary)
}

/// The `message` of an entry that says this.
#[must_use]
pub fn to_entry(message: &Message) -> Value {
    let output = message.content.iter().find_map(|block| match block {
        Block::ToolOutput {
            call_id, is_error, ..
        } => Some((call_id, *is_error)),
        _ => None,
    });
    let content: Vec<Value> = message.content.iter().map(to_block).collect();
    let mut value = match message.role {
        Role::User => json!({"role": "user", "content": content}),
        Role::Assistant => json!({"role": "assistant", "content": content}),
        Role::ToolResult => json!({"role": "toolResult", "content": content}),
    };
    if let Some((call_id, is_error)) = output {
        value["toolCallId"] = json!(call_id);
        value["isError"] = json!(is_error);
    }
    if let Some(reason) = &message.stop_reason {
        value["stopReason"] = json!(reason);
    }
    value
}

fn said(role: Role, content: Vec<Block>) -> Message {
    Message {
        role,
        content,
        stop_reason: None,
    }
}

fn framed((before, after): (&str, &str), summary: &str) -> Message {
    let text = format!("{before}{summary}{after}");
    said(Role::User, vec![Block::Text { text }])
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn blocks(content: &Value) -> Vec<Block> {
    match content {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![Block::Text { text: text.clone() }],
        Value::Array(blocks) => blocks.iter().filter_map(block).collect(),
        _ => Vec::new(),
    }
}

fn block(value: &Value) -> Option<Block> {
    Some(match value["type"].as_str()? {
        "text" => Block::Text {
            text: text(&value["text"])?,
        },
        "thinking" => Block::Thinking {
            thinking: text(&value["thinking"])?,
            signature: text(&value["thinkingSignature"]),
        },
        "image" => Block::Image {
            data: text(&value["data"])?,
            mime_type: text(&value["mimeType"])?,
        },
        "toolCall" => Block::ToolCall {
            id: text(&value["id"])?,
            name: text(&value["name"])?,
            arguments: value["arguments"].clone(),
        },
        _ => return None,
    })
}

/// A result: its texts as the output, and its images beside it.
fn result(message: &Value) -> Vec<Block> {
    let Some(call_id) = text(&message["toolCallId"]) else {
        return Vec::new();
    };
    let (mut texts, mut others) = (Vec::new(), Vec::new());
    for block in blocks(&message["content"]) {
        match block {
            Block::Text { text } => texts.push(text),
            other => others.push(other),
        }
    }
    let output = Block::ToolOutput {
        call_id,
        text: texts.join("\n"),
        is_error: message["isError"] == true,
    };
    std::iter::once(output).chain(others).collect()
}

fn to_block(block: &Block) -> Value {
    match block {
        Block::Text { text } | Block::ToolOutput { text, .. } => {
            json!({"type": "text", "text": text})
        }
        Block::Thinking {
            thinking,
            signature,
        } => {
            json!({"type": "thinking", "thinking": thinking, "thinkingSignature": signature})
        }
        Block::Image { data, mime_type } => {
            json!({"type": "image", "data": data, "mimeType": mime_type})
        }
        Block::ToolCall {
            id,
            name,
            arguments,
        } => {
            json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let call = Block::ToolCall {
            id: "c1".to_owned(),
            name: "bash".to_owned(),
            arguments: json!({"command": "ls"}),
        };
        let thought = Block::Thinking {
            thinking: "hm".to_owned(),
            signature: Some("s".to_owned()),
        };
        let image = Block::Image {
            data: "AAAA".to_owned(),
            mime_type: "image/png".to_owned(),
        };
        let hello = Block::Text {
            text: "hello".to_owned(),
        };
        let output = Block::ToolOutput {
            call_id: "c1".to_owned(),
            text: "out".to_owned(),
            is_error: true,
        };
        let answer = Message {
            stop_reason: Some("aborted".to_owned()),
            ..said(Role::Assistant, vec![thought, hello.clone(), call])
        };
        for (kind, message) in [
            (Kind::User, said(Role::User, vec![hello, image.clone()])),
            (Kind::Assistant, answer),
            (
                Kind::ToolResult,
                said(Role::ToolResult, vec![output, image]),
            ),
        ] {
            let entry = json!({"message": to_entry(&message)});
            assert_eq!(of_entry(kind, &entry), Some(message), "{entry}");
        }
    }

    #[test]
    fn what_the_model_sees_of_other_entries_is_said_to_it_by_the_user() {
        for (kind, entry, text) in [
            (
                Kind::CustomMessage,
                json!({"content": "note", "display": false}),
                "note",
            ),
            (
                Kind::CustomMessage,
                json!({"content": [{"type": "text", "text": "note"}]}),
                "note",
            ),
            (
                Kind::BranchSummary,
                json!({"fromId": "a", "summary": "tried"}),
                "<summary>\ntried\n</summary>",
            ),
            (
                Kind::User,
                json!({"message": {"role": "user", "content": "hi"}}),
                "hi",
            ),
        ] {
            let message = of_entry(kind, &entry).expect("a message");
            assert_eq!(message.role, Role::User);
            let [Block::Text { text: said }] = message.content.as_slice() else {
                panic!("{message:?}");
            };
            assert!(said.ends_with(text), "{said}");
        }
        for (kind, entry) in [
            (Kind::Custom, json!({"data": {"text": "x"}})),
            (Kind::User, json!({"message": {"role": "user"}})),
            (Kind::User, json!({"message": {"content": ""}})),
            (Kind::ToolResult, json!({"message": {"content": "x"}})),
            (Kind::BranchSummary, json!({"summary": 7})),
            (
                Kind::Assistant,
                json!({"message": {"content": [{"type": "x"}]}}),
            ),
        ] {
            assert_eq!(of_entry(kind, &entry), None, "{entry}");
        }
    }
}
