//! The durable log: recording a signal, and reading signals back.

use rusqlite::{Connection, Row};
use tidings_protocol::session_api::{MAX_SIGNALS_PER_PAGE, Recorded, SignalRow, SignalWhy};
use tidings_protocol::signal::{Payload, Summary};
use tidings_protocol::{Actor, ActorType, EpochMs, SessionKey, SignalKind};

use super::State;
use super::address::SessionAddress;
use super::cursors::{EventMark, apply_event, cursors_on, seed_parent};
use super::engine::{OpResult, Priority, ReadError, Tx};
use super::error::StateError;
use super::evidence::read_evidence;
use super::sql::{conversion, int, named, number, parsed, parsed_opt, uint};
use crate::awareness::recording::{self, Watching};

/// The longest dedupe key and run id, in bytes: other people's ids, of any form.
pub const MAX_ID_BYTES: usize = 512;

/// A signal to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSignal {
    /// The session it is about.
    pub session: SessionAddress,
    /// What happened.
    pub kind: SignalKind,
    /// Who did it.
    pub actor: Actor,
    /// Whose cursor a `child_spawned` seeds; else the actor's.
    pub parent: Option<SessionKey>,
    /// The run it belongs to.
    pub run_id: Option<String>,
    /// When it happened; now where nobody knows.
    pub occurred_at: Option<EpochMs>,
    /// One line instead of the kind's own.
    pub summary: Option<Summary>,
    /// More, from a closed set.
    pub payload: Payload,
    /// Records once per session under this key.
    pub dedupe_key: Option<String>,
}

impl NewSignal {
    /// A signal of which only this is known.
    #[must_use]
    pub fn new(session: SessionAddress, kind: SignalKind, actor: Actor) -> Self {
        Self {
            session,
            kind,
            actor,
            parent: None,
            run_id: None,
            occurred_at: None,
            summary: None,
            payload: Payload::default(),
            dedupe_key: None,
        }
    }
}

/// A page of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignalsPage {
    /// Only of this key, whatever the agent.
    pub session: Option<SessionKey>,
    /// Only after this sequence.
    pub after: u64,
    /// How many, at most [`MAX_SIGNALS_PER_PAGE`].
    pub limit: u32,
}

impl State {
    /// Records a signal and moves the cursors of its watchers. Not recorded, and said why:
    /// a repeat of a dedupe key, and a human message to a session nobody watches.
    pub async fn record(&self, signal: NewSignal) -> Result<Recorded, StateError> {
        let signal = Prepared::new(signal)?;
        self.write(Priority::Interactive, move |tx| {
            Ok(record(tx, &signal)?.into())
        })
        .await
    }

    /// A page of the log, ascending.
    pub async fn signals(&self, page: SignalsPage) -> Result<Vec<SignalRow>, StateError> {
        self.read(move |conn| Ok(read_signals(conn, &page)?)).await
    }

    /// The smallest sequence that is still kept; `None` for an empty log.
    pub async fn oldest_signal(&self) -> Result<Option<u64>, StateError> {
        self.read(|conn| {
            let oldest = conn
                .prepare_cached("SELECT min(sequence) FROM events")?
                .query_row([], |row| row.get::<_, Option<i64>>(0))?;
            Ok(oldest.map(uint))
        })
        .await
    }

    /// Why a signal was recorded: evidence, turn by turn; none for a signal that no
    /// transcript caused.
    pub async fn signal_why(&self, sequence: u64) -> Result<SignalWhy, StateError> {
        self.read(move |conn| {
            let kept = conn
                .prepare_cached("SELECT 1 FROM events WHERE sequence = ?1")?
                .exists([int(sequence)])?;
            if !kept {
                return Err(ReadError::Refused(StateError::UnknownSignal(sequence)));
            }
            Ok(SignalWhy {
                sequence,
                evidence: read_evidence(conn, sequence)?,
            })
        })
        .await
    }
}

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recording {
    /// A new row of the log.
    New(u64),
    /// The row that it repeats.
    Repeat(u64),
    /// Nobody watches the session.
    Unwatched,
}

impl From<Recording> for Recorded {
    fn from(recording: Recording) -> Self {
        let (sequence, reason) = match recording {
            Recording::New(sequence) => (Some(sequence), None),
            Recording::Repeat(sequence) => (
                Some(sequence),
                Some("recorded before under this dedupe key".to_owned()),
            ),
            Recording::Unwatched => (None, Some("nobody watches this session".to_owned())),
        };
        Self {
            recorded: reason.is_none(),
            sequence,
            reason,
        }
    }
}

/// A signal as it will stand in the log, but for what the database decides.
pub(crate) struct Prepared {
    signal: NewSignal,
    summary: Summary,
    payload: Option<String>,
}

impl Prepared {
    pub(crate) fn new(mut signal: NewSignal) -> Result<Self, StateError> {
        check_id("dedupe key", signal.dedupe_key.as_deref())?;
        check_id("run id", signal.run_id.as_deref())?;
        signal.payload = recording::payload(signal.kind, signal.payload);
        let own = || Summary::of_kind(signal.kind, &signal.payload);
        let summary = signal.summary.take().unwrap_or_else(own);
        let payload = if signal.payload.is_empty() {
            None
        } else {
            let json = serde_json::to_string(&signal.payload)
                .map_err(|error| StateError::invalid(error.to_string()))?;
            Some(json)
        };
        Ok(Self {
            signal,
            summary,
            payload,
        })
    }
}

pub(crate) fn check_id(what: &str, id: Option<&str>) -> Result<(), StateError> {
    let Some(id) = id else { return Ok(()) };
    if id.is_empty() || id.len() > MAX_ID_BYTES || id.chars().any(char::is_control) {
        return Err(StateError::invalid(format!(
            "a {what} has 1 to {MAX_ID_BYTES} bytes without control characters"
        )));
    }
    Ok(())
}

/// Records a signal and moves the cursors of its watchers.
pub(crate) fn record(tx: &mut Tx<'_>, prepared: &Prepared) -> OpResult<Recording> {
    let signal = &prepared.signal;
    let known = tx.find_session(&signal.session)?;
    if let (Some(session), Some(dedupe_key)) = (known, &signal.dedupe_key)
        && let Some(sequence) = repeat_of(tx, session, dedupe_key)?
    {
        return Ok(Recording::Repeat(sequence));
    }
    let watching = match known {
        Some(session) => cursors_on(tx, session)?,
        None => Vec::new(),
    };
    let somebody = if watching.is_empty() {
        Watching::Nobody
    } else {
        Watching::Somebody
    };
    if !recording::is_recorded(signal.kind, somebody) {
        return Ok(Recording::Unwatched);
    }
    let session = match known {
        Some(session) => session,
        None => tx.session(&signal.session)?,
    };
    let actor = match signal.actor.id() {
        Some(key) => Some(tx.key(key)?),
        None => None,
    };
    let sequence = append(tx, prepared, session, actor)?;
    let event = EventMark {
        sequence,
        kind: signal.kind,
        actor,
        target: signal.session.key(),
    };
    apply_event(tx, &watching, &event)?;
    if signal.kind == SignalKind::ChildSpawned
        && let Some(parent) =
            recording::seeded_parent(signal.session.key(), signal.parent.as_ref(), &signal.actor)
    {
        seed_parent(tx, parent, session, sequence)?;
    }
    Ok(Recording::New(sequence))
}

/// The signal that one with this dedupe key would repeat.
pub(crate) fn repeat_of(
    tx: &Tx<'_>,
    session: i64,
    dedupe_key: &str,
) -> rusqlite::Result<Option<u64>> {
    tx.row(
        "SELECT sequence FROM events WHERE session = ?1 AND dedupe_key = ?2",
        (session, dedupe_key),
        |row| number(row, 0),
    )
}

/// Adds the row and raises the head.
fn append(tx: &mut Tx<'_>, prepared: &Prepared, session: i64, actor: Option<i64>) -> OpResult<u64> {
    let signal = &prepared.signal;
    tx.execute(
        "INSERT INTO events (session, kind, actor_type, actor, session_id, run_id, occurred_at,
                             recorded_at, summary, payload, dedupe_key)
         VALUES (?1, ?2, ?3, ?4, (SELECT session_id FROM entries WHERE session = ?1),
                 ?5, ?6, ?7, ?8, ?9, ?10)",
        (
            session,
            signal.kind.as_str(),
            signal.actor.actor_type().as_str(),
            actor,
            &signal.run_id,
            recording::occurred_at(signal.occurred_at, tx.now()),
            tx.now(),
            prepared.summary.as_str(),
            &prepared.payload,
            &signal.dedupe_key,
        ),
    )?;
    let sequence = tx.last_row();
    tx.execute(
        "UPDATE sessions SET last_sequence = ?2 WHERE id = ?1",
        (session, sequence),
    )?;
    tx.grew(uint(sequence));
    Ok(uint(sequence))
}

fn read_signals(conn: &Connection, page: &SignalsPage) -> rusqlite::Result<Vec<SignalRow>> {
    const COLUMNS: &str = "SELECT event.sequence, session_key.session_key, session.agent_id,
            event.kind, event.actor_type, actor.session_key, event.run_id, event.occurred_at,
            event.recorded_at, event.summary, event.payload
        FROM events AS event
        JOIN sessions AS session ON session.id = event.session
        JOIN session_keys AS session_key ON session_key.id = session.key
        LEFT JOIN session_keys AS actor ON actor.id = event.actor";
    let limit = page.limit.min(MAX_SIGNALS_PER_PAGE);
    let after = int(page.after);
    match &page.session {
        None => conn
            .prepare_cached(&format!(
                "{COLUMNS} WHERE event.sequence > ?1 ORDER BY event.sequence LIMIT ?2"
            ))?
            .query_map((after, limit), signal_row)?
            .collect(),
        // A key has a handful of agents at most, each with its own run of the index.
        Some(key) => conn
            .prepare_cached(&format!(
                "{COLUMNS}
                 WHERE event.session IN (
                     SELECT session.id FROM sessions AS session
                     JOIN session_keys AS session_key ON session_key.id = session.key
                     WHERE session_key.session_key = ?3)
                 AND event.sequence > ?1 ORDER BY event.sequence LIMIT ?2"
            ))?
            .query_map((after, limit, key.as_str()), signal_row)?
            .collect(),
    }
}

fn signal_row(row: &Row<'_>) -> rusqlite::Result<SignalRow> {
    Ok(SignalRow {
        sequence: number(row, 0)?,
        session_key: parsed(row, 1, SessionKey::parse)?,
        agent_id: row.get(2)?,
        kind: named(row, 3, SignalKind::parse)?,
        actor_type: named(row, 4, ActorType::parse)?,
        actor_id: row.get(5)?,
        run_id: row.get(6)?,
        occurred_at: row.get(7)?,
        recorded_at: row.get(8)?,
        summary: row.get(9)?,
        payload: payload_at(row, 10)?,
    })
}

/// The payload in a column.
pub(crate) fn payload_at(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Payload>> {
    parsed_opt(row, column, |json| serde_json::from_str(json)).map_err(|error| match error {
        // The text of a JSON error may repeat what stands in the column.
        rusqlite::Error::FromSqlConversionFailure(..) => conversion(column, UnreadablePayload),
        other => other,
    })
}

#[derive(Debug, thiserror::Error)]
#[error("a payload that this version cannot read")]
struct UnreadablePayload;
