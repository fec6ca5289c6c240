//! What a person can ask for in chat, beside talking.

/// Longer instructions for a summary are cut.
const MAX_INSTRUCTIONS_BYTES: usize = 4 * 1024;

/// What a person asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatCommand {
    /// `/status`: how the session stands.
    Status,
    /// `/new`: another conversation, and what is said in it first, where that follows.
    New(Option<String>),
    /// `/reset`: the same.
    Reset(Option<String>),
    /// `/compact [instructions]`: a summary in the place of the conversation, and what it is to
    /// dwell on.
    Compact(Option<String>),
}

impl ChatCommand {
    /// The command that a message is; `None` for one that only talks.
    #[must_use]
    pub fn parse(message: &str) -> Option<Self> {
        let message = message.trim().strip_prefix('/')?;
        let end = message
            .find(|c: char| c.is_whitespace() || c == ':')
            .unwrap_or(message.len());
        let (name, rest) = message.split_at(end);
        let rest = rest.strip_prefix(':').unwrap_or(rest).trim();
        let rest = (!rest.is_empty()).then(|| rest.to_owned());
        match name.to_ascii_lowercase().as_str() {
            "status" if rest.is_none() => Some(Self::Status),
            "new" => Some(Self::New(rest)),
            "reset" => Some(Self::Reset(rest)),
            "compact" => Some(Self::Compact(rest.map(cut))),
            _ => None,
        }
    }
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_INSTRUCTIONS_BYTES));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_first_word_of_a_message_in_whatever_case() {
        let some = |text: &str| Some(text.to_owned());
        for (message, command) in [
            ("/status", ChatCommand::Status),
            (" /STATUS \n", ChatCommand::Status),
            ("/new", ChatCommand::New(None)),
            ("/new good morning", ChatCommand::New(some("good morning"))),
            ("/Reset", ChatCommand::Reset(None)),
            ("/compact", ChatCommand::Compact(None)),
            (
                "/compact keep the\nport numbers ",
                ChatCommand::Compact(some("keep the\nport numbers")),
            ),
            (
                "/compact: decisions",
                ChatCommand::Compact(some("decisions")),
            ),
        ] {
            assert_eq!(ChatCommand::parse(message), Some(command), "{message}");
        }
        for talk in [
            "",
            "/",
            "status",
            "/statusx",
            "/status please",
            "/newer",
            "/ new",
            "see /compact",
            "//new",
        ] {
            assert_eq!(ChatCommand::parse(talk), None, "{talk}");
        }
    }

    #[test]
    fn instructions_have_a_limit() {
        let long = format!("/compact {}", "é".repeat(5_000));
        let Some(ChatCommand::Compact(Some(cut))) = ChatCommand::parse(&long) else {
            panic!("a command");
        };
        assert_eq!(cut.len(), MAX_INSTRUCTIONS_BYTES);
    }
}
