//! Who speaks when.

use super::{Block, Mended, Message, Role, Turns};

/// What a person says where the model would have to speak first.
const BEGINNING: &str = "(the conversation goes on)";

/// Drops text that says nothing, and messages that nothing is left of.
pub(super) fn drop_empty(messages: &mut Vec<Message>, mended: &mut Mended) {
    for message in messages.iter_mut() {
        message.content.retain(|block| match block {
            Block::Text { text } => !text.trim().is_empty(),
            _ => true,
        });
    }
    let before = messages.len();
    messages.retain(|message| !message.content.is_empty());
    mended.empty += before - messages.len();
}

/// Brings people and model to speak by turns, where the provider wants that.
pub(super) fn order(messages: Vec<Message>, turns: Turns) -> Vec<Message> {
    if turns == Turns::Free {
        return messages;
    }
    let mut ordered: Vec<Message> = Vec::with_capacity(messages.len());
    if messages
        .first()
        .is_some_and(|first| first.role == Role::Assistant)
    {
        ordered.push(Message {
            role: Role::User,
            content: vec![Block::Text {
                text: BEGINNING.to_owned(),
            }],
            stop_reason: None,
        });
    }
    for message in messages {
        match ordered.last_mut() {
            // Results of one round of calls are one message, and so is what a person adds.
            Some(last) if speaker(last.role) == speaker(message.role) => {
                if last.role != message.role {
                    last.role = Role::User;
                }
                last.content.extend(message.content);
                last.stop_reason = message.stop_reason;
            }
            _ => ordered.push(message),
        }
    }
    ordered
}

#[derive(PartialEq, Eq)]
enum Speaker {
    Person,
    Model,
}

/// To such a provider a tool speaks as a person does.
fn speaker(role: Role) -> Speaker {
    match role {
        Role::User | Role::ToolResult => Speaker::Person,
        Role::Assistant => Speaker::Model,
    }
}
