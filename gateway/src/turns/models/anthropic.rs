//! Anthropic's messages.

use serde_json::{Value, json};

use super::draft::{Draft, Part, Step};
use super::error::{ModelError, Refusal};
use super::sse::Event;
use super::{Prompt, Tool, Usage};
use crate::sessions::hygiene::{Block, Message, Role};

/// The version of the protocol that is spoken.
pub(super) const VERSION: &str = "2023-06-01";

/// The body of a request.
pub(super) fn body(model: &str, prompt: &Prompt<'_>) -> Value {
    let messages: Vec<Value> = prompt.messages.iter().map(message).collect();
    let mut body = json!({
        "model": model,
        "messages": messages,
        "max_tokens": prompt.max_tokens,
        "stream": true,
    });
    if !prompt.system.is_empty() {
        body["system"] = prompt.system.into();
    }
    if !prompt.tools.is_empty() {
        body["tools"] = prompt.tools.iter().map(tool).collect();
    }
    body
}

fn tool(tool: &Tool) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters,
    })
}

fn message(message: &Message) -> Value {
    let role = match message.role {
        Role::Assistant => "assistant",
        Role::User | Role::ToolResult => "user",
    };
    let content: Vec<Value> = message.content.iter().map(block).collect();
    json!({"role": role, "content": content})
}

fn block(block: &Block) -> Value {
    match block {
        Block::Text { text } => json!({"type": "text", "text": text}),
        Block::Thinking {
            thinking,
            signature,
        } => json!({"type": "thinking", "thinking": thinking, "signature": signature}),
        Block::Image { data, mime_type } => json!({
            "type": "image",
            "source": {"type": "base64", "media_type": mime_type, "data": data},
        }),
        Block::ToolCall {
            id,
            name,
            arguments,
        } => {
            // Only an object is taken; what was none is in the error that it was answered with.
            let input = if arguments.is_object() {
                arguments.clone()
            } else {
                json!({})
            };
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
        Block::ToolOutput {
            call_id,
            text,
            is_error,
        } => json!({
            "type": "tool_result",
            "tool_use_id": call_id,
            "content": text,
            "is_error": is_error,
        }),
    }
}

/// Takes one event of a stream.
pub(super) fn take(draft: &mut Draft, event: &Event) -> Result<Step, ModelError> {
    let value: Value = serde_json::from_str(&event.data)
        .map_err(|_| ModelError::Strange("an event that is no JSON"))?;
    match value["type"].as_str().unwrap_or_default() {
        "message_start" => {
            count_usage(draft, &value["message"]["usage"]);
            Ok(Step::Quiet)
        }
        "content_block_start" => begin(draft, &value),
        "content_block_delta" => go_on(draft, &value),
        "message_delta" => {
            count_usage(draft, &value["usage"]);
            if let Some(reason) = value["delta"]["stop_reason"].as_str() {
                draft.stop_reason = Some(match reason {
                    "max_tokens" => "length",
                    _ => "stop",
                });
            }
            Ok(Step::Quiet)
        }
        "message_stop" => Ok(Step::End),
        "error" => Err(ModelError::Refused(Refusal::of(None, event.data.clone()))),
        // A ping, the end of a block, and what later versions add.
        _ => Ok(Step::Quiet),
    }
}

fn begin(draft: &mut Draft, value: &Value) -> Result<Step, ModelError> {
    let place = place(value)?;
    let block = &value["content_block"];
    let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
    let part = match block["type"].as_str().unwrap_or_default() {
        "text" => Part::Text(text("text")),
        "thinking" => Part::Thought(text("thinking"), text("signature")),
        "tool_use" => Part::Call(text("id"), text("name"), String::new()),
        _ => return Ok(Step::Quiet),
    };
    let said = match &part {
        Part::Text(said) => said.clone(),
        _ => String::new(),
    };
    draft.count(block.to_string().len())?;
    draft.part(place, || part)?;
    Ok(if said.is_empty() {
        Step::Quiet
    } else {
        Step::Text(said)
    })
}

fn go_on(draft: &mut Draft, value: &Value) -> Result<Step, ModelError> {
    let place = place(value)?;
    let delta = &value["delta"];
    let text = |name: &str| delta[name].as_str().unwrap_or_default().to_owned();
    let kind = delta["type"].as_str().unwrap_or_default();
    let piece = match kind {
        "text_delta" => text("text"),
        "thinking_delta" => text("thinking"),
        "signature_delta" => text("signature"),
        "input_json_delta" => text("partial_json"),
        _ => return Ok(Step::Quiet),
    };
    draft.count(piece.len())?;
    let part = draft.part(place, || match kind {
        "text_delta" => Part::Text(String::new()),
        "input_json_delta" => Part::Call(String::new(), String::new(), String::new()),
        _ => Part::Thought(String::new(), String::new()),
    })?;
    match (kind, part) {
        ("text_delta", Part::Text(all)) => {
            all.push_str(&piece);
            return Ok(Step::Text(piece));
        }
        ("thinking_delta", Part::Thought(all, _))
        | ("signature_delta", Part::Thought(_, all))
        | ("input_json_delta", Part::Call(_, _, all)) => all.push_str(&piece),
        _ => return Err(ModelError::Strange("a piece of another block")),
    }
    Ok(Step::Quiet)
}

fn place(value: &Value) -> Result<u64, ModelError> {
    value["index"]
        .as_u64()
        .ok_or(ModelError::Strange("a block without a place"))
}

/// What was cached was sent too; later figures stand in the place of earlier ones.
fn count_usage(draft: &mut Draft, usage: &Value) {
    let figure = |name: &str| usage[name].as_u64();
    let before = draft.usage.unwrap_or_default();
    let input = figure("input_tokens").map(|fresh| {
        fresh
            + figure("cache_creation_input_tokens").unwrap_or(0)
            + figure("cache_read_input_tokens").unwrap_or(0)
    });
    let output = figure("output_tokens");
    if input.is_some() || output.is_some() {
        draft.usage = Some(Usage {
            input: input.filter(|input| *input > 0).unwrap_or(before.input),
            output: output.unwrap_or(before.output),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns::models::Answer;
    use crate::turns::models::draft::reading;

    fn read(events: &[&str]) -> Result<(Vec<Step>, Answer), ModelError> {
        reading::read(take, events)
    }

    #[test]
    fn text_thoughts_calls_and_usage_are_put_together() {
        let (steps, answer) = read(&[
            r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":2,"output_tokens":1}}}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hello"}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"1}"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
            r#"{"type":"message_stop"}"#,
        ])
        .expect("an answer");
        assert_eq!(steps[6], Step::Text("Hello".to_owned()));
        assert_eq!(steps.last(), Some(&Step::End));
        assert_eq!(
            answer.usage,
            Some(Usage {
                input: 7,
                output: 9
            })
        );
        assert_eq!(
            answer.message.content,
            [
                Block::Thinking {
                    thinking: "hm".to_owned(),
                    signature: Some("s".to_owned()),
                },
                Block::Text {
                    text: "Hello".to_owned(),
                },
                Block::ToolCall {
                    id: "c".to_owned(),
                    name: "f".to_owned(),
                    arguments: json!({"a": 1}),
                },
            ]
        );
        assert_eq!(answer.message.stop_reason.as_deref(), Some("toolUse"));
    }

    #[test]
    fn what_is_no_event_of_this_protocol_is_an_error_and_never_a_panic() {
        for (data, is_error) in [
            ("no", true),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"secret"}}"#,
                true,
            ),
            ("null", false),
            (r#"{"type":"content_block_start"}"#, true),
            (r#"{"type":"content_block_start","index":0}"#, false),
            (r#"{"type":"later_kind"}"#, false),
        ] {
            let read = read(&[data]);
            assert_eq!(read.is_err(), is_error, "{data}");
            if let Err(error) = read {
                assert!(!format!("{error} {error:?}").contains("secret"));
            }
        }
        let mixed = read(&[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{"}}"#,
        ]);
        assert!(matches!(mixed, Err(ModelError::Strange(_))));
    }

    #[test]
    fn a_request_is_what_the_protocol_says() {
        let messages = [
            Message {
                role: Role::Assistant,
                content: vec![Block::ToolCall {
                    id: "c".to_owned(),
                    name: "f".to_owned(),
                    arguments: json!("no object"),
                }],
                stop_reason: None,
            },
            Message {
                role: Role::ToolResult,
                content: vec![Block::ToolOutput {
                    call_id: "c".to_owned(),
                    text: "out".to_owned(),
                    is_error: true,
                }],
                stop_reason: None,
            },
        ];
        let prompt = Prompt {
            system: "be brief",
            messages: &messages,
            tools: &[],
            max_tokens: 9,
        };
        assert_eq!(
            body("m", &prompt),
            json!({
                "model": "m",
                "max_tokens": 9,
                "stream": true,
                "system": "be brief",
                "messages": [
                    {"role": "assistant", "content": [
                        {"type": "tool_use", "id": "c", "name": "f", "input": {}},
                    ]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "c", "content": "out",
                         "is_error": true},
                    ]},
                ],
            })
        );
    }
}
