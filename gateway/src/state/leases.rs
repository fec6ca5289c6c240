//! Leases: what a turn holds until it confirms or releases it, or half an hour has passed.

use rusqlite::Connection;
use tidings_protocol::{EpochMs, SessionKey};

use super::State;
use super::cursors::{CursorRow, cursors_where};
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::messages::QueuedMessage;
use super::notices::Pending;
use super::room::Room;
use super::sql::{int, number};
use super::turns::{TurnSettled, TurnToken};
use crate::awareness::retention::MAX_CLOCK_DISAGREEMENT_MS;

/// How long a turn may hold what it took before it becomes available again.
pub const LEASE_MS: EpochMs = 30 * 60 * 1_000;

impl State {
    /// Makes available again what expired leases hold. Answers when the next one expires.
    /// Writes nothing while none has.
    pub async fn expire_leases(&self) -> Result<Option<EpochMs>, StateError> {
        let now = self.inner.clock.now();
        let next = self.read(move |conn| Ok(next_expiry(conn, now)?)).await?;
        if next.is_none_or(|next| next > now) {
            return Ok(next);
        }
        self.write(Priority::Interactive, |tx| {
            let expired: Vec<i64> = tx.rows(
                "SELECT id FROM leases
                 WHERE closed_at IS NULL AND (expires_at <= ?1 OR expires_at > ?2)",
                (tx.now(), latest_expiry(tx.now())),
                |row| row.get(0),
            )?;
            for lease in expired {
                close_lease(tx, lease)?;
            }
            Ok(next_expiry(tx.conn(), tx.now())?)
        })
        .await
    }
}

/// No lease that is taken now ends later than this, whatever clocks may disagree: one that
/// does was taken under a clock that has been set back since, and would hold what it took for
/// as long as that clock was ahead.
fn latest_expiry(now: EpochMs) -> EpochMs {
    now.saturating_add(LEASE_MS)
        .saturating_add(MAX_CLOCK_DISAGREEMENT_MS)
}

fn next_expiry(conn: &Connection, now: EpochMs) -> rusqlite::Result<Option<EpochMs>> {
    conn.prepare_cached(
        "SELECT min(CASE WHEN expires_at > ?2 THEN ?1 ELSE expires_at END) FROM leases
         WHERE closed_at IS NULL",
    )?
    .query_row((now, latest_expiry(now)), |row| row.get(0))
}

/// True while a turn of the session holds something under a lease that is open.
pub(crate) fn has_open_lease(tx: &Tx<'_>, session: i64) -> rusqlite::Result<bool> {
    tx.prepare(
        "SELECT 1 FROM leases AS lease
         WHERE lease.session = ?1 AND lease.closed_at IS NULL AND lease.expires_at > ?2
           AND (EXISTS (SELECT 1 FROM cursors WHERE lease = lease.id)
             OR EXISTS (SELECT 1 FROM messages WHERE lease = lease.id))",
    )?
    .exists((session, tx.now()))
}

/// A lease to open.
pub(crate) struct NewLease {
    /// What the turn has to show for it.
    pub(crate) token: TurnToken,
    /// The prompt whose hook takes it, empty where the program names none; `None` for a turn
    /// that no hook began.
    pub(crate) hook_prompt: Option<String>,
    /// How much it takes.
    pub(crate) room: Room,
}

impl NewLease {
    /// Of a turn that confirms by its token.
    pub(crate) fn of_turn(token: TurnToken) -> Self {
        Self {
            token,
            hook_prompt: None,
            room: Room::Turn,
        }
    }
}

/// What a lease is opened over.
pub(crate) struct Taken<'a> {
    pub(crate) pending: &'a [Pending],
    pub(crate) messages: &'a [QueuedMessage],
}

/// Opens a lease over what a turn takes, and forgets those that nothing names any more.
pub(crate) fn open_lease(
    tx: &Tx<'_>,
    session: i64,
    new: &NewLease,
    taken: &Taken<'_>,
) -> OpResult<()> {
    tx.execute(
        "INSERT INTO leases (token, session, leased_at, expires_at, hook_prompt)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        (
            new.token.0,
            session,
            tx.now(),
            tx.now().saturating_add(LEASE_MS),
            &new.hook_prompt,
        ),
    )?;
    let lease = tx.last_row();
    for Pending { row, .. } in taken.pending {
        tx.execute(
            "UPDATE cursors SET lease = ?3 WHERE target = ?1 AND watcher = ?2",
            (row.target, row.watcher, lease),
        )?;
    }
    for message in taken.messages {
        tx.execute(
            "UPDATE messages SET lease = ?2 WHERE id = ?1",
            (int(message.id), lease),
        )?;
    }
    forget_ended_leases(tx)
}

/// Ends a lease without a confirmation, and wakes whoever has its notices to take again.
pub(crate) fn close_lease(tx: &mut Tx<'_>, lease: i64) -> OpResult<TurnSettled> {
    end_lease(tx, lease)?;
    let mut settled = TurnSettled::default();
    for (row, target) in leased_cursors(tx, lease)? {
        settled.notices += 1;
        let watcher = tx.key_text(row.watcher)?;
        tx.wake(watcher, target);
    }
    let messages = tx.row(
        "SELECT count(*) FROM messages WHERE lease = ?1",
        [lease],
        |row| number(row, 0),
    )?;
    settled.messages = messages.unwrap_or(0);
    Ok(settled)
}

/// Ends a lease without a confirmation, for whoever takes what it held at once.
pub(crate) fn end_lease(tx: &Tx<'_>, lease: i64) -> rusqlite::Result<()> {
    tx.execute(
        "UPDATE leases SET closed_at = ?2 WHERE id = ?1",
        (lease, tx.now()),
    )?;
    Ok(())
}

/// The cursors whose pending notice a lease handed out last.
pub(crate) fn leased_cursors(
    tx: &mut Tx<'_>,
    lease: i64,
) -> OpResult<Vec<(CursorRow, SessionKey)>> {
    let rows = cursors_where(
        tx,
        "SELECT target, watcher, last_seen, notified, material FROM cursors WHERE lease = ?1",
        [lease],
    )?;
    let mut leased = Vec::with_capacity(rows.len());
    for row in rows {
        let target = session_key_of(tx, row.target)?;
        leased.push((row, target));
    }
    Ok(leased)
}

fn session_key_of(tx: &mut Tx<'_>, session: i64) -> OpResult<SessionKey> {
    let key = tx
        .prepare("SELECT key FROM sessions WHERE id = ?1")?
        .query_row([session], |row| row.get(0))?;
    Ok(tx.key_text(key)?)
}

/// Leases that ended and that nothing names any more.
fn forget_ended_leases(tx: &Tx<'_>) -> OpResult<()> {
    tx.execute(
        "DELETE FROM leases
         WHERE (closed_at IS NOT NULL OR expires_at <= ?1)
           AND NOT EXISTS (SELECT 1 FROM cursors WHERE lease = leases.id)
           AND NOT EXISTS (SELECT 1 FROM messages WHERE lease = leases.id)",
        [tx.now()],
    )?;
    Ok(())
}
