//! What is in a state database at one moment.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::{Connection, Row};

/// A row of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalRow {
    /// The session it is about.
    pub session: String,
    /// That session's agent.
    pub agent: String,
    /// What happened.
    pub kind: String,
    /// Who did it: `human`, `system`, or a session's key.
    pub actor: String,
    /// The run it belongs to.
    pub run: Option<String>,
    /// What it is recorded once under.
    pub dedupe_key: Option<String>,
    /// One line.
    pub summary: String,
    /// When it happened and when it was recorded.
    pub times: (i64, i64),
}

/// A cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CursorRow {
    /// Last seen, notified, material.
    pub marks: (u64, u64, u64),
    /// `spawn` or `explicit`.
    pub provenance: String,
}

/// An upstream link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkRow {
    /// The program's own id of the conversation.
    pub thread: String,
    /// How far it has been recorded.
    pub offset: u64,
    /// How many reports were applied.
    pub revision: u64,
}

/// Where a turn stands that was counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvidenceRow {
    /// Where it begins.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
}

/// What is in a state database.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The log, by sequence.
    pub signals: BTreeMap<u64, SignalRow>,
    /// The cursors, by watcher and target.
    pub cursors: BTreeMap<(String, String), CursorRow>,
    /// The sessions that have an entry.
    pub entries: BTreeSet<String>,
    /// The links, by session.
    pub links: BTreeMap<String, LinkRow>,
    /// The turns that were counted, by session.
    pub evidence: BTreeMap<String, Vec<EvidenceRow>>,
    /// The sequences of every run.
    by_run: HashMap<String, Vec<u64>>,
}

impl Snapshot {
    /// The highest sequence.
    pub fn head(&self) -> u64 {
        self.signals.keys().next_back().copied().unwrap_or(0)
    }

    /// The rows of this run.
    pub fn rows_of_run(&self, run: &str) -> &[u64] {
        self.by_run.get(run).map_or(&[], Vec::as_slice)
    }

    /// What is lost, altered or has come in between since `earlier`, where nothing may
    /// have: one line each.
    pub fn broken_since(&self, earlier: &Self) -> Vec<String> {
        let mut broken = Vec::new();
        for (sequence, row) in &earlier.signals {
            match self.signals.get(sequence) {
                Some(now) if now == row => {}
                now => broken.push(format!("signal {sequence} was {row:?} and is {now:?}")),
            }
        }
        let late = self.signals.range(..=earlier.head());
        for (sequence, row) in late.filter(|(at, _)| !earlier.signals.contains_key(at)) {
            broken.push(format!("signal {sequence} came after a later one: {row:?}"));
        }
        broken
    }

    pub(super) fn read(conn: &Connection) -> Self {
        let mut snapshot = Self {
            signals: rows(
                conn,
                "SELECT sequence, session_key, agent_id, kind, coalesce(actor_id, actor_type),
                        run_id, dedupe_key, summary, occurred_at, recorded_at
                 FROM session_state_events",
                signal,
            ),
            cursors: rows(
                conn,
                "SELECT watcher_session_key, target_session_key, last_seen_sequence,
                        notified_sequence, material_sequence, provenance
                 FROM session_watch_cursors",
                cursor,
            ),
            entries: rows(conn, "SELECT session_key FROM session_entries", |row| {
                row.get(0)
            }),
            links: rows(
                conn,
                "SELECT session_key, thread_id, marker_offset, revision
                 FROM session_upstream_links",
                link,
            ),
            ..Self::default()
        };
        let evidence: Vec<(String, EvidenceRow)> = rows(
            conn,
            "SELECT session_key, byte_start, byte_end FROM evidence
             JOIN session_state_events USING (sequence) ORDER BY byte_start",
            |row| {
                let (start, end) = (number(row, 1)?, number(row, 2)?);
                Ok((row.get(0)?, EvidenceRow { start, end }))
            },
        );
        for (session, turn) in evidence {
            snapshot.evidence.entry(session).or_default().push(turn);
        }
        for (sequence, row) in &snapshot.signals {
            if let Some(run) = &row.run {
                let of_run = snapshot.by_run.entry(run.clone()).or_default();
                of_run.push(*sequence);
            }
        }
        snapshot
    }
}

/// The turns of a session that are counted.
pub(super) fn counted(conn: &Connection, session: &str) -> rusqlite::Result<Vec<EvidenceRow>> {
    let mut statement = conn.prepare(
        "SELECT byte_start, byte_end FROM evidence JOIN session_state_events USING (sequence)
         WHERE session_key = ?1",
    )?;
    let rows = statement.query_map([session], |row| {
        let (start, end) = (number(row, 0)?, number(row, 1)?);
        Ok(EvidenceRow { start, end })
    })?;
    rows.collect()
}

/// How far a session's link is recorded.
pub(super) fn offset(conn: &Connection, session: &str) -> rusqlite::Result<u64> {
    conn.query_row(
        "SELECT marker_offset FROM session_upstream_links WHERE session_key = ?1",
        [session],
        |row| number(row, 0),
    )
}

fn rows<T, C: FromIterator<T>>(
    conn: &Connection,
    query: &str,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> C {
    let mut statement = conn.prepare(query).expect("a query of the audit");
    let rows = statement.query_map([], read).expect("the audit runs");
    let rows: Result<C, _> = rows.collect();
    rows.expect("the audit can read the database")
}

fn signal(row: &Row<'_>) -> rusqlite::Result<(u64, SignalRow)> {
    let signal = SignalRow {
        session: row.get(1)?,
        agent: row.get(2)?,
        kind: row.get(3)?,
        actor: row.get(4)?,
        run: row.get(5)?,
        dedupe_key: row.get(6)?,
        summary: row.get(7)?,
        times: (row.get(8)?, row.get(9)?),
    };
    Ok((number(row, 0)?, signal))
}

fn cursor(row: &Row<'_>) -> rusqlite::Result<((String, String), CursorRow)> {
    let cursor = CursorRow {
        marks: (number(row, 2)?, number(row, 3)?, number(row, 4)?),
        provenance: row.get(5)?,
    };
    Ok(((row.get(0)?, row.get(1)?), cursor))
}

fn link(row: &Row<'_>) -> rusqlite::Result<(String, LinkRow)> {
    let link = LinkRow {
        thread: row.get(1)?,
        offset: number(row, 2)?,
        revision: number(row, 3)?,
    };
    Ok((row.get(0)?, link))
}

/// A number that is never negative.
fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    Ok(u64::try_from(number).expect("a number of the contract is not negative"))
}
