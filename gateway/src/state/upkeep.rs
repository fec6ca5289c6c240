//! Upkeep: counts, integrity, backup.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tidings_protocol::session_api::Counts;

use super::State;
use super::engine::{OpenError, copy_database, open_for_copy};
use super::error::StateError;
use super::sql::number;

/// How many findings an integrity check reports, at most: the first says enough.
const MAX_FINDINGS: u32 = 100;

impl State {
    /// How much there is.
    pub async fn counts(&self) -> Result<Counts, StateError> {
        self.read(|conn| {
            let counts = conn
                .prepare_cached(
                    "SELECT (SELECT count(*) FROM entries),
                            (SELECT count(*) FROM events),
                            (SELECT coalesce(max(seq), 0) FROM sqlite_sequence
                             WHERE name = 'events'),
                            (SELECT count(*) FROM cursors),
                            (SELECT count(*) FROM cursors WHERE notified > last_seen),
                            (SELECT count(*) FROM links)",
                )?
                .query_row([], |row| {
                    Ok(Counts {
                        sessions: number(row, 0)?,
                        signals: number(row, 1)?,
                        head: number(row, 2)?,
                        watches: number(row, 3)?,
                        notices: number(row, 4)?,
                        links: number(row, 5)?,
                    })
                })?;
            Ok(counts)
        })
        .await
    }

    /// Checks the whole database. What is found wrong, one line each; none when it is sound.
    pub async fn check_integrity(&self) -> Result<Vec<String>, StateError> {
        self.inner.files.check()?;
        self.read(|conn| Ok(damage(conn)?)).await
    }

    /// Writes a consistent copy of the database to a new file, readable by its owner alone.
    pub async fn back_up(&self, file: PathBuf) -> Result<(), StateError> {
        let database = self.path().to_owned();
        let failed = |path: PathBuf, detail: String| StateError::File { path, detail };
        let copying = tokio::task::spawn_blocking(move || {
            if file.exists() {
                return Err(failed(file, "it exists already".to_owned()));
            }
            let copied = open_for_copy(&database)
                .map_err(|error| error.to_string())
                .and_then(|conn| copy_database(&conn, &file).map_err(|error| error.to_string()));
            copied.map_err(|detail| failed(file, detail))
        });
        copying.await.unwrap_or(Err(StateError::Closed))
    }
}

/// Checks a database file that no gateway has open, changing nothing. What is found wrong,
/// one line each; none when it is sound. Blocks while it reads.
pub fn check_file(path: &Path) -> Result<Vec<String>, OpenError> {
    open_for_copy(path)
        .and_then(|conn| damage(&conn))
        .map_err(|error| OpenError::of(path, &error))
}

fn damage(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut findings: Vec<String> = conn
        .prepare(&format!("PRAGMA integrity_check({MAX_FINDINGS})"))?
        .query_map([], |row| row.get(0))?
        .filter(|finding| finding.as_ref().map_or(true, |text: &String| text != "ok"))
        .collect::<Result<_, _>>()?;
    let orphans: Vec<String> = conn
        .prepare("SELECT \"table\", rowid, parent FROM pragma_foreign_key_check LIMIT ?1")?
        .query_map([MAX_FINDINGS], |row| {
            let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
            Ok(format!(
                "a row of {table} names one of {parent} that is not there"
            ))
        })?
        .collect::<Result<_, _>>()?;
    findings.extend(orphans);
    Ok(findings)
}
