//! Why an upstream signal was recorded: where in which file, and by which rule.

use rusqlite::Connection;
use tidings_protocol::report::Evidence;
use tidings_protocol::session_api::SignalEvidence;
use tidings_protocol::{Catalog, HostName};

use super::engine::{OpResult, Tx};
use super::sql::{int, named, number, parsed};

/// Where the turns of one signal stand.
pub(crate) struct Source<'a> {
    /// The machine, by its name in keys.
    pub(crate) node: &'a str,
    /// The family of the transcript.
    pub(crate) catalog: Catalog,
    /// The file's path on that machine; only its name is kept.
    pub(crate) path: &'a str,
}

/// Keeps why a signal was recorded.
pub(crate) fn keep_evidence(
    tx: &Tx<'_>,
    sequence: u64,
    source: &Source<'_>,
    turns: &[Evidence],
) -> OpResult<()> {
    let file = source.path.rsplit('/').next().unwrap_or(source.path);
    let mut insert = tx.prepare(
        "INSERT INTO evidence (sequence, turn, node, catalog, file, byte_start, byte_end,
                               record_id, rule, occurred_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    for (number, turn) in (1_i64..).zip(turns) {
        insert.execute((
            int(sequence),
            number,
            source.node,
            source.catalog.as_str(),
            file,
            int(turn.byte_start),
            int(turn.byte_end),
            &turn.record_id,
            &turn.rule,
            turn.at,
        ))?;
    }
    Ok(())
}

/// The evidence of a signal, turn by turn.
pub(crate) fn read_evidence(
    conn: &Connection,
    sequence: u64,
) -> rusqlite::Result<Vec<SignalEvidence>> {
    conn.prepare_cached(
        "SELECT node, catalog, file, byte_start, byte_end, record_id, rule
         FROM evidence WHERE sequence = ?1 ORDER BY turn",
    )?
    .query_map([int(sequence)], |row| {
        Ok(SignalEvidence {
            node: parsed(row, 0, HostName::parse)?,
            catalog: named(row, 1, Catalog::parse)?,
            file: row.get(2)?,
            byte_start: number(row, 3)?,
            byte_end: number(row, 4)?,
            record_id: row.get(5)?,
            rule: row.get(6)?,
        })
    })?
    .collect()
}
