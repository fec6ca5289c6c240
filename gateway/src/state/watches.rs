//! Watches: who holds a cursor on whom.

use std::time::Duration;

use tidings_protocol::session_api::{Watch, WatchFilter, WatchRemoved, Watched, Watches};
use tidings_protocol::{EpochMs, SessionKey};

use super::State;
use super::address::SessionAddress;
use super::changes::{Found, find};
use super::cursors::{CursorRow, Provenance, add_cursor, cursor_at, cursor_of};
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::random;
use super::sessions::ensure_entry;
use super::sql::parsed;
use crate::awareness::cursor::Cursor;

/// How many watches one transaction ends, at most: well under 2 ms of the writer.
const EXPIRY_BATCH: usize = 64;

impl State {
    /// Registers a watch at the target's head, and the watcher's session with it. Refused
    /// with a reason: a bare watcher, the target itself, an unknown target. Registering
    /// again keeps what is pending.
    pub async fn watch_add(
        &self,
        watcher: SessionKey,
        target: SessionAddress,
    ) -> Result<Watched, StateError> {
        let fresh_id = random::session_id()?;
        self.write(Priority::Interactive, move |tx| {
            add_watch(tx, &watcher, &target, &fresh_id)
        })
        .await
    }

    /// Ends a watch.
    pub async fn watch_remove(
        &self,
        watcher: SessionKey,
        target: SessionAddress,
    ) -> Result<WatchRemoved, StateError> {
        self.write(Priority::Interactive, move |tx| {
            let (Some(watcher), Some(target)) = (tx.find_key(&watcher)?, tx.find_session(&target)?)
            else {
                return Ok(WatchRemoved { removed: false });
            };
            let removed = tx.execute(
                "DELETE FROM cursors WHERE target = ?1 AND watcher = ?2",
                (target, watcher),
            )?;
            Ok(WatchRemoved {
                removed: removed > 0,
            })
        })
        .await
    }

    /// Watches, by watcher and target.
    pub async fn watches(&self, filter: WatchFilter) -> Result<Watches, StateError> {
        self.read(move |conn| {
            let watches = conn
                .prepare_cached(
                    "SELECT watcher_session_key, target_session_key, target_agent_id, provenance,
                            last_seen_sequence, notified_sequence, material_sequence,
                            created_at, updated_at
                     FROM session_watch_cursors
                     WHERE (?1 IS NULL OR watcher_session_key = ?1)
                       AND (?2 IS NULL OR target_session_key = ?2)
                     ORDER BY watcher_session_key, target_session_key, target_agent_id",
                )?
                .query_map(
                    (
                        filter.watcher.as_ref().map(SessionKey::as_str),
                        filter.target.as_ref().map(SessionKey::as_str),
                    ),
                    watch_row,
                )?
                .collect::<Result<_, _>>()?;
            Ok(Watches { watches })
        })
        .await
    }

    /// Ends the watches that neither moved themselves nor whose watcher moved for this
    /// long. Answers how many.
    pub async fn expire_watches(&self, retention: Duration) -> Result<u64, StateError> {
        let retention = EpochMs::try_from(retention.as_millis()).unwrap_or(EpochMs::MAX);
        let idle_since = self.inner.clock.now().saturating_sub(retention);
        let idle: Vec<(i64, i64)> = self
            .read(move |conn| {
                let idle = conn
                    .prepare_cached(
                        "SELECT cursor.target, cursor.watcher FROM cursors AS cursor
                         LEFT JOIN watchers AS watcher ON watcher.watcher = cursor.watcher
                         WHERE max(cursor.updated_at, coalesce(watcher.active_at, 0)) <= ?1",
                    )?
                    .query_map([idle_since], |row| Ok((row.get(0)?, row.get(1)?)))?
                    .collect::<Result<_, _>>()?;
                Ok(idle)
            })
            .await?;
        let mut ended = 0;
        for batch in idle.chunks(EXPIRY_BATCH) {
            let batch = batch.to_vec();
            ended += self
                .write(Priority::Upkeep, move |tx| end_idle(tx, &batch, idle_since))
                .await?;
        }
        Ok(ended)
    }
}

/// Ends those of these watches that are still idle.
fn end_idle(tx: &Tx<'_>, batch: &[(i64, i64)], idle_since: EpochMs) -> OpResult<u64> {
    let mut ended = 0;
    for (target, watcher) in batch {
        ended += tx.execute(
            "DELETE FROM cursors
             WHERE target = ?1 AND watcher = ?2 AND updated_at <= ?3
               AND NOT EXISTS (SELECT 1 FROM watchers
                               WHERE watchers.watcher = ?2 AND active_at > ?3)",
            (target, watcher, idle_since),
        )?;
        tx.execute(
            "DELETE FROM watchers
             WHERE watcher = ?1 AND NOT EXISTS (SELECT 1 FROM cursors WHERE watcher = ?1)",
            [watcher],
        )?;
    }
    Ok(ended as u64)
}

/// Registers a watch, or says why not.
pub(crate) fn add_watch(
    tx: &mut Tx<'_>,
    watcher: &SessionKey,
    target: &SessionAddress,
    fresh_id: &str,
) -> OpResult<Watched> {
    let refused = |reason: String| {
        Ok(Watched {
            watched: false,
            from_version: None,
            reason: Some(reason),
        })
    };
    let Some(address) = SessionAddress::qualified(watcher.clone()) else {
        return refused(format!(
            "a watcher has an agent-qualified key, agent:<agentId>:<rest>, and {watcher} is none"
        ));
    };
    if watcher == target.key() {
        return refused("a session does not watch itself".to_owned());
    }
    let Some(found) = find(tx.conn(), target)?.filter(Found::exists) else {
        return refused(format!("there is no session {target}"));
    };
    ensure_entry(tx, &address, fresh_id)?;
    let watcher = tx.key(watcher)?;
    let standing = cursor_of(tx, watcher, found.number)?;
    if standing.is_some() {
        tx.execute(
            "UPDATE cursors SET provenance = 'explicit', updated_at = ?3
             WHERE target = ?1 AND watcher = ?2",
            (found.number, watcher, tx.now()),
        )?;
    } else {
        let row = CursorRow {
            target: found.number,
            watcher,
            cursor: Cursor::at(found.head),
        };
        add_cursor(tx, &row, Provenance::Explicit)?;
    }
    let from_version = standing.map_or(found.head, Cursor::last_seen);
    Ok(Watched {
        watched: true,
        from_version: Some(from_version),
        reason: None,
    })
}

fn watch_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Watch> {
    let cursor = cursor_at(row, 4)?;
    Ok(Watch {
        watcher: parsed(row, 0, SessionKey::parse)?,
        target: parsed(row, 1, SessionKey::parse)?,
        target_agent_id: row.get(2)?,
        provenance: row.get(3)?,
        last_seen_sequence: cursor.last_seen(),
        notified_sequence: cursor.notified(),
        material_sequence: cursor.material(),
        pending: cursor.is_pending(),
        created_at: row.get(7)?,
        updated_at: row.get(8)?,
    })
}
