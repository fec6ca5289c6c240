//! What a hook answers its program: what the turn takes, as context of the prompt. The same
//! bytes for the same things.

use serde::Serialize;
use tidings_protocol::session_api::{TurnBegun, TurnMessage};

/// The answer. Codex refuses one with a member that it does not know.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    hook_specific_output: Output<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Output<'a> {
    hook_event_name: &'a str,
    additional_context: String,
}

/// The answer to an event of this name; `None` where there is nothing to say.
pub(super) fn answer(event_name: &str, turn: &TurnBegun) -> Option<String> {
    let notices = turn.notices.iter().map(|notice| notice.text.clone());
    let messages = turn.messages.iter().map(message);
    let parts: Vec<String> = notices.chain(messages).collect();
    if parts.is_empty() {
        return None;
    }
    let answer = Answer {
        hook_specific_output: Output {
            hook_event_name: event_name,
            additional_context: parts.join("\n"),
        },
    };
    serde_json::to_string(&answer).ok()
}

/// What a program is woken with: the notices, said not to be the error that the program takes
/// a waking hook for; `None` where there is none.
pub(super) fn news(turn: &TurnBegun) -> Option<String> {
    let notices: Vec<&str> = turn.notices.iter().map(|notice| &*notice.text).collect();
    (!notices.is_empty()).then(|| format!("News by tidings, no error: {}", notices.join("\n")))
}

/// Who sent a message, and below that what it says.
fn message(message: &TurnMessage) -> String {
    let TurnMessage {
        id, sender, body, ..
    } = message;
    match sender {
        Some(sender) => format!(
            "Message {id} from session \"{sender}\" (to answer: sessions_send sessionKey \
             \"{sender}\"):\n{body}"
        ),
        None => format!("Message {id} from the operator:\n{body}"),
    }
}

#[cfg(test)]
mod tests {
    use tidings_protocol::SessionKey;
    use tidings_protocol::session_api::Notice;

    use super::*;

    #[test]
    fn notices_come_first_and_then_the_messages_with_their_senders() {
        let key = SessionKey::parse("agent:main:t").expect("key");
        let message = |id, sender| TurnMessage {
            id,
            sender,
            body: "Please\n\"rebase\".".to_owned(),
            sent_at: 0,
        };
        let turn = TurnBegun {
            token: None,
            notices: vec![Notice {
                target: key.clone(),
                text: "Session … changed.".to_owned(),
                changes_since: 1,
            }],
            messages: vec![message(7, Some(key)), message(8, None)],
        };
        assert_eq!(
            answer("UserPromptSubmit", &turn).expect("an answer"),
            "{\"hookSpecificOutput\":{\"hookEventName\":\"UserPromptSubmit\",\
             \"additionalContext\":\"Session … changed.\\n\
             Message 7 from session \\\"agent:main:t\\\" (to answer: sessions_send sessionKey \
             \\\"agent:main:t\\\"):\\nPlease\\n\\\"rebase\\\".\\n\
             Message 8 from the operator:\\nPlease\\n\\\"rebase\\\".\"}}"
        );
    }

    #[test]
    fn nothing_to_take_is_no_answer_and_no_news() {
        assert_eq!(answer("UserPromptSubmit", &TurnBegun::default()), None);
        assert_eq!(news(&TurnBegun::default()), None);
    }
}
