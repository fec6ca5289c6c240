//! Calls of tools and their results.

use std::collections::{BTreeMap, BTreeSet};

use super::{Block, Mended, Message, Role};

const NO_RESULT: &str = "No result of this call was recorded.";

/// Puts the results of each call right behind it: one for each, and none without a call.
pub(super) fn mend(messages: Vec<Message>, mended: &mut Mended) -> Vec<Message> {
    let mut results = results(&messages);
    let mut called = BTreeSet::new();
    let mut paired = Vec::with_capacity(messages.len());
    for mut message in messages {
        if message.role == Role::ToolResult {
            // Whatever else stands beside a result is said by nobody but the person.
            message.role = Role::User;
        }
        // A call that is made twice under one id is made once.
        message.content.retain(|block| match block {
            Block::ToolCall { id, .. } => called.insert(id.clone()),
            Block::ToolOutput { .. } => false,
            _ => true,
        });
        let calls: Vec<String> = message.calls().collect();
        if !message.content.is_empty() {
            paired.push(message);
        }
        let outputs = calls.into_iter().map(|id| {
            if let Some(mut found) = results.remove(&id) {
                mended.stray_results += found.len() - 1;
                found.swap_remove(0)
            } else {
                mended.missing_results += 1;
                missing(id)
            }
        });
        paired.extend(outputs.map(result_message));
    }
    mended.stray_results += results.values().map(Vec::len).sum::<usize>();
    paired
}

/// The results of each call, in order.
fn results(messages: &[Message]) -> BTreeMap<String, Vec<Block>> {
    let mut results: BTreeMap<String, Vec<Block>> = BTreeMap::new();
    for block in messages.iter().flat_map(|message| &message.content) {
        if let Block::ToolOutput { call_id, .. } = block {
            results
                .entry(call_id.clone())
                .or_default()
                .push(block.clone());
        }
    }
    results
}

fn missing(call_id: String) -> Block {
    Block::ToolOutput {
        call_id,
        text: NO_RESULT.to_owned(),
        is_error: true,
    }
}

fn result_message(output: Block) -> Message {
    Message {
        role: Role::ToolResult,
        content: vec![output],
        stop_reason: None,
    }
}
