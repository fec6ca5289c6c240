//! Reconciliation: one session's version, and what changed since another.

use rusqlite::{Connection, OptionalExtension, Row};
use tidings_protocol::session_api::{MAX_CHANGES, SessionStatus, StateChange, StateChanges};
use tidings_protocol::{ActorType, Host, SessionKey, SignalKind};

use super::State;
use super::address::SessionAddress;
use super::engine::{Priority, ReadError};
use super::error::StateError;
use super::notices::confirm_read;
use super::signals::payload_at;
use super::sql::{int, named, number, parsed};
use crate::upstream::trust::LinkStanding;
use tidings_protocol::report::LinkId;

/// Asks how a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusRead {
    /// The session.
    pub session: SessionAddress,
    /// Asks for what changed after this version.
    pub changes_since: Option<i64>,
    /// Who asks. A watcher that asks since what its leased notice names, or later, has
    /// read that notice.
    pub reader: Option<SessionKey>,
}

/// How a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusAnswer {
    /// The answer; `upstream` is left to whoever knows the node's presence.
    pub status: SessionStatus,
    /// The session's link, where it has one.
    pub link: Option<LinkStanding>,
}

impl State {
    /// A session's version, what changed since another (at most [`MAX_CHANGES`] events),
    /// and its link: all read in one transaction.
    pub async fn session_status(&self, read: StatusRead) -> Result<StatusAnswer, StateError> {
        let since = match read.changes_since.map(u64::try_from) {
            None => None,
            Some(Ok(since)) => Some(since),
            Some(Err(_)) => {
                return Err(StateError::invalid("changesSince must not be negative"));
            }
        };
        let (session, now) = (read.session.clone(), self.inner.clock.now());
        let asks = read.reader.zip(since);
        let reader = asks.clone();
        let (answer, leased) = self
            .read(move |conn| {
                let answer = read_status(conn, &session, since)?;
                let leased = match reader {
                    Some((reader, since)) => {
                        holds_leased_notice(conn, &reader, &session, since, now)?
                    }
                    None => false,
                };
                Ok((answer, leased))
            })
            .await?;
        if let (true, Some((reader, since))) = (leased, asks) {
            let target = read.session;
            self.write(Priority::Interactive, move |tx| {
                confirm_read(tx, &reader, &target, since)
            })
            .await?;
        }
        Ok(answer)
    }
}

/// A session as a reader finds it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) number: i64,
    pub(crate) head: u64,
    pub(crate) pruned: u64,
    /// Its smallest kept sequence.
    pub(crate) earliest: Option<u64>,
    pub(crate) has_entry: bool,
}

impl Found {
    /// A session exists when it has an entry or kept events.
    pub(crate) fn exists(&self) -> bool {
        self.has_entry || self.earliest.is_some()
    }
}

/// Looks for a session; one that was deleted may still have its head.
pub(crate) fn find(conn: &Connection, session: &SessionAddress) -> rusqlite::Result<Option<Found>> {
    conn.prepare_cached(
        "SELECT session.id, session.last_sequence, session.pruned_sequence,
                (SELECT min(sequence) FROM events WHERE session = session.id),
                EXISTS (SELECT 1 FROM entries WHERE session = session.id)
         FROM sessions AS session
         JOIN session_keys AS session_key ON session_key.id = session.key
         WHERE session_key.session_key = ?1 AND session.agent_id = ?2",
    )?
    .query_row((session.key().as_str(), session.agent().as_str()), |row| {
        Ok(Found {
            number: row.get(0)?,
            head: number(row, 1)?,
            pruned: number(row, 2)?,
            earliest: row.get::<_, Option<i64>>(3)?.map(super::sql::uint),
            has_entry: row.get(4)?,
        })
    })
    .optional()
}

fn read_status(
    conn: &Connection,
    session: &SessionAddress,
    since: Option<u64>,
) -> Result<StatusAnswer, ReadError> {
    let found = find(conn, session)?.filter(Found::exists);
    let found = found.ok_or_else(|| StateError::UnknownSession(session.to_string()))?;
    let state_changes = match since {
        Some(since) => Some(read_changes(conn, &found, since)?),
        None => None,
    };
    Ok(StatusAnswer {
        status: SessionStatus {
            session_key: session.key().clone(),
            state_version: found.head,
            upstream: None,
            state_changes,
        },
        link: read_standing(conn, found.number)?,
    })
}

fn read_changes(conn: &Connection, found: &Found, since: u64) -> rusqlite::Result<StateChanges> {
    let one_more = int(MAX_CHANGES as u64 + 1);
    let mut events: Vec<StateChange> = conn
        .prepare_cached(
            "SELECT event.sequence, event.kind, event.actor_type, actor.session_key,
                    event.run_id, event.occurred_at, event.summary, event.payload
             FROM events AS event
             LEFT JOIN session_keys AS actor ON actor.id = event.actor
             WHERE event.session = ?1 AND event.sequence > ?2
             ORDER BY event.sequence LIMIT ?3",
        )?
        .query_map((found.number, int(since), one_more), change)?
        .collect::<Result<_, _>>()?;
    let truncated = events.len() > MAX_CHANGES;
    events.truncate(MAX_CHANGES);
    let next_since = events
        .last()
        .filter(|_| truncated)
        .map(|event| event.sequence);
    let after_head = if found.head > 0 { found.head + 1 } else { 0 };
    Ok(StateChanges {
        events,
        truncated,
        next_since,
        earliest_available_sequence: found.earliest.unwrap_or(after_head),
        history_gap: since < found.pruned,
    })
}

fn change(row: &Row<'_>) -> rusqlite::Result<StateChange> {
    Ok(StateChange {
        sequence: number(row, 0)?,
        kind: named(row, 1, SignalKind::parse)?,
        actor_type: named(row, 2, ActorType::parse)?,
        actor_id: row.get(3)?,
        run_id: row.get(4)?,
        occurred_at: row.get(5)?,
        summary: row.get(6)?,
        payload: payload_at(row, 7)?,
    })
}

fn read_standing(conn: &Connection, session: i64) -> rusqlite::Result<Option<LinkStanding>> {
    conn.prepare_cached("SELECT id, host, last_report_at, blocked FROM links WHERE session = ?1")?
        .query_row([session], |row| {
            Ok(LinkStanding {
                link: LinkId(number(row, 0)?),
                host: parsed(row, 1, Host::parse)?,
                last_report_at: row.get(2)?,
                blocked: row.get(3)?,
            })
        })
        .optional()
}

/// True when the reader's turn holds the notice of this target, and asking since here says
/// that it has been read.
fn holds_leased_notice(
    conn: &Connection,
    reader: &SessionKey,
    target: &SessionAddress,
    since: u64,
    now: i64,
) -> rusqlite::Result<bool> {
    conn.prepare_cached(
        "SELECT 1 FROM cursors AS cursor
         JOIN session_keys AS watcher ON watcher.id = cursor.watcher
         JOIN sessions AS session ON session.id = cursor.target
         JOIN session_keys AS target ON target.id = session.key
         JOIN leases AS lease ON lease.id = cursor.lease
         WHERE watcher.session_key = ?1 AND target.session_key = ?2 AND session.agent_id = ?3
           AND cursor.last_seen <= ?4
           AND lease.closed_at IS NULL AND lease.expires_at > ?5",
    )?
    .exists((
        reader.as_str(),
        target.key().as_str(),
        target.agent().as_str(),
        int(since),
        now,
    ))
}
