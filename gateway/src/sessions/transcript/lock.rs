//! The write lock of a transcript: a file beside it, `<transcript>.lock`, that says who holds
//! it. It is put there whole and in one step, so it never names nobody; a lock whose process
//! has ended is taken over at once, one that names no process after `staleMs`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidings_node::clock::Clock;
use tidings_node::private_files::FileError;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::owner::Owner;
use crate::config;
use crate::sessions::files::Files;
use crate::state::fresh_token;

/// A larger file is no lock of ours.
const MAX_LOCK_BYTES: u64 = 4 * 1024;
/// How soon somebody who waits looks again, at first and later.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));

/// How long a lock is waited for, believed, and held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockTimes {
    /// How long a writer waits for it.
    pub acquire_timeout: Duration,
    /// From what age on a lock that nobody can be asked about is taken over.
    pub stale: Duration,
    /// How long it may be held here.
    pub max_hold: Duration,
}

/// Takes locks.
#[derive(Debug, Clone)]
pub struct Locker {
    files: Files,
    clock: Arc<dyn Clock>,
    times: LockTimes,
}

/// The right to append to one transcript. It ends when it is dropped, or by itself after
/// `maxHoldMs`.
#[derive(Debug)]
pub struct WriteLock {
    pub(super) held: Arc<Held>,
    watchdog: JoinHandle<()>,
}

/// Why there is no lock, or no longer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Somebody else holds it: trying again later may help.
    #[error("{path} is being written by process {holder}: waited {} ms", .waited.as_millis())]
    Busy {
        /// The transcript.
        path: PathBuf,
        /// Who holds it.
        holder: String,
        /// For how long it was waited.
        waited: Duration,
    },
    /// It was held for too long, or somebody took it over.
    #[error("the write lock of {path} is no longer held")]
    Lost {
        /// The transcript.
        path: PathBuf,
    },
    /// It cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

#[derive(Debug)]
pub(super) struct Held {
    pub(super) transcript: PathBuf,
    pub(super) files: Files,
    lock: PathBuf,
    token: String,
    // Whoever appends holds it meanwhile: the watchdog waits for the end of the append.
    is_lost: Mutex<bool>,
}

impl LockTimes {
    /// The configured times, where the environment does not say otherwise. A variable that is
    /// no number is none.
    #[must_use]
    pub fn resolve(config: &config::WriteLock, variable: impl Fn(&str) -> Option<String>) -> Self {
        let time = |name: &str, configured: u64| {
            let name = format!("TIDINGS_SESSION_WRITE_LOCK_{name}_MS");
            let given = variable(&name).and_then(|text| text.trim().parse().ok());
            Duration::from_millis(given.unwrap_or(configured))
        };
        Self {
            acquire_timeout: time("ACQUIRE_TIMEOUT", config.acquire_timeout_ms),
            stale: time("STALE", config.stale_ms),
            max_hold: time("MAX_HOLD", config.max_hold_ms),
        }
    }
}

/// What became of one attempt.
enum Attempt {
    Taken(Held),
    Busy { holder: String },
}

impl Locker {
    /// Takes locks by these times.
    #[must_use]
    pub fn new(files: Files, clock: Arc<dyn Clock>, times: LockTimes) -> Self {
        Self {
            files,
            clock,
            times,
        }
    }

    /// The same, but who finds a lock taken does not wait.
    #[must_use]
    pub fn without_waiting(mut self) -> Self {
        self.times.acquire_timeout = Duration::ZERO;
        self
    }

    /// Waits for the lock of a transcript, which need not exist yet.
    pub async fn acquire(&self, transcript: &Path) -> Result<WriteLock, LockError> {
        let began = Instant::now();
        let mut pause = LOOK_AGAIN.0;
        loop {
            let (locker, path) = (self.clone(), transcript.to_owned());
            let attempt = tokio::task::spawn_blocking(move || locker.attempt(&path)).await;
            let attempt = attempt
                .map_err(|error| FileError::at("lock", transcript)(std::io::Error::other(error)))?;
            let holder = match attempt? {
                Attempt::Taken(held) => return Ok(self.watched(held)),
                Attempt::Busy { holder } => holder,
            };
            let waited = began.elapsed();
            if waited >= self.times.acquire_timeout {
                return Err(LockError::Busy {
                    path: transcript.to_owned(),
                    holder,
                    waited,
                });
            }
            sleep(pause.min(self.times.acquire_timeout.saturating_sub(waited))).await;
            pause = (pause * 2).min(LOOK_AGAIN.1);
        }
    }

    /// Gives the lock back by itself when it is held for too long.
    fn watched(&self, held: Held) -> WriteLock {
        let held = Arc::new(held);
        let (guarded, limit) = (Arc::clone(&held), self.times.max_hold);
        let watchdog = tokio::spawn(async move {
            sleep(limit).await;
            tracing::warn!(
                path = %guarded.transcript.display(), limit_ms = limit.as_millis(),
                "a write lock was held for too long and is given back"
            );
            let _ = tokio::task::spawn_blocking(move || guarded.give_back()).await;
        });
        WriteLock { held, watchdog }
    }

    fn attempt(&self, transcript: &Path) -> Result<Attempt, FileError> {
        let lock = lock_path(transcript);
        let dir = directory(transcript);
        self.files.create_dir(dir)?;
        if let Some((content, modified)) = self.read(&lock)? {
            let owner: Option<Owner> = serde_json::from_slice(&content).ok();
            if !self.is_stale(owner.as_ref(), modified) {
                let holder = owner.map_or("unknown".to_owned(), |owner| owner.pid.to_string());
                return Ok(Attempt::Busy { holder });
            }
            self.take_away(&lock, &content)?;
        }
        let token = fresh_token()
            .map_err(|error| FileError::at("lock", transcript)(std::io::Error::other(error)))?;
        let owner = Owner::this_process(token, self.clock.now());
        if self.put(&lock, &owner)? {
            return Ok(Attempt::Taken(Held {
                transcript: transcript.to_owned(),
                files: self.files.clone(),
                lock,
                token: owner.token,
                is_lost: Mutex::new(false),
            }));
        }
        let holder = "unknown".to_owned();
        Ok(Attempt::Busy { holder })
    }

    fn read(&self, lock: &Path) -> Result<Option<(Vec<u8>, i64)>, FileError> {
        let read = self.files.read(lock, MAX_LOCK_BYTES)?;
        Ok(read.map(|(content, seen)| (content, seen.modified)))
    }

    fn is_stale(&self, owner: Option<&Owner>, modified: i64) -> bool {
        let age = u64::try_from(self.clock.now() - modified).unwrap_or(0);
        let is_old = Duration::from_millis(age) >= self.times.stale;
        match owner {
            Some(owner) => !owner.runs() || is_old,
            None => is_old,
        }
    }

    /// Takes away a lock, if it still is the one that was seen.
    fn take_away(&self, lock: &Path, seen: &[u8]) -> Result<(), FileError> {
        guarded(lock, || {
            if let Some((content, _)) = self.read(lock)?
                && content == seen
            {
                tracing::warn!(path = %lock.display(), "a stale write lock is taken over");
                self.files.remove(lock)?;
            }
            Ok(())
        })
    }

    /// Puts a lock in place, if none is there.
    fn put(&self, lock: &Path, owner: &Owner) -> Result<bool, FileError> {
        let mut draft = lock.as_os_str().to_owned();
        draft.push(format!(".{}", owner.token));
        let draft = PathBuf::from(draft);
        let content = serde_json::to_vec(owner)
            .map_err(|error| FileError::at("write", &draft)(error.into()))?;
        self.files.note(&draft, &content)?;
        let put = self.files.link(&draft, lock);
        self.files.remove(&draft)?;
        put
    }
}

impl Held {
    /// Does something while the lock certainly is held.
    pub(super) fn while_held<T>(
        &self,
        work: impl FnOnce() -> Result<T, FileError>,
    ) -> Result<T, LockError> {
        let is_lost = self.is_lost.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_lost || !self.is_ours()? {
            let path = self.transcript.clone();
            return Err(LockError::Lost { path });
        }
        Ok(work()?)
    }

    fn is_ours(&self) -> Result<bool, FileError> {
        let read = self.files.read(&self.lock, MAX_LOCK_BYTES)?;
        let owner = read.and_then(|(content, _)| serde_json::from_slice::<Owner>(&content).ok());
        Ok(owner.is_some_and(|owner| owner.token == self.token))
    }

    /// Waits for the end of an append, and ends the holding.
    fn give_back(&self) {
        let mut is_lost = self.is_lost.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *is_lost, true) {
            return;
        }
        let removed = guarded(&self.lock, || {
            if self.is_ours()? {
                self.files.remove(&self.lock)?;
            }
            Ok(())
        });
        if let Err(error) = removed {
            tracing::warn!(%error, "a write lock was not given back");
        }
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        self.watchdog.abort();
        self.held.give_back();
    }
}

/// Nobody else looks at a lock and takes it away meanwhile. The kernel ends this with the
/// process.
fn guarded<T>(lock: &Path, work: impl FnOnce() -> Result<T, FileError>) -> Result<T, FileError> {
    let dir = directory(lock);
    let guard = File::open(dir).map_err(FileError::at("open", dir))?;
    guard.lock().map_err(FileError::at("lock", dir))?;
    work()
}

fn lock_path(transcript: &Path) -> PathBuf {
    let mut lock = transcript.as_os_str().to_owned();
    lock.push(".lock");
    PathBuf::from(lock)
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}
