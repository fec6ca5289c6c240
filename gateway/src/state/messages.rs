//! Queued messages: stored for a session, handed out at its turn, in order. The text is
//! erased once its delivery is confirmed.

use std::fmt;

use rusqlite::Row;
use tidings_protocol::{EpochMs, SessionKey};

use super::State;
use super::address::SessionAddress;
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::sql::{number, parsed_opt, uint};

/// The longest message, in bytes: it fits a frame with room for the rest.
pub const MAX_MESSAGE_BYTES: usize = 128 * 1024;
/// How many bytes of messages one turn takes, at most, but always one message: what a
/// frame carries. The rest waits for the next turn, in order.
const MAX_TURN_MESSAGE_BYTES: usize = 160 * 1024;
/// How many messages one turn takes, at most.
const MAX_TURN_MESSAGES: i64 = 100;

/// A message for a session's next turn.
#[derive(Clone, PartialEq, Eq)]
pub struct QueuedMessage {
    /// Its id: handed out again under the same one.
    pub id: u64,
    /// The session that sent it; `None` for an operator.
    pub sender: Option<SessionKey>,
    /// What it says.
    pub body: String,
    /// When it was sent.
    pub sent_at: EpochMs,
}

impl fmt::Debug for QueuedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuedMessage")
            .field("id", &self.id)
            .field("sender", &self.sender)
            .finish_non_exhaustive()
    }
}

impl State {
    /// Queues a message for a session's next turn; answers its id.
    pub async fn queue_message(
        &self,
        target: SessionAddress,
        sender: Option<SessionKey>,
        body: String,
    ) -> Result<u64, StateError> {
        if body.is_empty() || body.len() > MAX_MESSAGE_BYTES {
            return Err(StateError::invalid(format!(
                "a message has 1 to {MAX_MESSAGE_BYTES} bytes, this one {}",
                body.len()
            )));
        }
        self.write(Priority::Interactive, move |tx| {
            let target = tx.session(&target)?;
            let sender = match &sender {
                Some(sender) => Some(tx.key(sender)?),
                None => None,
            };
            tx.execute(
                "INSERT INTO messages (target, sender, body, sent_at) VALUES (?1, ?2, ?3, ?4)",
                (target, sender, &body, tx.now()),
            )?;
            Ok(uint(tx.last_row()))
        })
        .await
    }
}

/// The messages of a session that no open lease holds, in the order they were sent.
pub(crate) fn available_messages(tx: &Tx<'_>, target: i64) -> OpResult<Vec<QueuedMessage>> {
    let messages = tx.rows(
        "SELECT message.id, sender.session_key, message.body, message.sent_at
         FROM messages AS message
         LEFT JOIN session_keys AS sender ON sender.id = message.sender
         WHERE message.target = ?1 AND message.delivered_at IS NULL
           AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.id = message.lease
                           AND closed_at IS NULL AND expires_at > ?2)
         ORDER BY message.id LIMIT ?3",
        (target, tx.now(), MAX_TURN_MESSAGES),
        message_row,
    )?;
    Ok(messages)
}

fn message_row(row: &Row<'_>) -> rusqlite::Result<QueuedMessage> {
    Ok(QueuedMessage {
        id: number(row, 0)?,
        sender: parsed_opt(row, 1, SessionKey::parse)?,
        body: row.get(2)?,
        sent_at: row.get(3)?,
    })
}

/// Keeps the first messages that fit one answer.
pub(crate) fn cut_to_size(messages: &mut Vec<QueuedMessage>) {
    let mut room = MAX_TURN_MESSAGE_BYTES;
    let fitting = messages
        .iter()
        .take_while(|message| {
            let fits = message.body.len() <= room;
            room = room.saturating_sub(message.body.len());
            fits
        })
        .count();
    messages.truncate(fitting);
}
