//! The text of a user's message, and what the program put around it.

use std::borrow::Cow;

use super::super::{Value, Words};
use super::fields::Fields;

/// How texts begin that the program puts into the model's input by itself, in lower case.
const INJECTED: &[&str] = &[
    "# agents.md instructions",
    "<user_instructions>",
    "<environment_context>",
    "<extension_context>",
    "<skill>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<goal_context>",
    "<codex_internal_context",
    "<recommended_plugins>",
    "<instructions>",
];

const SHELL_COMMAND: &str = "<user_shell_command>";

/// How preambles begin that an editor or the desktop puts in front, and where they end.
const PREAMBLES: &[&str] = &[
    "# Context from my IDE setup:",
    "# Files mentioned by the user:",
];
const REQUEST: &str = "## My request for Codex:";

/// The parts of a message.
#[derive(Default)]
pub(super) struct Message<'a> {
    texts: Vec<Cow<'a, str>>,
    has_attachment: bool,
}

impl<'a> Message<'a> {
    /// The message of a `user_message` event.
    pub(super) fn of_event(fields: &Fields<'a>) -> Self {
        let mut message = Self::default();
        if let Some(text) = fields.payload().message.and_then(Value::text) {
            message.push(text);
        }
        message.has_attachment |= fields.has_images();
        message
    }

    /// The message in the content of an item: a string or an array of parts.
    pub(super) fn of_content(content: Option<Value<'a>>) -> Self {
        let mut message = Self::default();
        let Some(content) = content else {
            return message;
        };
        if let Some(text) = content.text() {
            message.push(text);
        }
        content.items(
            |part| match part.get("text").or(Some(part)).and_then(Value::text) {
                Some(text) => message.push(text),
                None => message.has_attachment = true,
            },
        );
        message
    }

    fn push(&mut self, text: Cow<'a, str>) {
        if is_image_wrapper(text.trim()) {
            self.has_attachment = true;
            return;
        }
        let begins = text.trim_start();
        if PREAMBLES
            .iter()
            .any(|preamble| begins.starts_with(preamble))
        {
            self.has_attachment = true;
            let request = text.find(REQUEST).map(|at| at + REQUEST.len());
            let request = request.map(|from| text[from..].to_owned());
            self.texts.extend(request.map(Cow::Owned));
        } else {
            self.texts.push(text);
        }
    }

    /// True when the program wrote it: the whole message is context if one part is.
    pub(super) fn is_injected(&self) -> bool {
        self.texts.iter().any(|text| is_injected_by_codex(text))
    }

    /// True for a shell line that a person typed.
    pub(super) fn is_shell_command(&self) -> bool {
        let first = self.texts.first();
        first.is_some_and(|text| starts_with(text.trim_start(), SHELL_COMMAND))
    }

    /// True when neither text nor anything else is in it.
    pub(super) fn is_empty(&self) -> bool {
        !self.has_attachment && self.words().is_empty()
    }

    pub(super) fn words(&self) -> Words {
        Words::of(&self.texts)
    }
}

/// True for a text that the program puts into the model's input by itself.
pub(crate) fn is_injected_by_codex(text: &str) -> bool {
    let begins = text.trim_start();
    INJECTED.iter().any(|marker| starts_with(begins, marker))
}

/// `<image name=…>` and `</image>` stand around an image as texts of their own.
fn is_image_wrapper(text: &str) -> bool {
    text == "</image>" || (text.starts_with("<image name=") && text.ends_with('>'))
}

/// True when `text` begins with `marker`, which is in lower case, in any case.
fn starts_with(text: &str, marker: &str) -> bool {
    let begin = text.as_bytes().get(..marker.len());
    begin.is_some_and(|begin| begin.eq_ignore_ascii_case(marker.as_bytes()))
}
