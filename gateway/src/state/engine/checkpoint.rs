//! Moves what is committed from the write-ahead log into the database file.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::fault::{Fault, failure};
use super::files::Files;
use super::hub::Hub;
use crate::state::Health;

/// After how many pages the log is moved, 8 MB of it: much of what is written is written
/// again soon, and moved once. What has not been moved is read again after a crash.
const PAGES_PER_MOVE: u64 = 2_048;
/// How many pages may have come since the last move for the writer to move them itself while
/// everybody waits: an fsync and some milliseconds.
const PAGES_LEFT: u64 = 512;
/// How large the log may grow before the writer cuts it. It grows when a reader holds on
/// to an old state for long.
const MAX_WAL_BYTES: u64 = 64 * 1024 * 1024;
/// How much more it may grow before a cut that failed is tried again.
const WAL_GRACE_BYTES: u64 = 16 * 1024 * 1024;
/// How long the writer waits for readers when it cuts the log: they read short pages.
const CUT_PATIENCE: Duration = Duration::from_millis(10);
/// How long any connection waits for another process that holds the database.
pub(crate) const BUSY_PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether the files are still in their places while nobody writes.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Tells the checkpoint thread that there is something to move.
pub(crate) struct CheckpointSignal {
    wanted: Mutex<Wanted>,
    changed: Condvar,
    /// While the checkpoint thread has something to do or does it.
    moving: AtomicBool,
    /// A move has ended, and the log has not begun anew since.
    has_moved: AtomicBool,
    /// How many pages the log has.
    pages: AtomicU64,
    /// How many it had when the last move began.
    moved: AtomicU64,
    /// How large the log is to be when it is cut.
    cut_above: AtomicU64,
}

#[derive(Default, Clone, Copy)]
struct Wanted {
    checkpoint: bool,
    stop: bool,
}

/// What the checkpoint thread is to do next.
enum Next {
    /// Move the log.
    Move,
    /// Look after the files.
    Look,
    /// End.
    Stop,
}

impl CheckpointSignal {
    pub(crate) fn new() -> Self {
        Self {
            wanted: Mutex::default(),
            changed: Condvar::new(),
            moving: AtomicBool::new(false),
            has_moved: AtomicBool::new(false),
            pages: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            cut_above: AtomicU64::new(MAX_WAL_BYTES),
        }
    }

    /// After a commit on the writer's connection, on its thread.
    ///
    /// The log begins anew, and stays as large as it is, with the first commit that finds
    /// all of it moved. While there is always another commit only the writer can bring that
    /// about, by moving the little that has come during the last move.
    pub(crate) fn committed(&self, writer: &Connection, database: &Path) -> rusqlite::Result<()> {
        let pages = LOG_PAGES.get();
        self.pages.store(pages, Ordering::Relaxed);
        if self.moving.load(Ordering::Acquire) {
            return Ok(());
        }
        let moved = self.moved.load(Ordering::Relaxed);
        let left = if pages < moved { pages } else { pages - moved };
        let too_large = log_bytes(database) > self.cut_above.load(Ordering::Relaxed);
        if left <= PAGES_LEFT {
            let has_moved = self.has_moved.swap(false, Ordering::Relaxed);
            return match (too_large, has_moved) {
                (true, _) => self.cut(writer, database).map(drop),
                (false, true) => move_log(writer),
                (false, false) => Ok(()),
            };
        }
        if too_large || left >= PAGES_PER_MOVE {
            self.moved.store(pages, Ordering::Relaxed);
            self.moving.store(true, Ordering::Release);
            self.set(|wanted| wanted.checkpoint = true);
        }
        Ok(())
    }

    /// Moves the log on a connection of its own, and then what has come meanwhile.
    fn move_twice(&self, conn: &Connection) -> rusqlite::Result<()> {
        move_log(conn)?;
        self.moved
            .store(self.pages.load(Ordering::Relaxed), Ordering::Relaxed);
        move_log(conn)?;
        self.has_moved.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Moves everything on the writer's connection and cuts the log to nothing, where no reader
    /// is in the way.
    pub(crate) fn cut(&self, writer: &Connection, database: &Path) -> rusqlite::Result<Cut> {
        let cut = cut_wal(writer)?;
        let limit = match cut {
            Cut::Done => MAX_WAL_BYTES,
            Cut::InUse => log_bytes(database).saturating_add(WAL_GRACE_BYTES),
        };
        self.cut_above.store(limit, Ordering::Relaxed);
        Ok(cut)
    }

    fn set(&self, change: impl FnOnce(&mut Wanted)) {
        change(&mut self.wanted.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    /// Waits for a wish, or for the next look at the files.
    fn wait(&self) -> Next {
        let wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let nothing = |wanted: &mut Wanted| !wanted.checkpoint && !wanted.stop;
        let (mut wanted, _) = self
            .changed
            .wait_timeout_while(wanted, LOOK_INTERVAL, nothing)
            .unwrap_or_else(PoisonError::into_inner);
        if wanted.stop {
            Next::Stop
        } else if std::mem::take(&mut wanted.checkpoint) {
            Next::Move
        } else {
            Next::Look
        }
    }
}

/// The handle on the checkpoint thread.
pub(crate) struct Checkpointer {
    signal: Arc<CheckpointSignal>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Checkpointer {
    /// Starts the thread with a connection of its own.
    pub(crate) fn start(
        conn: Connection,
        files: Arc<Files>,
        hub: Arc<Hub>,
        signal: Arc<CheckpointSignal>,
    ) -> std::io::Result<Self> {
        let waiting = Arc::clone(&signal);
        let thread = std::thread::Builder::new()
            .name("state-checkpoint".to_owned())
            .spawn(move || {
                loop {
                    match waiting.wait() {
                        Next::Stop => break,
                        Next::Look => look_after(&files, &hub),
                        Next::Move => {
                            if let Err(error) = waiting.move_twice(&conn) {
                                put_off(&error, files.database(), &hub);
                            }
                            waiting.moving.store(false, Ordering::Release);
                        }
                    }
                }
            })?;
        Ok(Self {
            signal,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Ends the thread and waits for it. Blocks.
    pub(crate) fn join(&self) {
        self.signal.set(|wanted| wanted.stop = true);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // It has no way to panic that would not show elsewhere.
            let _ = thread.join();
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.signal.set(|wanted| wanted.stop = true);
    }
}

thread_local! {
    /// How many pages the log has after the last commit on this thread.
    static LOG_PAGES: Cell<u64> = const { Cell::new(0) };
}

/// Has the commits of the writer's connection tell how many pages the log has.
pub(crate) fn count_log_pages(writer: &Connection) {
    writer.wal_hook(Some(|_, pages| {
        LOG_PAGES.set(u64::try_from(pages).unwrap_or(0));
        Ok(())
    }));
}

/// Moves what no reader needs any more, without waiting for anybody.
fn move_log(conn: &Connection) -> rusqlite::Result<()> {
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// Says so when a file is not in its place any more.
fn look_after(files: &Files, hub: &Hub) {
    if hub.failed().is_none()
        && let Err(error) = files.check()
    {
        tracing::error!(%error, "the database has failed");
        hub.report(Health::Failed(Arc::new(error)));
    }
}

/// The log was not moved.
fn put_off(error: &rusqlite::Error, path: &Path, hub: &Hub) {
    match Fault::of(error) {
        // An fsync that failed is never tried again: what it covered is unknown.
        Fault::Fatal => {
            let error = failure(path, error);
            tracing::error!(%error, "the database has failed");
            hub.report(Health::Failed(Arc::new(error)));
        }
        Fault::DiskFull | Fault::Locked | Fault::Statement => {
            tracing::warn!(%error, "a checkpoint was put off");
        }
    }
}

/// Whether the log was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It is empty now.
    Done,
    /// A reader holds on to it.
    InUse,
}

/// Moves everything and cuts the log to nothing, where no reader is in the way.
pub(crate) fn cut_wal(conn: &Connection) -> rusqlite::Result<Cut> {
    conn.busy_timeout(CUT_PATIENCE)?;
    let busy = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
    conn.busy_timeout(BUSY_PATIENCE)?;
    match busy {
        Ok(0_i64) => Ok(Cut::Done),
        Ok(_) => Ok(Cut::InUse),
        Err(error) if Fault::of(&error) == Fault::Locked => Ok(Cut::InUse),
        Err(error) => Err(error),
    }
}

/// How large the log beside the database is.
pub(crate) fn log_bytes(database: &Path) -> u64 {
    std::fs::metadata(log_path(database)).map_or(0, |file| file.len())
}

/// Where the log of this database is.
pub(crate) fn log_path(database: &Path) -> PathBuf {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}
