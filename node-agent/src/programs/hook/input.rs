//! What a program hands to its hooks: one JSON object on standard input. Only what decides is
//! read from it; prompts, tools and their results are passed over.

use std::io::{self, Read};

use serde::Deserialize;
use serde::de::IgnoredAny;
use tidings_protocol::ThreadId;
use tidings_protocol::session_api::{CompactionTrigger, HookEvent, HookMoment};

/// The longest input, in bytes: the result of a tool may be in it.
pub(super) const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// The longest of the short texts that are passed on, in bytes.
const MAX_TEXT_BYTES: usize = 512;

/// Why there is no event.
#[derive(Debug, thiserror::Error)]
pub(super) enum InputError {
    /// The input cannot be read.
    #[error("standard input cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is too long.
    #[error("standard input has more than {MAX_BYTES} bytes")]
    TooLong,
    /// It is not one JSON object, or one whose members cannot be told apart.
    #[error("standard input is no JSON object as programs hand to their hooks")]
    NoObject,
    /// It names no conversation.
    #[error("standard input has no session_id that could be one")]
    NoThread,
}

/// How a conversation began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// With its program.
    Startup,
    /// In place of one that was cleared away.
    Clear,
    /// Resumed, forked, compacted, or in a way that is not known yet.
    Other,
}

/// The members that decide, whatever else there is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct HookInput {
    hook_event_name: Member,
    session_id: Member,
    prompt: Member,
    prompt_id: Member,
    turn_id: Member,
    agent_id: Member,
    agent_type: Member,
    source: Member,
    trigger: Member,
    reason: Member,
}

/// A text; anything else counts as nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
enum Member {
    Text(String),
    Other(IgnoredAny),
    #[default]
    Missing,
}

impl Member {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Other(_) | Self::Missing => None,
        }
    }

    /// One that is passed on: not empty, not long, one line.
    fn short(&self) -> Option<String> {
        let text = self.text()?;
        let fits =
            (1..=MAX_TEXT_BYTES).contains(&text.len()) && !text.chars().any(char::is_control);
        fits.then(|| text.to_owned())
    }
}

impl HookInput {
    /// Reads it to its end: a program may not expect that nobody reads on.
    pub(super) fn read(mut stream: impl Read) -> Result<Self, InputError> {
        let mut text = Vec::new();
        (&mut stream).take(MAX_BYTES + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MAX_BYTES {
            io::copy(&mut stream, &mut io::sink())?;
            return Err(InputError::TooLong);
        }
        let object = text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        if !object {
            return Err(InputError::NoObject);
        }
        serde_json::from_slice(&text).map_err(|_| InputError::NoObject)
    }

    /// The event's name, as the program gave it.
    pub(super) fn name(&self) -> &str {
        self.hook_event_name.text().unwrap_or_default()
    }

    /// The conversation.
    pub(super) fn thread(&self) -> Result<ThreadId, InputError> {
        let id = self.session_id.text().ok_or(InputError::NoThread)?;
        ThreadId::parse(id).map_err(|_| InputError::NoThread)
    }

    /// True for an event that comes from inside a sub-agent.
    pub(super) fn is_in_subagent(&self) -> bool {
        self.agent_id.text().is_some()
    }

    /// True where this text stands in the prompt already: a program that was woken with it
    /// hands it to its hooks as a prompt, some with its quotes written as entities.
    pub(super) fn prompt_has(&self, text: &str) -> bool {
        let prompt = self.prompt.text().unwrap_or_default();
        prompt.contains(text) || prompt.contains(&text.replace('"', "&quot;"))
    }

    /// How it began.
    pub(super) fn source(&self) -> Source {
        match self.source.text() {
            Some("startup") => Source::Startup,
            Some("clear") => Source::Clear,
            _ => Source::Other,
        }
    }

    /// What it means; `None` for an event that nothing is done for.
    pub(super) fn event(&self) -> Option<HookEvent> {
        let moment = match self.name() {
            "SessionStart" => HookMoment::SessionStart,
            "SessionEnd" if self.reason.text() == Some("clear") => HookMoment::SessionCleared,
            "UserPromptSubmit" => HookMoment::UserPromptSubmit,
            "PreToolUse" => HookMoment::PreToolUse,
            "PostToolUse" => HookMoment::PostToolUse,
            "Stop" => HookMoment::Stop,
            "StopFailure" => HookMoment::StopFailure,
            "SubagentStart" => HookMoment::SubagentStart,
            "SubagentStop" => HookMoment::SubagentStop,
            "PostCompact" => HookMoment::PostCompact,
            _ => return None,
        };
        Some(HookEvent {
            moment,
            prompt_id: self.prompt_id.short().or_else(|| self.turn_id.short()),
            agent_id: self.agent_id.short(),
            agent_type: self.agent_type.short(),
            lease: None,
            trigger: match self.trigger.text() {
                Some("manual") => CompactionTrigger::Manual,
                _ => CompactionTrigger::Automatic,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<HookInput, InputError> {
        HookInput::read(text.as_bytes())
    }

    #[test]
    fn only_what_decides_is_read_and_anything_else_may_be_there() {
        let input = read(
            r#" {"session_id":"s-1","transcript_path":null,"cwd":"/w","permission_mode":"default",
               "hook_event_name":"PostCompact","prompt_id":"p-1","trigger":"manual","effort":
               {"level":"high"},"compact_summary":"…","of_tomorrow":[[{"a":1}]],"agent_id":7}"#,
        );
        let input = input.expect("an input");
        assert_eq!(input.thread().expect("a thread").as_str(), "s-1");
        let event = input.event().expect("an event");
        assert_eq!(
            event,
            HookEvent {
                prompt_id: Some("p-1".to_owned()),
                trigger: CompactionTrigger::Manual,
                ..HookEvent::new(HookMoment::PostCompact)
            }
        );
    }

    #[test]
    fn a_prompt_that_holds_a_text_already_is_known_by_it() {
        let line = r#"Session "a" changed."#;
        for (prompt, has) in [
            (
                r#"<task-notification>\nx: Session \"a\" changed.\n</task-notification>"#,
                true,
            ),
            ("Session &quot;a&quot; changed.", true),
            (r#"Session \"ab\" changed."#, false),
            ("", false),
        ] {
            let input = read(&format!(r#"{{"prompt":"{prompt}"}}"#)).expect("an input");
            assert_eq!(input.prompt_has(line), has, "{prompt}");
        }
        assert!(!read("{\"prompt\":7}").expect("an input").prompt_has(line));
    }

    #[test]
    fn codex_calls_a_prompt_a_turn() {
        let input = read(r#"{"hook_event_name":"Stop","session_id":"s","turn_id":"t-9"}"#);
        let event = input.expect("an input").event().expect("an event");
        assert_eq!(event.prompt_id.as_deref(), Some("t-9"));
    }

    #[test]
    fn an_event_that_nothing_is_done_for_is_none() {
        for (name, reason) in [
            ("Notification", ""),
            ("SessionEnd", "logout"),
            ("OfTomorrow", ""),
            ("", ""),
        ] {
            let text = format!(r#"{{"hook_event_name":"{name}","reason":"{reason}"}}"#);
            assert_eq!(read(&text).expect("an input").event(), None, "{name}");
        }
        let cleared = read(r#"{"hook_event_name":"SessionEnd","reason":"clear"}"#);
        let event = cleared.expect("an input").event().expect("an event");
        assert_eq!(event.moment, HookMoment::SessionCleared);
    }

    #[test]
    fn what_is_no_object_is_a_named_error_that_repeats_nothing() {
        for text in [
            "",
            "[]",
            "null",
            "secret words",
            "{\"a\":",
            "{\"session_id\":\"a\",\"session_id\":\"b\"}",
        ] {
            let error = read(text).expect_err(text);
            assert!(matches!(error, InputError::NoObject), "{text}");
            assert!(!error.to_string().contains("secret"));
        }
        for id in ["", "a\\nb"] {
            let input = read(&format!(r#"{{"session_id":"{id}"}}"#)).expect("an input");
            assert!(matches!(input.thread(), Err(InputError::NoThread)));
        }
        assert!(matches!(
            read("{}").expect("an input").thread(),
            Err(InputError::NoThread)
        ));
    }

    #[test]
    fn an_input_without_an_end_is_read_away_up_to_its_end_and_refused() {
        let endless = io::repeat(b' ').take(MAX_BYTES + 5_000);
        assert!(matches!(HookInput::read(endless), Err(InputError::TooLong)));
    }

    #[test]
    fn a_text_that_is_too_long_to_be_an_id_counts_as_none() {
        let id = "i".repeat(MAX_TEXT_BYTES + 1);
        let input = read(&format!(
            r#"{{"hook_event_name":"Stop","prompt_id":"{id}","agent_id":""}}"#
        ));
        let event = input.expect("an input").event().expect("an event");
        assert_eq!((event.prompt_id, event.agent_id), (None, None));
    }
}
