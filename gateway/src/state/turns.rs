//! A session's turn: takes its notices and messages, and confirms or releases them.

use std::fmt;

use tidings_protocol::EpochMs;
use tidings_protocol::digest::{hex, unhex};
use tidings_protocol::report::MAX_ECHO_DIGESTS;
use tidings_protocol::session_api::{Notice, RunEnd};

use super::State;
use super::address::SessionAddress;
use super::cron::end_cron_run;
use super::cursors::confirm;
use super::deliveries::{links_of_thread, note_deliveries};
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::leases::{NewLease, Taken, close_lease, has_open_lease, leased_cursors, open_lease};
use super::messages::{QueuedMessage, available_messages};
use super::notices::{Pending, available_cursors};
use super::random;
use super::sessions::ensure_entry;
use crate::awareness::notice::notice;

/// How long a turn runs at most, as far as anybody waits for its end.
pub(crate) const TURN_MS: EpochMs = 30 * 60 * 1_000;

/// What a turn has to show to confirm or release what it took.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TurnToken(pub(crate) [u8; 16]);

/// What a turn took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnBegun {
    /// The lease over all of it; `None` where there was nothing, or nothing new while an
    /// earlier lease is open.
    pub token: Option<TurnToken>,
    /// The notices, by target.
    pub notices: Vec<Notice>,
    /// The messages, in the order they were sent.
    pub messages: Vec<QueuedMessage>,
}

/// What a confirmation or release applied to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnSettled {
    /// Notices.
    pub notices: u64,
    /// Messages.
    pub messages: u64,
}

impl TurnToken {
    /// Reads a token as it was written.
    pub fn parse(text: &str) -> Option<Self> {
        Some(Self(unhex(text)?.try_into().ok()?))
    }
}

impl fmt::Display for TurnToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for TurnToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TurnToken(…)")
    }
}

impl State {
    /// Begins a turn: leases the notices and messages of the session, and of every other
    /// session that continues the same upstream thread. What is handed out to such a thread
    /// is known to its links before the answer: no more than they remember.
    pub async fn turn_begin(&self, speaker: SessionAddress) -> Result<TurnBegun, StateError> {
        let fresh_id = random::session_id()?;
        let token = TurnToken(random::bytes()?);
        let new = NewLease::of_turn(token);
        self.write(Priority::Interactive, move |tx| {
            mark_turn(tx, &speaker, &fresh_id)?;
            take(tx, &speaker, &new)
        })
        .await
    }

    /// Confirms what a turn took. Late is not too late, but for what was handed out again.
    pub async fn turn_confirm(&self, token: TurnToken) -> Result<TurnSettled, StateError> {
        self.write(Priority::Interactive, move |tx| confirm_turn(tx, token))
            .await
    }

    /// Gives back what a turn took.
    pub async fn turn_release(&self, token: TurnToken) -> Result<TurnSettled, StateError> {
        self.write(Priority::Interactive, move |tx| {
            let lease = tx.row(
                "SELECT id FROM leases WHERE token = ?1 AND closed_at IS NULL",
                [token.0],
                |row| row.get(0),
            )?;
            match lease {
                Some(lease) => close_lease(tx, lease),
                None => Ok(TurnSettled::default()),
            }
        })
        .await
    }

    /// Ends a turn, and with it the run of a cron job whose session it is. False where none
    /// was running.
    pub async fn turn_end(&self, session: SessionAddress) -> Result<bool, StateError> {
        self.write(Priority::Interactive, move |tx| {
            let Some(number) = tx.find_session(&session)? else {
                return Ok(false);
            };
            let ended = tx.execute("DELETE FROM running_turns WHERE session = ?1", [number])? > 0;
            end_cron_run(tx, &session, None, RunEnd::Completed.as_str())?;
            Ok(ended)
        })
        .await
    }
}

/// True while a turn of the session runs. One that nobody ends is over after half an hour.
pub(crate) fn turn_runs(tx: &Tx<'_>, session: i64) -> OpResult<bool> {
    let runs = tx
        .prepare("SELECT 1 FROM running_turns WHERE session = ?1 AND began_at > ?2")?
        .exists((session, tx.now().saturating_sub(TURN_MS)))?;
    Ok(runs)
}

/// A session that a turn speaks for.
struct Speaker {
    session: i64,
    /// Its key's number, where it can hold cursors.
    watcher: i64,
}

/// Says that a turn of the session runs, and that whoever it speaks for is active.
pub(crate) fn mark_turn(tx: &mut Tx<'_>, speaker: &SessionAddress, fresh_id: &str) -> OpResult<()> {
    ensure_entry(tx, speaker, fresh_id)?;
    let session = tx.session(speaker)?;
    tx.execute(
        "INSERT INTO running_turns (session, began_at) VALUES (?1, ?2)
         ON CONFLICT (session) DO UPDATE SET began_at = ?2",
        (session, tx.now()),
    )?;
    for speaker in speakers(tx, session)? {
        tx.execute(
            "INSERT INTO watchers (watcher, active_at)
             SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM cursors WHERE watcher = ?1)
             ON CONFLICT (watcher) DO UPDATE SET active_at = max(active_at, ?2)",
            (speaker.watcher, tx.now()),
        )?;
    }
    Ok(())
}

/// Takes what is available to the session, and to every other one that continues the same
/// upstream thread, under a new lease; nothing while an earlier lease is open.
pub(crate) fn take(
    tx: &mut Tx<'_>,
    speaker: &SessionAddress,
    new: &NewLease,
) -> OpResult<TurnBegun> {
    let session = tx.session(speaker)?;
    let mut pending = Vec::new();
    let mut messages = Vec::new();
    for speaker in &speakers(tx, session)? {
        if has_open_lease(tx, speaker.session)? {
            return Ok(TurnBegun::default());
        }
        pending.extend(available_cursors(tx, speaker.watcher)?);
        messages.extend(available_messages(tx, speaker.session)?);
    }
    messages.sort_by_key(|message| message.id);
    new.room.cut(&mut pending, &mut messages);
    let links = links_of_thread(tx, session)?;
    if !links.is_empty() {
        messages.truncate(MAX_ECHO_DIGESTS);
    }
    if pending.is_empty() && messages.is_empty() {
        return Ok(TurnBegun::default());
    }
    open_lease(
        tx,
        session,
        new,
        &Taken {
            pending: &pending,
            messages: &messages,
        },
    )?;
    note_deliveries(tx, &links, &messages)?;
    Ok(TurnBegun {
        token: Some(new.token),
        notices: lines(pending),
        messages,
    })
}

/// What a turn is told, by target. Two sessions of one thread that have the same to say
/// say it once.
fn lines(mut pending: Vec<Pending>) -> Vec<Notice> {
    pending.sort_by(|a, b| a.target.cmp(&b.target));
    pending.dedup_by_key(|pending| (pending.row.target, pending.row.cursor.last_seen()));
    pending
        .iter()
        .map(|pending| notice(&pending.target, pending.row.cursor.last_seen()))
        .collect()
}

/// The session itself, and every other one that continues the same upstream thread.
fn speakers(tx: &Tx<'_>, session: i64) -> OpResult<Vec<Speaker>> {
    let speakers = tx.rows(
        "SELECT session.id, session.key FROM sessions AS session
         WHERE session.id = ?1 OR session.id IN (
             SELECT other.session FROM links AS own
             JOIN links AS other ON other.host = own.host AND other.catalog = own.catalog
                                AND other.thread_id = own.thread_id
             WHERE own.session = ?1)",
        [session],
        |row| {
            Ok(Speaker {
                session: row.get(0)?,
                watcher: row.get(1)?,
            })
        },
    )?;
    Ok(speakers)
}

fn confirm_turn(tx: &mut Tx<'_>, token: TurnToken) -> OpResult<TurnSettled> {
    let lease = tx.row("SELECT id FROM leases WHERE token = ?1", [token.0], |row| {
        row.get::<_, i64>(0)
    })?;
    match lease {
        Some(lease) => confirm_lease(tx, lease),
        None => Ok(TurnSettled::default()),
    }
}

/// Confirms what a lease still stands on, and ends it.
pub(crate) fn confirm_lease(tx: &mut Tx<'_>, lease: i64) -> OpResult<TurnSettled> {
    let mut settled = TurnSettled::default();
    for (row, target) in leased_cursors(tx, lease)? {
        // The lease names the notice that was handed out, else it would not stand here.
        if confirm(tx, &row, row.cursor.notified(), &target)? {
            settled.notices += 1;
        }
    }
    let delivered = tx.execute(
        "UPDATE messages SET body = NULL, delivered_at = ?2, lease = NULL WHERE lease = ?1",
        (lease, tx.now()),
    )?;
    settled.messages = delivered as u64;
    if delivered > 0 {
        tx.erased();
    }
    tx.execute("DELETE FROM leases WHERE id = ?1", [lease])?;
    Ok(settled)
}
