//! Opening the database, or saying why not. What is refused is left as it is.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tidings_node::clock::Clock;

use super::checkpoint::{BUSY_PATIENCE, log_bytes};
use super::fault::Fault;
use super::files::Files;
use super::migrations::{MIGRATIONS, migrate, newest, user_version};
use super::readers::READERS;

/// The database, in the state directory.
pub const DATABASE_FILE: &str = "state.sqlite";

/// The first SQLite without the race that can lose commits when the log starts anew.
const OLDEST_ENGINE: i32 = 3_051_003;
/// Marks a file as ours: "Tidn".
const APPLICATION_ID: u32 = 0x5469_646e;
/// How many prepared statements each connection keeps: all there are, and some.
const CACHED_STATEMENTS: usize = 192;

/// Where the database is and which clock it goes by. The caller holds the lock on the
/// state directory.
#[derive(Debug, Clone)]
pub struct StateOptions {
    /// The state directory; it exists.
    pub directory: PathBuf,
    /// The gateway's clock.
    pub clock: Arc<dyn Clock>,
}

/// Why the database cannot be opened. It is left as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// This build carries a SQLite with a known way to lose commits: our fault.
    #[error("this build has SQLite {found}, which can lose commits; it needs 3.51.3 or newer")]
    EngineTooOld {
        /// Its version.
        found: String,
    },
    /// The file or its directory cannot be written: mend the permissions.
    #[error("{path} cannot be opened for writing: {detail}")]
    NotWritable {
        /// The database.
        path: PathBuf,
        /// What was said.
        detail: String,
    },
    /// Another process holds it: end that one first.
    #[error("{path} is locked by another process")]
    Locked {
        /// The database.
        path: PathBuf,
    },
    /// It was written by a newer version: use that one.
    #[error("{path} has schema {found}, this version knows {known}; it was left untouched")]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// The newest schema that this build knows.
        known: u32,
    },
    /// It is no database, or one of another program, or damaged: restore a backup.
    #[error("{path} is damaged or no Tidings database: {detail}; it was left as it is")]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// Its ledger names a migration that this build knows with another content.
    #[error("{path}: migration {version} was applied in another form than this version knows")]
    MigrationChanged {
        /// The database.
        path: PathBuf,
        /// The migration.
        version: u32,
    },
    /// The disk is full.
    #[error("{path} cannot be written: the disk is full")]
    DiskFull {
        /// The database.
        path: PathBuf,
    },
    /// Something else failed.
    #[error("{path}: {detail}")]
    Failed {
        /// The file.
        path: PathBuf,
        /// What was said.
        detail: String,
    },
}

impl OpenError {
    /// An error of the engine while opening.
    pub(crate) fn of(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        let detail = error.to_string();
        let code = error.sqlite_error_code();
        match (Fault::of(error), code) {
            (Fault::DiskFull, _) => Self::DiskFull { path },
            (Fault::Locked, _) => Self::Locked { path },
            (_, Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)) => {
                Self::Corrupt { path, detail }
            }
            (_, Some(rusqlite::ErrorCode::ReadOnly | rusqlite::ErrorCode::CannotOpen)) => {
                Self::NotWritable { path, detail }
            }
            _ => Self::Failed { path, detail },
        }
    }

    fn io(path: &Path, error: &io::Error) -> Self {
        let path = path.to_owned();
        let detail = error.to_string();
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::DiskFull { path },
            ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory => Self::NotWritable { path, detail },
            _ => Self::Failed { path, detail },
        }
    }
}

/// The database, open.
pub(crate) struct Opened {
    pub(crate) files: Arc<Files>,
    pub(crate) writer: Connection,
    pub(crate) checkpointer: Connection,
    pub(crate) readers: Vec<Connection>,
    /// The highest sequence of the log.
    pub(crate) head: u64,
}

/// Opens the database in the state directory, made new or migrated where it must be.
pub(crate) fn open(options: &StateOptions) -> Result<Opened, OpenError> {
    if rusqlite::version_number() < OLDEST_ENGINE {
        return Err(OpenError::EngineTooOld {
            found: rusqlite::version().to_owned(),
        });
    }
    let path = options.directory.join(DATABASE_FILE);
    let found = inspect(&path)?;
    let engine = |error: rusqlite::Error| OpenError::of(&path, &error);
    let mut writer = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(engine)?;
    prepare_writer(&mut writer, &path, found, options)?;
    let reader = || connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let readers = (0..READERS)
        .map(|_| reader())
        .collect::<Result<_, _>>()
        .map_err(engine)?;
    let checkpointer = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(engine)?;
    let head = log_head(&writer).map_err(engine)?;
    // The log is there once something has been read.
    let files = Files::of(&path).map_err(|error| OpenError::io(&path, &error))?;
    Ok(Opened {
        files: Arc::new(files),
        writer,
        checkpointer,
        readers,
        head,
    })
}

/// What stands at the database's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Nothing yet, or an empty file.
    New,
    /// A database of ours.
    Ours,
}

/// Looks at the file's first bytes before the engine touches it: a newer database and a
/// foreign file stay exactly as they are. A missing one is created, readable by its owner
/// alone; the engine gives its companions the same permissions.
///
/// Only before the first connection: closing a file drops the locks that this process
/// holds on it.
fn inspect(path: &Path) -> Result<Found, OpenError> {
    const HEADER_BYTES: usize = 100;
    let corrupt = |detail: &str| OpenError::Corrupt {
        path: path.to_owned(),
        detail: detail.to_owned(),
    };
    let mut header = Vec::with_capacity(HEADER_BYTES);
    let read = File::open(path).and_then(|file| {
        file.take(HEADER_BYTES as u64)
            .read_to_end(&mut header)
            .map(|_| ())
    });
    match read {
        // What was committed is in the log, and of no use without its file; the engine would
        // take the file for a new one and remove the log.
        Err(error) if error.kind() == ErrorKind::NotFound && has_log(path) => {
            return Err(corrupt("it is not there, and its log is"));
        }
        Ok(()) if header.is_empty() && has_log(path) => {
            return Err(corrupt("it is empty, and its log is not"));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            create_private(path).map_err(|error| OpenError::io(path, &error))?;
            return Ok(Found::New);
        }
        Err(error) => return Err(OpenError::io(path, &error)),
        Ok(()) if header.is_empty() => return Ok(Found::New),
        Ok(()) => {}
    }
    if header.len() < HEADER_BYTES || !header.starts_with(b"SQLite format 3\0") {
        return Err(corrupt("it does not begin like a database"));
    }
    let number = |at: usize| {
        header[at..at + 4]
            .iter()
            .fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
    };
    let (version, application) = (number(60), number(68));
    if application != APPLICATION_ID {
        return Err(corrupt("it belongs to another program"));
    }
    if version > newest() {
        return Err(OpenError::Newer {
            path: path.to_owned(),
            found: version,
            known: newest(),
        });
    }
    Ok(Found::Ours)
}

/// The database of this state directory where nothing has ever been written to it: a start
/// would make a new one there.
pub(crate) fn unwritten(directory: &Path) -> Option<PathBuf> {
    let path = directory.join(DATABASE_FILE);
    let bytes = fs::metadata(&path).map_or(0, |file| file.len());
    (bytes == 0 && !has_log(&path)).then_some(path)
}

/// True when there is a log beside the database with something in it.
fn has_log(path: &Path) -> bool {
    log_bytes(path) > 0
}

/// Creates an empty file that only its owner can read.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map(drop)
}

fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    conn.busy_timeout(BUSY_PATIENCE)?;
    conn.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    when_closed(&conn, Log::Stays)?;
    conn.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = ON;
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA trusted_schema = OFF;",
    )?;
    Ok(conn)
}

/// What becomes of the log when a connection is closed that turns out to be the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Log {
    /// It stays as it is, for the next start: the database is refused, or has failed. The
    /// engine would move it, and so sync once more what could not be synced.
    Stays,
    /// What is left of it is moved, and it is removed.
    Goes,
}

/// Says what becomes of the log.
pub(crate) fn when_closed(conn: &Connection, log: Log) -> rusqlite::Result<()> {
    let no_checkpoint = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    conn.set_db_config(no_checkpoint, log == Log::Stays)?;
    Ok(())
}

/// A connection for copying the database while it is in use.
pub(crate) fn open_for_copy(path: &Path) -> rusqlite::Result<Connection> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Brings the database into shape on the connection that will write it.
fn prepare_writer(
    conn: &mut Connection,
    path: &Path,
    found: Found,
    options: &StateOptions,
) -> Result<(), OpenError> {
    let engine = |error: rusqlite::Error| OpenError::of(path, &error);
    if conn.is_readonly("main").map_err(engine)? {
        return Err(OpenError::NotWritable {
            path: path.to_owned(),
            detail: "permission denied".to_owned(),
        });
    }
    let version = user_version(conn).map_err(engine)?;
    if version > newest() {
        return Err(OpenError::Newer {
            path: path.to_owned(),
            found: version,
            known: newest(),
        });
    }
    // Not by what was found: where the very first write was interrupted, the header was ours
    // and the engine has just taken that write back.
    if version == 0 && application_id(conn).map_err(engine)? == 0 {
        // Written into the file's header before there is a log, so that the next start can
        // read it without the engine.
        conn.pragma_update(None, "application_id", APPLICATION_ID)
            .map_err(engine)?;
    }
    let mode = write_ahead(conn).map_err(engine)?;
    if mode != "wal" {
        return Err(OpenError::Failed {
            path: path.to_owned(),
            detail: format!("the journal mode is {mode}, not wal"),
        });
    }
    // What is deleted is overwritten: a message that was delivered leaves no trace.
    conn.pragma_update(None, "secure_delete", "ON")
        .map_err(engine)?;
    if found == Found::Ours {
        check_pages(conn, path)?;
    }
    migrate(conn, path, MIGRATIONS, options.clock.now())?;
    super::checkpoint::cut_wal(conn).map_err(engine)?;
    super::checkpoint::count_log_pages(conn);
    Ok(())
}

/// Whose the engine takes the database for; 0 for nobody's yet.
fn application_id(conn: &Connection) -> rusqlite::Result<u32> {
    conn.query_row("PRAGMA application_id", [], |row| row.get(0))
}

/// Has the engine write ahead, and answers the mode that it is in then.
fn write_ahead(conn: &Connection) -> rusqlite::Result<String> {
    // The engine answers first and commits the change of mode after its last row: whoever
    // reads one row only does not hear that it failed.
    let mut statement = conn.prepare("PRAGMA journal_mode = WAL")?;
    let modes = statement.query_map([], |row| row.get(0))?;
    let modes: Vec<String> = modes.collect::<Result<_, _>>()?;
    Ok(modes.concat())
}

/// A damaged page is found at start and not in the middle of a report.
fn check_pages(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let verdict: String = conn
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| OpenError::of(path, &error))?;
    if verdict == "ok" {
        return Ok(());
    }
    Err(OpenError::Corrupt {
        path: path.to_owned(),
        detail: verdict,
    })
}

fn log_head(conn: &Connection) -> rusqlite::Result<u64> {
    conn.query_row(
        "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events'",
        [],
        |row| row.get(0).map(crate::state::sql::uint),
    )
}
