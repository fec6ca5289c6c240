//! OpenAI's chat completions, as most servers speak them.

use serde_json::{Value, json};

use super::draft::{Draft, Part, Step};
use super::error::{ModelError, Refusal};
use super::sse::Event;
use super::{Prompt, Tool, Usage};
use crate::sessions::hygiene::{Block, Message, Role};

/// What stands at the end of a stream.
const DONE: &str = "[DONE]";
/// The place of text in a draft; calls stand behind it.
const TEXT: u64 = 0;
/// Calls have numbers of their provider's; more than this is no number of a call.
const MAX_CALLS: u64 = 255;

/// The body of a request.
pub(super) fn body(model: &str, prompt: &Prompt<'_>) -> Value {
    let system = json!({"role": "system", "content": prompt.system});
    let messages: Vec<Value> = std::iter::once(system)
        .filter(|_| !prompt.system.is_empty())
        .chain(prompt.messages.iter().flat_map(messages))
        .collect();
    let mut body = json!({
        "model": model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if !prompt.tools.is_empty() {
        body["tools"] = prompt.tools.iter().map(tool).collect();
    }
    body
}

fn tool(tool: &Tool) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    })
}

fn messages(message: &Message) -> Vec<Value> {
    match message.role {
        Role::Assistant => vec![assistant(message)],
        Role::User | Role::ToolResult => {
            let results = message.content.iter().filter_map(result);
            let said: Vec<Value> = message.content.iter().filter_map(said).collect();
            let said = (!said.is_empty()).then(|| json!({"role": "user", "content": said}));
            results.chain(said).collect()
        }
    }
}

fn result(block: &Block) -> Option<Value> {
    match block {
        Block::ToolOutput { call_id, text, .. } => {
            Some(json!({"role": "tool", "tool_call_id": call_id, "content": text}))
        }
        _ => None,
    }
}

fn said(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => Some(json!({"type": "text", "text": text})),
        Block::Image { data, mime_type } => Some(json!({
            "type": "image_url",
            "image_url": {"url": format!("data:{mime_type};base64,{data}")},
        })),
        _ => None,
    }
}

fn assistant(message: &Message) -> Value {
    let texts = message.content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n\n");
    let calls: Vec<Value> = message.content.iter().filter_map(call).collect();
    let mut said = json!({
        "role": "assistant",
        "content": if text.is_empty() { Value::Null } else { text.into() },
    });
    if !calls.is_empty() {
        said["tool_calls"] = calls.into();
    }
    said
}

fn call(block: &Block) -> Option<Value> {
    let Block::ToolCall {
        id,
        name,
        arguments,
    } = block
    else {
        return None;
    };
    let arguments = match arguments {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    Some(json!({
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }))
}

/// Takes one event of a stream.
pub(super) fn take(draft: &mut Draft, event: &Event) -> Result<Step, ModelError> {
    if event.data.trim() == DONE {
        return Ok(Step::End);
    }
    let value: Value = serde_json::from_str(&event.data)
        .map_err(|_| ModelError::Strange("an event that is no JSON"))?;
    if value.get("error").is_some_and(|error| !error.is_null()) {
        return Err(ModelError::Refused(Refusal::of(None, event.data.clone())));
    }
    if let Some(usage) = usage(&value["usage"]) {
        draft.usage = Some(usage);
    }
    let choice = &value["choices"][0];
    if let Some(reason) = choice["finish_reason"].as_str() {
        draft.stop_reason = Some(if reason == "length" { "length" } else { "stop" });
    }
    let delta = &choice["delta"];
    for call in delta["tool_calls"].as_array().into_iter().flatten() {
        take_call(draft, call)?;
    }
    match delta["content"].as_str() {
        None | Some("") => Ok(Step::Quiet),
        Some(text) => {
            draft.count(text.len())?;
            if let Part::Text(all) = draft.part(TEXT, || Part::Text(String::new()))? {
                all.push_str(text);
            }
            Ok(Step::Text(text.to_owned()))
        }
    }
}

fn take_call(draft: &mut Draft, call: &Value) -> Result<(), ModelError> {
    let number = call["index"].as_u64().unwrap_or(0);
    if number > MAX_CALLS {
        return Err(ModelError::TooMuch("256 calls"));
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (id, name) = (text(&call["id"]), text(&call["function"]["name"]));
    let arguments = text(&call["function"]["arguments"]);
    draft.count(id.len() + name.len() + arguments.len())?;
    let new = || Part::Call(String::new(), String::new(), String::new());
    if let Part::Call(all_id, all_name, all_arguments) = draft.part(TEXT + 1 + number, new)? {
        // The id comes once, or again and again the same; so does the name.
        if all_id.is_empty() {
            *all_id = id;
        }
        if all_name.is_empty() {
            *all_name = name;
        }
        all_arguments.push_str(&arguments);
    }
    Ok(())
}

fn usage(value: &Value) -> Option<Usage> {
    Some(Usage {
        input: value["prompt_tokens"].as_u64()?,
        output: value["completion_tokens"].as_u64().unwrap_or(0),
    })
}

/// True where a stream that ended without its mark has ended all the same: some servers leave
/// the mark out.
pub(super) fn is_whole(draft: &Draft) -> bool {
    draft.stop_reason.is_some()
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
    fn text_calls_and_usage_are_put_together() {
        let (steps, answer) = read(&[
            r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"delta":{"content":"Hel"}}]}"#,
            r#"{"choices":[{"delta":{"content":"lo"},"finish_reason":null}],"usage":null}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}},{"index":1,"id":"d","function":{"name":"g","arguments":"no"}}]}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}"#,
            "[DONE]",
        ])
        .expect("an answer");
        assert_eq!(steps[1], Step::Text("Hel".to_owned()));
        assert_eq!(steps.last(), Some(&Step::End));
        assert_eq!(
            answer.usage,
            Some(Usage {
                input: 7,
                output: 3
            })
        );
        let call = |id: &str, name: &str, arguments| Block::ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments,
        };
        let text = "Hello".to_owned();
        assert_eq!(
            answer.message,
            Message {
                role: Role::Assistant,
                content: vec![
                    Block::Text { text },
                    call("c", "f", json!({"a": 1})),
                    call("d", "g", json!("no")),
                ],
                stop_reason: Some("toolUse".to_owned()),
            }
        );
    }

    #[test]
    fn what_is_no_event_of_this_protocol_is_an_error_and_never_a_panic() {
        for (data, is_error) in [
            ("", true),
            ("no", true),
            (r#"{"error":{"message":"secret"}}"#, true),
            ("null", false),
            ("[]", false),
            (r#"{"choices":null}"#, false),
            (
                r#"{"choices":[{"delta":{"tool_calls":[{"index":9999}]}}]}"#,
                true,
            ),
            (r#"{"choices":[{"delta":{"tool_calls":[7]}}]}"#, false),
        ] {
            let read = read(&[data]);
            assert_eq!(read.is_err(), is_error, "{data}");
            if let Err(error) = read {
                assert!(!format!("{error} {error:?}").contains("secret"));
            }
        }
    }

    #[test]
    fn a_request_is_what_the_protocol_says_and_a_summary_has_no_tools() {
        let call = Block::ToolCall {
            id: "c".to_owned(),
            name: "f".to_owned(),
            arguments: json!({"a": 1}),
        };
        let text = |text: &str| Block::Text {
            text: text.to_owned(),
        };
        let message = |role, content| Message {
            role,
            content,
            stop_reason: None,
        };
        let output = Block::ToolOutput {
            call_id: "c".to_owned(),
            text: "out".to_owned(),
            is_error: false,
        };
        let image = Block::Image {
            data: "AA==".to_owned(),
            mime_type: "image/png".to_owned(),
        };
        let messages = [
            message(Role::User, vec![text("look"), image]),
            message(Role::Assistant, vec![call]),
            message(Role::ToolResult, vec![output]),
        ];
        let tools = [Tool {
            name: "f",
            description: "does f",
            parameters: json!({"type": "object"}),
        }];
        let prompt = Prompt {
            system: "be brief",
            messages: &messages,
            tools: &tools,
            max_tokens: 9,
        };
        let sent = body("m", &prompt);
        assert_eq!(
            sent["messages"],
            json!([
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                ]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c", "type": "function",
                     "function": {"name": "f", "arguments": "{\"a\":1}"}},
                ]},
                {"role": "tool", "tool_call_id": "c", "content": "out"},
            ])
        );
        assert_eq!(sent["tools"][0]["function"]["name"], "f");
        let summary = body(
            "m",
            &Prompt {
                tools: &[],
                ..prompt
            },
        );
        assert_eq!(summary.get("tools"), None);
    }
}
