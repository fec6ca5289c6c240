//! A state database, looked at from outside: is it whole, and what is in it.

mod rules;
mod snapshot;

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

pub use rules::{RULES, Rule};
pub use snapshot::{CursorRow, EvidenceRow, LinkRow, SignalRow, Snapshot};

/// The database in a state directory.
pub const DATABASE: &str = "state.sqlite";

/// How many offences of one kind are shown.
const MAX_SHOWN: usize = 5;

/// What an audit found.
#[derive(Debug)]
pub struct Audit {
    /// What is wrong, one line each; none when all is well.
    pub findings: Vec<String>,
    /// What is there.
    pub snapshot: Snapshot,
}

/// Audits the database of a state directory, whether a gateway runs on it or not: everything
/// is read in one transaction, on a connection that cannot write.
pub fn audit(state_dir: &Path) -> Audit {
    let mut conn = open(state_dir);
    let transaction = Transaction::new(&mut conn, TransactionBehavior::Deferred);
    read(&transaction.expect("a transaction to read in"))
}

/// What is in the database of a state directory, without asking whether it is whole.
pub fn snapshot(state_dir: &Path) -> Snapshot {
    let mut conn = open(state_dir);
    let transaction = Transaction::new(&mut conn, TransactionBehavior::Deferred);
    Snapshot::read(&transaction.expect("a transaction to read in"))
}

/// A number that is another one after each commit of somebody else.
pub fn data_version(conn: &Connection) -> i64 {
    conn.query_row("PRAGMA data_version", [], |row| row.get(0))
        .expect("a version")
}

/// The turns of a session that are counted by now; none where nothing can be read at the
/// moment.
pub fn counted(state_dir: &Path, session: &str) -> Option<Vec<EvidenceRow>> {
    snapshot::counted(&try_open(state_dir)?, session).ok()
}

/// How far a session's link is recorded, where there is one and it can be read.
pub fn offset(state_dir: &Path, session: &str) -> Option<u64> {
    snapshot::offset(&try_open(state_dir)?, session).ok()
}

fn try_open(state_dir: &Path) -> Option<Connection> {
    let path = state_dir.join(DATABASE);
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()
}

/// A connection that only reads.
pub fn open(state_dir: &Path) -> Connection {
    let path = state_dir.join(DATABASE);
    let conn = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let conn = conn.expect("the state database");
    let patience = Duration::from_secs(10);
    conn.busy_timeout(patience).expect("patience");
    conn
}

fn read(conn: &Connection) -> Audit {
    let integrity = [
        ("the file", "PRAGMA integrity_check(20)"),
        (
            "a reference",
            "SELECT \"table\" FROM pragma_foreign_key_check",
        ),
    ];
    let mut findings = Vec::new();
    for (wrong, query) in integrity {
        let offences = offences(conn, query)
            .into_iter()
            .filter(|line| line != "ok");
        report(&mut findings, wrong, &offences.collect::<Vec<_>>());
    }
    for rule in RULES {
        report(&mut findings, rule.wrong, &offences(conn, rule.query));
    }
    Audit {
        findings,
        snapshot: Snapshot::read(conn),
    }
}

fn report(findings: &mut Vec<String>, wrong: &str, offences: &[String]) {
    if !offences.is_empty() {
        let shown = &offences[..offences.len().min(MAX_SHOWN)];
        findings.push(format!("{wrong}: {} of them, {shown:?}", offences.len()));
    }
}

fn offences(conn: &Connection, query: &str) -> Vec<String> {
    let mut statement = conn.prepare(query).expect("a query of the audit");
    let rows = statement.query_map([], |row| match row.get_ref(0)? {
        rusqlite::types::ValueRef::Integer(number) => Ok(number.to_string()),
        other => Ok(other.as_str()?.to_owned()),
    });
    let rows = rows.expect("the audit runs").collect::<Result<_, _>>();
    rows.expect("the audit can read the database")
}
