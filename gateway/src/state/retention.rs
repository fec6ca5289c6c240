//! Retention: the log is shortened from its beginning, in batches that hold the writer for
//! at most 2 ms. Heads stay.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};
use tidings_node::clock::Clock;
use tidings_protocol::EpochMs;

use super::State;
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::sql::{int, number, uint};

/// How many rows go between two looks at the clock.
const CHUNK_ROWS: i64 = 16;
/// When a batch ends: a chunk takes a fraction of what is left of the 2 ms.
const BATCH_WORK: Duration = Duration::from_micros(1_200);
/// How many chunks a batch has, at most, whatever the clock says.
const MAX_CHUNKS: usize = 64;

/// How much to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// At most this many rows of the log, over all sessions.
    pub max_rows: u64,
    /// Nothing recorded before this time; `None` while deletion by age pauses.
    pub recorded_since: Option<EpochMs>,
}

impl State {
    /// Deletes what is beyond the retention: a prefix of the log, and messages that were
    /// delivered before. Answers how many rows of the log went.
    pub async fn prune(&self, retention: Retention) -> Result<u64, StateError> {
        let through = self
            .read(move |conn| Ok(prefix_to_prune(conn, &retention)?))
            .await?;
        let mut pruned = 0;
        loop {
            let clock = Arc::clone(&self.inner.clock);
            let rows = self
                .write(Priority::Upkeep, move |tx| {
                    prune_batch(tx, through, &*clock)
                })
                .await?;
            if rows == 0 {
                break;
            }
            pruned += rows;
        }
        if let Some(before) = retention.recorded_since {
            self.prune_messages(before).await?;
        }
        Ok(pruned)
    }

    async fn prune_messages(&self, before: EpochMs) -> Result<(), StateError> {
        loop {
            let rows = self
                .write(Priority::Upkeep, move |tx| {
                    let rows = tx.execute(
                        "DELETE FROM messages WHERE id IN (
                             SELECT id FROM messages WHERE delivered_at < ?1 LIMIT ?2)",
                        (before, CHUNK_ROWS),
                    )?;
                    Ok(rows)
                })
                .await?;
            if rows == 0 {
                return Ok(());
            }
        }
    }
}

/// The last sequence that is to go, 0 for none. Rows are only ever added behind it, so it
/// stays right while the batches run.
fn prefix_to_prune(conn: &Connection, retention: &Retention) -> rusqlite::Result<u64> {
    let by_count = conn
        .prepare_cached("SELECT sequence FROM events ORDER BY sequence DESC LIMIT 1 OFFSET ?1")?
        .query_row([int(retention.max_rows)], |row| number(row, 0))
        .optional()?
        .unwrap_or(0);
    let Some(since) = retention.recorded_since else {
        return Ok(by_count);
    };
    // The first row young enough to stay; what stands before it is the prefix that goes.
    let stays = conn
        .prepare_cached(
            "SELECT sequence FROM events WHERE recorded_at >= ?1 ORDER BY sequence LIMIT 1",
        )?
        .query_row([since], |row| number(row, 0))
        .optional()?;
    let by_age = match stays {
        Some(first) => first.saturating_sub(1),
        None => conn
            .prepare_cached("SELECT coalesce(max(sequence), 0) FROM events")?
            .query_row([], |row| row.get(0).map(uint))?,
    };
    Ok(by_count.max(by_age))
}

fn prune_batch(tx: &mut Tx<'_>, through: u64, clock: &dyn Clock) -> OpResult<u64> {
    let until = clock.monotonic() + BATCH_WORK;
    let mut pruned = 0;
    for _ in 0..MAX_CHUNKS {
        let rows = prune_chunk(tx, through)?;
        pruned += rows;
        if rows == 0 || clock.monotonic() >= until {
            break;
        }
    }
    Ok(pruned)
}

fn prune_chunk(tx: &Tx<'_>, through: u64) -> OpResult<u64> {
    let rows: Vec<(i64, i64)> = tx.rows(
        "SELECT sequence, session FROM events WHERE sequence <= ?1 ORDER BY sequence LIMIT ?2",
        (int(through), CHUNK_ROWS),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    for (sequence, session) in &rows {
        tx.execute(
            "UPDATE sessions SET pruned_sequence = max(pruned_sequence, ?2) WHERE id = ?1",
            (session, sequence),
        )?;
    }
    if let Some((last, _)) = rows.last() {
        tx.execute("DELETE FROM events WHERE sequence <= ?1", [last])?;
    }
    Ok(rows.len() as u64)
}
