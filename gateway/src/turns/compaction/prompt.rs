//! The words in which a summary is asked for.

use std::fmt::Write as _;

use super::request::SummaryRequest;
use crate::sessions::hygiene::{Block, Message, Role};
use crate::sessions::transcript::fork::BYTES_PER_TOKEN;
use crate::turns::tokens;
use crate::turns::truncate::cut;

/// What becomes of names and numbers, whoever summarises.
pub const IDENTIFIER_POLICY: &str = "Keep every identifier exactly as it is written, never \
    shortened, guessed or reconstructed: ids, hashes, UUIDs, tokens of configuration, host names, \
    addresses, ports, URLs, file names and paths, versions, numbers of issues.";
/// The headings of a summary, in order.
pub const HEADINGS: [&str; 6] = [
    "## Goal",
    "## Constraints",
    "## Progress",
    "## Decisions",
    "## Open",
    "## Identifiers",
];
/// Of a tool's result this much is shown to whoever summarises.
const MAX_RESULT_BYTES: usize = 2_000;

/// What a summary has to be. `focus` is what somebody asked it to dwell on, `feedback` what was
/// wrong with the summary before.
#[must_use]
pub fn instructions(focus: Option<&str>, feedback: Option<&str>) -> String {
    let mut text = format!(
        "You summarise a conversation between a person and an agent, so that the agent can go on \
         with nothing but your summary. Do not continue the conversation and do not answer \
         questions in it: write the summary and nothing else, with these headings:\n\n\
         {}\n\n\
         Goal: what the person wants. Constraints: rules and preferences that were given. \
         Progress: what is done, what is under way, what stands in the way. Decisions: what was \
         decided, and why. Open: what the person asked last and is not answered yet, then the \
         next steps. Identifiers: those that are needed to go on. Say \"none\" under a heading \
         that has nothing.\n\n\
         Where there is an earlier summary, distil it again together with the new messages: one \
         summary, with what no longer matters left out.\n\n{IDENTIFIER_POLICY}",
        HEADINGS.join("\n")
    );
    if let Some(focus) = focus {
        let _ = write!(text, "\n\nDwell on this: {focus}");
    }
    if let Some(feedback) = feedback {
        let _ = write!(
            text,
            "\n\nThe summary before this one was not taken. {feedback}"
        );
    }
    text
}

/// The user message of a request, within its tokens.
pub(super) fn of_request(request: &SummaryRequest) -> String {
    let earlier = request
        .previous_summary
        .as_deref()
        .map(|summary| format!("<previous-summary>\n{summary}\n</previous-summary>\n\n"));
    let earlier = earlier.unwrap_or_default();
    let ask = "Summarise the conversation above, as you were instructed.";
    let beside = tokens::of_text(&request.instructions) + tokens::of_text(&earlier) + 64;
    // A chunk is shown whole, also where the instructions take most of a small window.
    let room = request.prompt_tokens.saturating_sub(beside);
    let room = room.max(request.prompt_tokens / 2);
    let room = usize::try_from(room.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX);
    let conversation = cut(&conversation(&request.messages), room);
    format!("{earlier}<conversation>\n{conversation}\n</conversation>\n\n{ask}")
}

/// A conversation as text.
fn conversation(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        for block in &message.content {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            write_block(&mut text, message.role, block);
        }
    }
    text
}

fn write_block(text: &mut String, role: Role, block: &Block) {
    let who = match role {
        Role::User | Role::ToolResult => "User",
        Role::Assistant => "Assistant",
    };
    // Writing into a string does not fail.
    let _ = match block {
        Block::Text { text: said } => write!(text, "[{who}]: {said}"),
        Block::Thinking { thinking, .. } => write!(text, "[{who} thinking]: {thinking}"),
        Block::Image { mime_type, .. } => write!(text, "[{who}]: [image {mime_type}]"),
        Block::ToolCall {
            name, arguments, ..
        } => {
            let arguments = cut(&arguments.to_string(), MAX_RESULT_BYTES);
            write!(text, "[{who} calls {name}]: {arguments}")
        }
        Block::ToolOutput {
            text: output,
            is_error,
            ..
        } => {
            let what = if *is_error {
                "Tool error"
            } else {
                "Tool result"
            };
            write!(text, "[{what}]: {}", cut(output, MAX_RESULT_BYTES))
        }
    };
}
