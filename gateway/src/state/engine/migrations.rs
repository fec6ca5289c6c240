//! The schema: embedded migrations, forward only, with a ledger in the database.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension};
use tidings_protocol::EpochMs;
use tidings_protocol::digest::{hex, sha256};

use super::backup::copy_database;
use super::open::OpenError;

/// One step of the schema. It is never edited once it has shipped: the ledger would
/// refuse the database.
pub(crate) struct Migration {
    name: &'static str,
    sql: &'static str,
}

/// Every migration, in order; the first has version 1.
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration {
        name: "initial",
        sql: include_str!("../migrations/0001_initial.sql"),
    },
    Migration {
        name: "hook_leases",
        sql: include_str!("../migrations/0002_hook_leases.sql"),
    },
    Migration {
        name: "lives",
        sql: include_str!("../migrations/0003_lives.sql"),
    },
    Migration {
        name: "run_sessions",
        sql: include_str!("../migrations/0004_run_sessions.sql"),
    },
    Migration {
        name: "context_estimates",
        sql: include_str!("../migrations/0005_context_estimates.sql"),
    },
];

/// The newest schema that this build knows.
pub(crate) fn newest() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// Brings the database to the newest schema. A copy of what was there stands beside it
/// first, as `<database>.before-<version>`.
pub(crate) fn migrate(
    conn: &mut Connection,
    path: &Path,
    migrations: &[Migration],
    now: EpochMs,
) -> Result<(), OpenError> {
    let applied = check_ledger(conn, path, migrations)?;
    let due = migrations.get(applied as usize..).unwrap_or_default();
    if due.is_empty() {
        return Ok(());
    }
    if applied > 0 {
        let copy = before_path(path, applied + 1);
        copy_database(conn, &copy).map_err(|error| OpenError::Failed {
            path: copy,
            detail: error.to_string(),
        })?;
    }
    for (version, migration) in (applied + 1..).zip(due) {
        apply(conn, version, migration, now).map_err(|error| OpenError::of(path, &error))?;
        tracing::info!(version, name = migration.name, "migrated the database");
    }
    Ok(())
}

/// Where the copy stands that was made before this migration.
fn before_path(path: &Path, version: u32) -> PathBuf {
    let mut copy = path.as_os_str().to_owned();
    copy.push(format!(".before-{version}"));
    copy.into()
}

/// The version of the schema, which the ledger vouches for.
fn check_ledger(
    conn: &Connection,
    path: &Path,
    migrations: &[Migration],
) -> Result<u32, OpenError> {
    let engine = |error: rusqlite::Error| OpenError::of(path, &error);
    let version = user_version(conn).map_err(engine)?;
    let known = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    if version > known {
        return Err(OpenError::Newer {
            path: path.to_owned(),
            found: version,
            known,
        });
    }
    for (version, migration) in (1..=version).zip(migrations) {
        let checksum: Option<String> = conn
            .query_row(
                "SELECT checksum FROM schema_migrations WHERE version = ?1",
                [version],
                |row| row.get(0),
            )
            .optional()
            .map_err(engine)?;
        if checksum.as_deref() != Some(checksum_of(migration).as_str()) {
            return Err(OpenError::MigrationChanged {
                path: path.to_owned(),
                version,
            });
        }
    }
    Ok(version)
}

pub(crate) fn user_version(conn: &Connection) -> rusqlite::Result<u32> {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// One migration, its ledger row and the version are one transaction.
fn apply(
    conn: &mut Connection,
    version: u32,
    migration: &Migration,
    now: EpochMs,
) -> rusqlite::Result<()> {
    let transaction = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    transaction.execute_batch(
        "CREATE TABLE IF NOT EXISTS schema_migrations (
            version INTEGER PRIMARY KEY,
            name TEXT NOT NULL,
            checksum TEXT NOT NULL,
            applied_at INTEGER NOT NULL
        ) STRICT",
    )?;
    transaction.execute_batch(migration.sql)?;
    transaction.execute(
        "INSERT INTO schema_migrations (version, name, checksum, applied_at)
         VALUES (?1, ?2, ?3, ?4)",
        (version, migration.name, checksum_of(migration), now),
    )?;
    transaction.pragma_update(None, "user_version", version)?;
    transaction.commit()
}

fn checksum_of(migration: &Migration) -> String {
    hex(&sha256(migration.sql.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Migration = Migration {
        name: "first",
        sql: "CREATE TABLE thing (id INTEGER PRIMARY KEY) STRICT; INSERT INTO thing VALUES (7);",
    };
    const SECOND: Migration = Migration {
        name: "second",
        sql: "ALTER TABLE thing ADD COLUMN name TEXT;",
    };
    const BROKEN: Migration = Migration {
        name: "broken",
        sql: "CREATE TABLE other (id INTEGER PRIMARY KEY) STRICT; SELECT nonsense;",
    };

    fn database() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("state.sqlite");
        (dir, path)
    }

    fn migrate_to(path: &Path, migrations: &[Migration]) -> Result<(), OpenError> {
        let mut conn = Connection::open(path).expect("open");
        migrate(&mut conn, path, migrations, 1_700_000_000_000)
    }

    #[test]
    fn an_existing_database_is_copied_before_it_is_migrated_and_a_new_one_is_not() {
        let (_dir, path) = database();
        let copy = before_path(&path, 2);
        migrate_to(&path, &[FIRST]).expect("new");
        assert!(!before_path(&path, 1).exists());
        migrate_to(&path, &[FIRST]).expect("nothing to do");
        assert!(!copy.exists());

        migrate_to(&path, &[FIRST, SECOND]).expect("second");
        let old = Connection::open(&copy).expect("the copy opens");
        assert_eq!(user_version(&old), Ok(1));
        let row: i64 = old
            .query_row("SELECT id FROM thing", [], |row| row.get(0))
            .expect("the copy has the rows");
        assert_eq!(row, 7);
        let new = Connection::open(&path).expect("open");
        assert_eq!(user_version(&new), Ok(2));
    }

    #[test]
    fn a_migration_that_fails_leaves_the_schema_as_it_was() {
        let (_dir, path) = database();
        migrate_to(&path, &[FIRST]).expect("new");
        assert!(matches!(
            migrate_to(&path, &[FIRST, BROKEN]),
            Err(OpenError::Failed { .. })
        ));
        let conn = Connection::open(&path).expect("open");
        assert_eq!(user_version(&conn), Ok(1));
        assert!(conn.prepare("SELECT * FROM other").is_err());
        drop(conn);
        migrate_to(&path, &[FIRST, SECOND]).expect("the copy of the failed try is no obstacle");
    }

    #[test]
    fn a_newer_schema_and_an_edited_migration_are_refused() {
        let (_dir, path) = database();
        migrate_to(&path, &[FIRST, SECOND]).expect("new");
        assert_eq!(
            migrate_to(&path, &[FIRST]),
            Err(OpenError::Newer {
                path: path.clone(),
                found: 2,
                known: 1
            })
        );
        let edited = Migration {
            sql: "CREATE TABLE thing (id INTEGER PRIMARY KEY) STRICT;",
            ..FIRST
        };
        assert_eq!(
            migrate_to(&path, &[edited, SECOND]),
            Err(OpenError::MigrationChanged { path, version: 1 })
        );
    }
}
