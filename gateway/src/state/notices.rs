//! Notices: read off the cursors, taken by a drain, a turn, or a look at the target.

use rusqlite::Connection;
use tidings_protocol::session_api::Notices;
use tidings_protocol::{EpochMs, SessionKey};

use super::State;
use super::address::SessionAddress;
use super::cursors::{CursorRow, confirm, cursor_at};
use super::effect::Wake;
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::sql::{int, number, parsed};
use crate::awareness::cursor::Cursor;
use crate::awareness::notice::notice;

impl State {
    /// The notices pending for a watcher, leased or not, moving nothing.
    pub async fn notices(&self, watcher: SessionKey) -> Result<Notices, StateError> {
        self.read(move |conn| {
            let notices = conn
                .prepare_cached(
                    "SELECT target_session_key, last_seen_sequence FROM session_watch_cursors
                     WHERE watcher_session_key = ?1 AND notified_sequence > last_seen_sequence
                     ORDER BY target_session_key, target_agent_id",
                )?
                .query_map([watcher.as_str()], |row| {
                    Ok(notice(&parsed(row, 0, SessionKey::parse)?, number(row, 1)?))
                })?
                .collect::<Result<_, _>>()?;
            Ok(Notices { notices })
        })
        .await
    }

    /// Takes and confirms the notices that are available to a watcher. What an open lease
    /// holds is passed over.
    pub async fn drain(&self, watcher: SessionKey) -> Result<Notices, StateError> {
        self.write(Priority::Interactive, move |tx| {
            let Some(watcher) = tx.find_key(&watcher)? else {
                return Ok(Notices {
                    notices: Vec::new(),
                });
            };
            let available = available_cursors(tx, watcher)?;
            let mut notices = Vec::with_capacity(available.len());
            for Pending { row, target } in available {
                notices.push(notice(&target, row.cursor.last_seen()));
                confirm(tx, &row, row.cursor.notified(), &target)?;
            }
            Ok(Notices { notices })
        })
        .await
    }

    /// One wake per notice that is available now to a watcher that is not nested, for a
    /// subscriber that is new or lagged.
    pub async fn wakes(&self) -> Result<Vec<Wake>, StateError> {
        let now = self.inner.clock.now();
        self.read(move |conn| Ok(read_wakes(conn, now)?)).await
    }
}

/// A pending notice that can be handed out.
pub(crate) struct Pending {
    pub(crate) row: CursorRow,
    pub(crate) target: SessionKey,
}

/// The notices of a watcher that no open lease holds, by target.
pub(crate) fn available_cursors(tx: &Tx<'_>, watcher: i64) -> OpResult<Vec<Pending>> {
    let pending = tx.rows(
        "SELECT cursor.target, cursor.watcher, cursor.last_seen, cursor.notified,
                cursor.material, target_key.session_key
         FROM cursors AS cursor
         JOIN sessions AS target ON target.id = cursor.target
         JOIN session_keys AS target_key ON target_key.id = target.key
         WHERE cursor.watcher = ?1 AND cursor.notified > cursor.last_seen
           AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.id = cursor.lease
                           AND closed_at IS NULL AND expires_at > ?2)
         ORDER BY target_key.session_key, target.agent_id",
        (watcher, tx.now()),
        |row| {
            Ok(Pending {
                row: CursorRow {
                    target: row.get(0)?,
                    watcher: row.get(1)?,
                    cursor: cursor_at(row, 2)?,
                },
                target: parsed(row, 5, SessionKey::parse)?,
            })
        },
    )?;
    Ok(pending)
}

/// The watcher's own status since what its leased notice names confirms that notice.
pub(crate) fn confirm_read(
    tx: &mut Tx<'_>,
    reader: &SessionKey,
    target: &SessionAddress,
    since: u64,
) -> OpResult<()> {
    let (Some(watcher), Some(session)) = (tx.find_key(reader)?, tx.find_session(target)?) else {
        return Ok(());
    };
    let leased: Option<Cursor> = tx.row(
        "SELECT cursor.last_seen, cursor.notified, cursor.material FROM cursors AS cursor
         JOIN leases AS lease ON lease.id = cursor.lease
         WHERE cursor.target = ?1 AND cursor.watcher = ?2 AND cursor.last_seen <= ?3
           AND lease.closed_at IS NULL AND lease.expires_at > ?4",
        (session, watcher, int(since), tx.now()),
        |row| cursor_at(row, 0),
    )?;
    if let Some(cursor) = leased {
        let row = CursorRow {
            target: session,
            watcher,
            cursor,
        };
        confirm(tx, &row, cursor.notified(), target.key())?;
    }
    Ok(())
}

fn read_wakes(conn: &Connection, now: EpochMs) -> rusqlite::Result<Vec<Wake>> {
    let wakes: Vec<Wake> = conn
        .prepare_cached(
            "SELECT watcher.session_key, target_key.session_key FROM cursors AS cursor
             JOIN session_keys AS watcher ON watcher.id = cursor.watcher
             JOIN sessions AS target ON target.id = cursor.target
             JOIN session_keys AS target_key ON target_key.id = target.key
             WHERE cursor.notified > cursor.last_seen
               AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.id = cursor.lease
                               AND closed_at IS NULL AND expires_at > ?1)
             ORDER BY watcher.session_key, target_key.session_key",
        )?
        .query_map([now], |row| {
            Ok(Wake {
                watcher: parsed(row, 0, SessionKey::parse)?,
                target: parsed(row, 1, SessionKey::parse)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    Ok(wakes
        .into_iter()
        .filter(|wake| !wake.watcher.is_nested())
        .collect())
}
