//! What a scripted model says, as the events of each protocol.

use serde_json::{Value, json};

use super::Say;

/// A text comes in pieces of so many characters.
const PIECE: usize = 7;

fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(PIECE).map(String::from_iter).collect()
}

/// One event on the wire.
fn event(name: Option<&str>, data: &str) -> String {
    match name {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

/// The events of OpenAI's chat completions.
pub(super) fn openai(say: &Say) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        let chunk = json!({
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        });
        event(None, &chunk.to_string())
    };
    let mut events = vec![chunk(
        json!({"role": "assistant", "content": ""}),
        Value::Null,
    )];
    events.extend(
        pieces(&say.text)
            .into_iter()
            .map(|piece| chunk(json!({"content": piece}), Value::Null)),
    );
    for (number, (tool, arguments)) in say.calls.iter().enumerate() {
        let id = format!("call_{}_{number}", fingerprint(tool, arguments));
        let function = json!({"name": tool, "arguments": ""});
        let call = json!({"index": number, "id": id, "type": "function", "function": function});
        events.push(chunk(json!({"tool_calls": [call]}), Value::Null));
        for piece in pieces(&arguments.to_string()) {
            let call = json!({"index": number, "function": {"arguments": piece}});
            events.push(chunk(json!({"tool_calls": [call]}), Value::Null));
        }
    }
    let finish = if say.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    events.push(chunk(json!({}), finish.into()));
    if let Some((input, output)) = say.usage {
        let usage = json!({
            "prompt_tokens": input,
            "completion_tokens": output,
            "total_tokens": input + output,
        });
        let chunk = json!({"id": "chatcmpl-1", "choices": [], "usage": usage});
        events.push(event(None, &chunk.to_string()));
    }
    events.push(event(None, "[DONE]"));
    events
}

/// The events of Anthropic's messages.
pub(super) fn anthropic(say: &Say) -> Vec<String> {
    let named = |value: Value| {
        let name = value["type"].as_str().expect("a name").to_owned();
        event(Some(&name), &value.to_string())
    };
    let input = say
        .usage
        .map(|(input, _)| json!({"input_tokens": input, "output_tokens": 1}));
    let message = json!({"id": "msg_1", "role": "assistant", "content": [], "usage": input});
    let mut events = vec![
        named(json!({"type": "message_start", "message": message})),
        named(json!({"type": "ping"})),
    ];
    let mut block = |index: usize, begin: Value, deltas: Vec<Value>| {
        events.push(named(
            json!({"type": "content_block_start", "index": index, "content_block": begin}),
        ));
        events.extend(deltas.into_iter().map(|delta| {
            named(json!({"type": "content_block_delta", "index": index, "delta": delta}))
        }));
        events.push(named(json!({"type": "content_block_stop", "index": index})));
    };
    let mut index = 0;
    if !say.text.is_empty() {
        let deltas = pieces(&say.text)
            .into_iter()
            .map(|piece| json!({"type": "text_delta", "text": piece}));
        block(index, json!({"type": "text", "text": ""}), deltas.collect());
        index += 1;
    }
    for (tool, arguments) in &say.calls {
        let id = format!("toolu_{}_{index}", fingerprint(tool, arguments));
        let begin = json!({"type": "tool_use", "id": id, "name": tool, "input": {}});
        let deltas = pieces(&arguments.to_string())
            .into_iter()
            .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
        block(index, begin, deltas.collect());
        index += 1;
    }
    let reason = if say.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    };
    let output = say
        .usage
        .map(|(_, output)| json!({"output_tokens": output}));
    events.push(named(json!({
        "type": "message_delta",
        "delta": {"stop_reason": reason},
        "usage": output,
    })));
    events.push(named(json!({"type": "message_stop"})));
    events
}

/// An error in the middle of an answer.
pub(super) fn broken(is_anthropic: bool) -> String {
    let error = json!({"type": "overloaded_error", "message": "as was said"});
    if is_anthropic {
        event(
            Some("error"),
            &json!({"type": "error", "error": error}).to_string(),
        )
    } else {
        event(None, &json!({"error": error}).to_string())
    }
}

/// Tells one call from another: a provider's ids never come twice in a conversation by chance.
fn fingerprint(tool: &str, arguments: &Value) -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let length = u64::try_from(tool.len() + arguments.to_string().len()).unwrap_or(0);
    CALLS.fetch_add(1, Ordering::Relaxed) * 1_000 + length % 1_000
}
