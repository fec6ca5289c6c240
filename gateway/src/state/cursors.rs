//! Cursors in the database: reading them, and writing what the decisions say.

use rusqlite::{Params, Row};
use tidings_protocol::{SessionKey, SignalKind};

use super::engine::{OpResult, Tx};
use super::sql::{conversion, int, number};
use crate::awareness::cursor::{Cause, Cursor};

/// A cursor with whose it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CursorRow {
    /// The target session's number.
    pub(crate) target: i64,
    /// The watcher key's number.
    pub(crate) watcher: i64,
    /// Where it stands.
    pub(crate) cursor: Cursor,
}

/// Why a cursor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provenance {
    /// The watcher spawned the target.
    Spawn,
    /// Somebody asked for it.
    Explicit,
}

impl Provenance {
    fn as_str(self) -> &'static str {
        match self {
            Self::Spawn => "spawn",
            Self::Explicit => "explicit",
        }
    }
}

/// An event, as its session's cursors see it.
pub(crate) struct EventMark<'a> {
    pub(crate) sequence: u64,
    pub(crate) kind: SignalKind,
    /// The acting session's key, by number.
    pub(crate) actor: Option<i64>,
    /// The session it is about, for the wakes.
    pub(crate) target: &'a SessionKey,
}

/// The cursor in these three columns.
pub(crate) fn cursor_at(row: &Row<'_>, first: usize) -> rusqlite::Result<Cursor> {
    let numbers = (
        number(row, first)?,
        number(row, first + 1)?,
        number(row, first + 2)?,
    );
    Cursor::new(numbers.0, numbers.1, numbers.2).map_err(|error| conversion(first, error))
}

fn cursor_row(row: &Row<'_>) -> rusqlite::Result<CursorRow> {
    Ok(CursorRow {
        target: row.get(0)?,
        watcher: row.get(1)?,
        cursor: cursor_at(row, 2)?,
    })
}

/// Cursors picked by the rest of a statement, which begins with WHERE.
pub(crate) fn cursors_where(
    tx: &Tx<'_>,
    sql: &'static str,
    params: impl Params,
) -> rusqlite::Result<Vec<CursorRow>> {
    tx.rows(sql, params, cursor_row)
}

/// The cursors on a session.
pub(crate) fn cursors_on(tx: &Tx<'_>, target: i64) -> rusqlite::Result<Vec<CursorRow>> {
    cursors_where(
        tx,
        "SELECT target, watcher, last_seen, notified, material FROM cursors WHERE target = ?1",
        [target],
    )
}

/// The cursor of a watcher on a session.
pub(crate) fn cursor_of(
    tx: &Tx<'_>,
    watcher: i64,
    target: i64,
) -> rusqlite::Result<Option<Cursor>> {
    tx.row(
        "SELECT last_seen, notified, material FROM cursors WHERE target = ?1 AND watcher = ?2",
        (target, watcher),
        |row| cursor_at(row, 0),
    )
}

/// Writes where a cursor stands now. A lease stays on it only while the notice that was
/// handed out is the pending one.
pub(crate) fn move_cursor(tx: &Tx<'_>, row: &CursorRow, to: Cursor) -> rusqlite::Result<()> {
    tx.execute(
        "UPDATE cursors
         SET last_seen = ?3, notified = ?4, material = ?5, updated_at = ?6,
             lease = CASE WHEN notified = ?4 AND ?3 < ?4 THEN lease END
         WHERE target = ?1 AND watcher = ?2",
        (
            row.target,
            row.watcher,
            int(to.last_seen()),
            int(to.notified()),
            int(to.material()),
            tx.now(),
        ),
    )?;
    Ok(())
}

/// Makes a cursor.
pub(crate) fn add_cursor(
    tx: &Tx<'_>,
    row: &CursorRow,
    provenance: Provenance,
) -> rusqlite::Result<()> {
    tx.execute(
        "INSERT INTO cursors
         (target, watcher, last_seen, notified, material, provenance, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
        (
            row.target,
            row.watcher,
            int(row.cursor.last_seen()),
            int(row.cursor.notified()),
            int(row.cursor.material()),
            provenance.as_str(),
            tx.now(),
        ),
    )?;
    Ok(())
}

/// Moves the cursors on a session as an event says, and wakes whom it tells anew.
pub(crate) fn apply_event(
    tx: &mut Tx<'_>,
    watching: &[CursorRow],
    event: &EventMark<'_>,
) -> OpResult<()> {
    for row in watching {
        let cause = if event.actor == Some(row.watcher) {
            Cause::Watcher
        } else {
            Cause::Other
        };
        let Some(to) = row.cursor.after_event(event.sequence, event.kind, cause) else {
            continue;
        };
        move_cursor(tx, row, to)?;
        if !row.cursor.is_pending() {
            let watcher = tx.key_text(row.watcher)?;
            tx.wake(watcher, event.target.clone());
        }
    }
    Ok(())
}

/// Seeds the cursor of a parent on the child that it spawned at `sequence`.
pub(crate) fn seed_parent(
    tx: &mut Tx<'_>,
    parent: &SessionKey,
    child: i64,
    sequence: u64,
) -> OpResult<()> {
    let watcher = tx.key(parent)?;
    let existing = cursor_of(tx, watcher, child)?;
    let Some(cursor) = Cursor::seeded(existing, sequence) else {
        return Ok(());
    };
    let row = CursorRow {
        target: child,
        watcher,
        cursor,
    };
    match existing {
        Some(_) => move_cursor(tx, &row, cursor)?,
        None => add_cursor(tx, &row, Provenance::Spawn)?,
    }
    Ok(())
}

/// Confirms the notice that was handed out at `handed_out`, where it is still the pending
/// one; what came in between opens one notice anew. False where it was not.
pub(crate) fn confirm(
    tx: &mut Tx<'_>,
    row: &CursorRow,
    handed_out: u64,
    target: &SessionKey,
) -> OpResult<bool> {
    let Some(to) = row.cursor.confirmed(handed_out) else {
        return Ok(false);
    };
    move_cursor(tx, row, to)?;
    if to.is_pending() {
        let watcher = tx.key_text(row.watcher)?;
        tx.wake(watcher, target.clone());
    }
    Ok(true)
}
