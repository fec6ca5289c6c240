//! What ends a conversation, or the session itself.

use tidings_protocol::report::LinkId;
use tidings_protocol::{EpochMs, Host};

use super::State;
use super::address::SessionAddress;
use super::audit::{AuditAction, operator_did};
use super::cursors::{cursors_where, move_cursor};
use super::effect::Effect;
use super::ended::{Fate, conversation_ends};
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::random;
use super::sessions::entries_changed;
use super::signals::repeat_of;
use super::sql::{number, parsed};
use super::turns::turn_runs;
use crate::upstream::trust::is_adopted;

/// What a reset did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResetSession {
    /// The transcript that continues the session now; `None` for one without an entry.
    pub session_id: Option<String>,
    /// How many watches of the session ended.
    pub watches_ended: u64,
}

/// A conversation that is to end because time passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollOver {
    /// Its session.
    pub session: SessionAddress,
    /// Which one it is, in which no turn may run; `None` for whichever stands, however it does.
    pub session_id: Option<String>,
    /// The dedupe key of the message that comes: one that was recorded before ends nothing.
    pub dedupe_key: Option<String>,
}

impl RollOver {
    /// Whichever conversation stands is to end.
    pub fn of(session: SessionAddress) -> Self {
        Self {
            session,
            session_id: None,
            dedupe_key: None,
        }
    }
}

impl State {
    /// A new conversation because somebody asked for one: removes the cursors that the
    /// session holds, and gives its entry a fresh session id (an adopted one keeps its
    /// thread).
    pub async fn reset_session(&self, session: SessionAddress) -> Result<ResetSession, StateError> {
        let fresh_id = random::session_id()?;
        self.write(Priority::Interactive, move |tx| {
            reset(tx, &session, &fresh_id)
        })
        .await
    }

    /// A new conversation because time passed: keeps the session's cursors, and drops what
    /// they had pending. Answers how many notices were dropped; `None` where the conversation
    /// goes on, because it is another by now, a turn runs in it, or the message came before.
    pub async fn roll_over_session(&self, roll_over: RollOver) -> Result<Option<u64>, StateError> {
        let fresh_id = random::session_id()?;
        self.write(Priority::Interactive, move |tx| {
            if goes_on(tx, &roll_over)? {
                return Ok(None);
            }
            let dropped = drop_pending(tx, &roll_over.session)?;
            renew_session_id(tx, &roll_over.session, &fresh_id)?;
            Ok(Some(dropped))
        })
        .await
    }

    /// Lets a conversation go on beyond its end, which came at `ended_at`, for one message.
    /// False where it did so before since that end.
    pub async fn keep_conversation(
        &self,
        session: SessionAddress,
        session_id: String,
        ended_at: EpochMs,
    ) -> Result<bool, StateError> {
        self.write(Priority::Interactive, move |tx| {
            let Some(number) = tx.find_session(&session)? else {
                return Ok(false);
            };
            let kept = tx.execute(
                "INSERT INTO kept_conversations (session, session_id, kept_at)
                 VALUES (?1, ?2, ?3)
                 ON CONFLICT DO UPDATE SET session_id = excluded.session_id,
                    kept_at = excluded.kept_at
                 WHERE session_id <> excluded.session_id OR kept_at < ?4",
                (number, &session_id, tx.now(), ended_at),
            )?;
            Ok(kept > 0)
        })
        .await
    }

    /// Removes a session with everything that is its own. Only its head stays, so that a
    /// session made anew under the key reports its gap. False where there was nothing.
    pub async fn delete_session(&self, session: SessionAddress) -> Result<bool, StateError> {
        self.write(Priority::Interactive, move |tx| {
            let was_there = delete_leaving_archive(tx, &session)?;
            if was_there {
                operator_did(tx, AuditAction::DeleteSession, session.to_string())?;
            }
            Ok(was_there)
        })
        .await
    }
}

fn goes_on(tx: &mut Tx<'_>, roll_over: &RollOver) -> OpResult<bool> {
    let Some(number) = tx.find_session(&roll_over.session)? else {
        return Ok(false);
    };
    let standing: Option<String> = tx.row(
        "SELECT session_id FROM entries WHERE session = ?1",
        [number],
        |row| row.get(0),
    )?;
    if roll_over.session_id.is_none() {
        return Ok(false);
    }
    if roll_over.session_id != standing {
        return Ok(true);
    }
    let is_repeat = match &roll_over.dedupe_key {
        Some(dedupe_key) => repeat_of(tx, number, dedupe_key)?.is_some(),
        None => false,
    };
    Ok(is_repeat || turn_runs(tx, number)?)
}

/// What a session's cursors have pending is of the conversation before.
fn drop_pending(tx: &mut Tx<'_>, session: &SessionAddress) -> OpResult<u64> {
    let Some(watcher) = tx.find_key(session.key())? else {
        return Ok(0);
    };
    let pending = cursors_where(
        tx,
        "SELECT target, watcher, last_seen, notified, material FROM cursors
         WHERE watcher = ?1 AND notified > last_seen",
        [watcher],
    )?;
    for row in &pending {
        move_cursor(tx, row, row.cursor.rolled_over())?;
    }
    Ok(pending.len() as u64)
}

fn reset(tx: &mut Tx<'_>, session: &SessionAddress, fresh_id: &str) -> OpResult<ResetSession> {
    let watches_ended = match tx.find_key(session.key())? {
        Some(watcher) if session.key().is_agent_qualified() => {
            tx.execute("DELETE FROM cursors WHERE watcher = ?1", [watcher])?
        }
        _ => 0,
    };
    renew_session_id(tx, session, fresh_id)?;
    let session_id = match tx.find_session(session)? {
        Some(number) => tx.row(
            "SELECT session_id FROM entries WHERE session = ?1",
            [number],
            |row| row.get(0),
        )?,
        None => None,
    };
    Ok(ResetSession {
        session_id,
        watches_ended: watches_ended as u64,
    })
}

/// A fresh session id for the entry, where its transcript is here.
fn renew_session_id(tx: &mut Tx<'_>, session: &SessionAddress, fresh_id: &str) -> OpResult<()> {
    if is_adopted(session.key()) {
        return Ok(());
    }
    let Some(number) = tx.find_session(session)? else {
        return Ok(());
    };
    conversation_ends(tx, session, number, Fate::Reset)?;
    let renewed = tx.execute(
        "UPDATE entries SET session_id = ?2, session_file = NULL, session_started_at = ?3,
                            context_tokens = NULL, context_tokens_estimated = NULL,
                            memory_flush_compaction_count = NULL,
                            updated_at = ?3
         WHERE session = ?1",
        (number, fresh_id, tx.now()),
    )?;
    if renewed > 0 {
        entries_changed(tx, session);
    }
    Ok(())
}

/// Removes a session as [`delete`] does; its transcript stays among the archives.
pub(crate) fn delete_leaving_archive(tx: &mut Tx<'_>, session: &SessionAddress) -> OpResult<bool> {
    if let Some(number) = tx.find_session(session)? {
        conversation_ends(tx, session, number, Fate::Deleted)?;
    }
    delete(tx, session)
}

/// Removes a session with everything that is its own, its head excepted.
pub(crate) fn delete(tx: &mut Tx<'_>, session: &SessionAddress) -> OpResult<bool> {
    let watched = end_watches_of(tx, session)?;
    let Some(number) = tx.find_session(session)? else {
        return Ok(watched);
    };
    let mut removed = unlink(tx, number)? || watched;
    if tx.execute("DELETE FROM entries WHERE session = ?1", [number])? > 0 {
        removed = true;
        entries_changed(tx, session);
    }
    for sql in [
        "DELETE FROM events WHERE session = ?1",
        "DELETE FROM messages WHERE target = ?1",
        "DELETE FROM cursors WHERE target = ?1",
        "DELETE FROM running_turns WHERE session = ?1",
        "DELETE FROM run_sessions WHERE session = ?1",
        "DELETE FROM kept_conversations WHERE session = ?1",
        "DELETE FROM leases WHERE session = ?1",
    ] {
        removed |= tx.execute(sql, [number])? > 0;
    }
    // Its goal, its label, the messages that waited.
    tx.erased();
    tx.execute(
        "UPDATE sessions SET pruned_sequence = last_sequence WHERE id = ?1",
        [number],
    )?;
    Ok(removed)
}

/// Removes the cursors that a session holds. It may hold some without ever having had an
/// event or an entry itself: a parent that only spawned.
pub(crate) fn end_watches_of(tx: &mut Tx<'_>, session: &SessionAddress) -> OpResult<bool> {
    if !session.key().is_agent_qualified() {
        return Ok(false);
    }
    let Some(watcher) = tx.find_key(session.key())? else {
        return Ok(false);
    };
    let ended = tx.execute("DELETE FROM cursors WHERE watcher = ?1", [watcher])?;
    tx.execute("DELETE FROM watchers WHERE watcher = ?1", [watcher])?;
    Ok(ended > 0)
}

/// Removes the session's link, where it has one, and tells its node.
pub(crate) fn unlink(tx: &mut Tx<'_>, session: i64) -> OpResult<bool> {
    let link = tx.row(
        "SELECT id, host FROM links WHERE session = ?1",
        [session],
        |row| Ok((LinkId(number(row, 0)?), parsed(row, 1, Host::parse)?)),
    )?;
    let Some((link, host)) = link else {
        return Ok(false);
    };
    tx.execute("DELETE FROM links WHERE session = ?1", [session])?;
    tx.tell(Effect::LinkRemoved { host, link });
    Ok(true)
}
