//! Queued messages: stored for a session, handed out at its turn, in order. The text is
//! erased once its delivery is confirmed.

use std::fmt;

use rusqlite::Row;
use tidings_protocol::session_api::Watched;
use tidings_protocol::signal::Payload;
use tidings_protocol::{Actor, EpochMs, SessionKey, SignalKind};

use super::State;
use super::address::SessionAddress;
use super::changes::{Found, find};
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::inputs::spoken_in;
use super::random;
use super::sessions::ensure_entry;
use super::signals::{NewSignal, Prepared, record};
use super::sql::{number, parsed_opt, uint};
use super::watches::add_watch;

/// The longest message, in bytes: it fits a frame with room for the rest.
pub const MAX_MESSAGE_BYTES: usize = 128 * 1024;
/// How many messages one turn takes, at most.
const MAX_TURN_MESSAGES: i64 = 100;
/// How many messages wait for one session, at most: at their largest, 128 MB of the
/// database for a session that takes no turns.
pub const MAX_WAITING_MESSAGES: u64 = 1_000;
/// The channel by which an operator speaks to a session.
const OPERATOR_CHANNEL: &str = "cli";

/// A message that a turn takes.
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

/// A message to send.
#[derive(Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// The session it is for; it must exist.
    pub target: SessionAddress,
    /// The session that sends it; `None` for an operator, who is a human.
    pub sender: Option<SessionAddress>,
    /// What it says.
    pub body: String,
    /// Whether the sender watches the target from then on.
    pub watch: Watching,
    /// Sends only while this transcript continues the target.
    pub expected_session_id: Option<String>,
}

impl fmt::Debug for NewMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewMessage")
            .field("target", &self.target)
            .field("sender", &self.sender)
            .field("watch", &self.watch)
            .finish_non_exhaustive()
    }
}

/// Whether a sender watches whom it sends to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Watching {
    /// It does not, by this.
    #[default]
    Unchanged,
    /// From the moment the message is dispatched.
    FromDispatch,
}

/// A message that was dispatched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatched {
    /// Its id.
    pub message: u64,
    /// Whether the sender watches, where that was asked for.
    pub watched: Option<Watched>,
}

/// A message with what is made before the transaction.
struct ReadyMessage {
    message: NewMessage,
    sender_id: String,
}

impl State {
    /// Queues a message for a session's next turn, records it where a human sent it and
    /// somebody watches, and registers the sender's watch behind that.
    pub async fn send(&self, message: NewMessage) -> Result<Dispatched, StateError> {
        check_text("a message", &message.body)?;
        let ready = ReadyMessage {
            message,
            sender_id: random::session_id()?,
        };
        self.write(Priority::Interactive, move |tx| send(tx, &ready))
            .await
    }
}

fn send(tx: &mut Tx<'_>, ready: &ReadyMessage) -> OpResult<Dispatched> {
    let message = &ready.message;
    let target = &message.target;
    let number = existing(tx, target)?;
    check_conversation(tx, number, message)?;
    check_room(tx, number, target)?;
    if let Some(sender) = &message.sender {
        ensure_entry(tx, sender, &ready.sender_id)?;
    }
    let sender = message.sender.as_ref().map(SessionAddress::key);
    let id = enqueue(tx, number, sender, &message.body)?;
    if sender.is_none() {
        let signal = NewSignal {
            payload: Payload {
                channel: Some(OPERATOR_CHANNEL.to_owned()),
                ..Payload::default()
            },
            ..NewSignal::new(target.clone(), SignalKind::HumanDirectMessage, Actor::Human)
        };
        record(tx, &Prepared::new(signal)?)?;
        spoken_in(tx, target, number, tx.now())?;
    }
    let watched = match (message.watch, sender) {
        (Watching::Unchanged, _) => None,
        (Watching::FromDispatch, Some(sender)) => {
            Some(add_watch(tx, sender, target, &ready.sender_id)?)
        }
        (Watching::FromDispatch, None) => Some(Watched {
            watched: false,
            from_version: None,
            reason: Some("only a session watches, and none sent this".to_owned()),
        }),
    };
    Ok(Dispatched {
        message: id,
        watched,
    })
}

/// The number of a session that exists.
pub(crate) fn existing(tx: &Tx<'_>, session: &SessionAddress) -> OpResult<i64> {
    let found = find(tx.conn(), session)?.filter(Found::exists);
    let found = found.ok_or_else(|| StateError::UnknownSession(session.to_string()))?;
    Ok(found.number)
}

fn check_conversation(tx: &Tx<'_>, target: i64, message: &NewMessage) -> OpResult<()> {
    let Some(expected) = &message.expected_session_id else {
        return Ok(());
    };
    let current: Option<String> = tx.row(
        "SELECT session_id FROM entries WHERE session = ?1",
        [target],
        |row| row.get(0),
    )?;
    if current.as_ref() == Some(expected) {
        Ok(())
    } else {
        Err(StateError::OtherConversation(message.target.to_string()).into())
    }
}

/// Refuses a text that is empty or longer than a message may be.
pub(crate) fn check_text(what: &str, text: &str) -> Result<(), StateError> {
    if text.trim().is_empty() {
        return Err(StateError::invalid(format!("{what} must say something")));
    }
    if text.len() > MAX_MESSAGE_BYTES {
        return Err(StateError::invalid(format!(
            "{what} has at most {MAX_MESSAGE_BYTES} bytes, this one {}",
            text.len()
        )));
    }
    Ok(())
}

/// Refuses one more message where too many wait already.
pub(crate) fn check_room(tx: &Tx<'_>, target: i64, session: &SessionAddress) -> OpResult<()> {
    let waiting = tx.row(
        "SELECT count(*) FROM messages WHERE target = ?1 AND delivered_at IS NULL",
        [target],
        |row| number(row, 0),
    )?;
    if waiting.unwrap_or(0) >= MAX_WAITING_MESSAGES {
        return Err(StateError::QueueFull(session.to_string()).into());
    }
    Ok(())
}

/// Stores a message for a session's next turn; answers its id.
pub(crate) fn enqueue(
    tx: &mut Tx<'_>,
    target: i64,
    sender: Option<&SessionKey>,
    body: &str,
) -> OpResult<u64> {
    let sender = match sender {
        Some(sender) => Some(tx.key(sender)?),
        None => None,
    };
    tx.execute(
        "INSERT INTO messages (target, sender, body, sent_at) VALUES (?1, ?2, ?3, ?4)",
        (target, sender, body, tx.now()),
    )?;
    Ok(uint(tx.last_row()))
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
