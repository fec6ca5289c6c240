//! The one thread that writes. Requests that wait together share one transaction and one
//! fsync, and are answered only after the commit.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tidings_node::clock::Clock;

use super::checkpoint::{CheckpointSignal, Cut, cut_wal};
use super::erasure::Erasure;
use super::fault::{Fault, failure as failure_of};
use super::files::Files;
use super::hub::Hub;
use super::names::Names;
use super::open::{Log, when_closed};
use super::panicking::PanicGuard;
use super::queue::{Job, Next, Queue, Ran};
use super::tx::{Meaning, Tx};
use crate::state::{Health, StateError};

/// How many requests share one commit, at most: enough that the fsync is a small part of
/// each, few enough that one failing request does not make a thousand run again.
const MAX_GROUP_REQUESTS: usize = 256;
/// How long a group works before it commits: no request waits much longer than an fsync.
const MAX_GROUP_WORK: Duration = Duration::from_millis(4);
/// How often a full disk is tried again.
const RETRY_FULL_DISK: Duration = Duration::from_secs(5);

/// What the writer thread works with.
pub(crate) struct WriterParts {
    pub(crate) conn: Connection,
    pub(crate) files: Arc<Files>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) checkpoints: Arc<CheckpointSignal>,
}

/// The thread's own state.
pub(crate) struct WriterThread {
    queue: Arc<Queue>,
    conn: Connection,
    names: Names,
    files: Arc<Files>,
    clock: Arc<dyn Clock>,
    hub: Arc<Hub>,
    checkpoints: Arc<CheckpointSignal>,
    /// While the disk is full: when to try again.
    full: Option<Duration>,
    erasure: Erasure,
}

/// Why a transaction did not go through.
enum Failure {
    Engine(rusqlite::Error),
    /// A request declined after it had written something.
    RefusedLate,
}

impl Failure {
    fn is_locked(&self) -> bool {
        matches!(self, Self::Engine(error) if Fault::of(error) == Fault::Locked)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error)
    }
}

impl WriterThread {
    pub(crate) fn new(parts: WriterParts, queue: Arc<Queue>) -> Self {
        Self {
            queue,
            conn: parts.conn,
            names: Names::default(),
            files: parts.files,
            clock: parts.clock,
            hub: parts.hub,
            checkpoints: parts.checkpoints,
            full: None,
            erasure: Erasure::default(),
        }
    }

    /// Serves requests until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        let path = self.path().to_owned();
        let _guard = PanicGuard::new(Arc::clone(&self.queue), Arc::clone(&self.hub), path);
        loop {
            match self.queue.wait(self.patience()) {
                Next::Job(job) => {
                    self.serve(job);
                    if self.erasure.is_overdue(self.clock.monotonic()) {
                        self.erase();
                    }
                }
                Next::Nothing if self.full.is_some() => self.probe_disk(),
                Next::Nothing => self.erase(),
                Next::Closed => break,
            }
        }
        self.leave();
    }

    fn path(&self) -> &Path {
        self.files.database()
    }

    /// How long to wait for a request when there is something else to do.
    fn patience(&self) -> Option<Duration> {
        let full = self.full.map(|_| RETRY_FULL_DISK);
        full.or(self.erasure.patience())
    }

    /// Cuts the log, in which text that was erased is still to be read. Where a reader is in
    /// the way it is tried again.
    fn erase(&mut self) {
        let cut = match self.standstill() {
            // Of a database that has failed nothing is written any more.
            Some(_) => Ok(Cut::InUse),
            None => self.checkpoints.cut(&self.conn, self.path()),
        };
        let cut = cut.unwrap_or_else(|error| {
            self.put_off(&error);
            Cut::InUse
        });
        self.erasure.tried(cut, self.clock.monotonic());
    }

    /// Moves what is left of the log before the connection is closed, unless nothing that is
    /// written can be trusted any more.
    fn leave(&self) {
        if self.hub.failed().is_some() {
            return;
        }
        let moved = cut_wal(&self.conn).and_then(|_| when_closed(&self.conn, Log::Goes));
        let Err(error) = moved else { return };
        match Fault::of(&error) {
            Fault::Fatal => self.fail(&error),
            Fault::DiskFull | Fault::Locked | Fault::Statement => {
                tracing::warn!(path = %self.path().display(), %error, "the log was not cut");
            }
        }
    }

    /// Serves a request, and with it what waits behind it.
    fn serve(&mut self, job: Box<dyn Job>) {
        if let Some(retry_at) = self.full
            && self.clock.monotonic() >= retry_at
        {
            self.probe_disk();
        }
        match self.standstill() {
            Some(error) => job.answer(Some(error)),
            None => self.group(job),
        }
    }

    /// Why nothing can be written now.
    fn standstill(&self) -> Option<StateError> {
        if let Some(failed) = self.hub.failed() {
            return Some(failed.clone());
        }
        self.full.map(|_| StateError::DiskFull {
            path: self.path().to_owned(),
        })
    }

    fn group(&mut self, first: Box<dyn Job>) {
        let mut ran = Vec::new();
        let mut meaning = Meaning::default();
        let result = self.run_group(first, &mut ran, &mut meaning);
        match result {
            Ok(()) => self.committed(meaning, ran),
            Err(failure) => {
                self.recover(&failure, ran);
                if failure.is_locked() {
                    self.turn_away();
                }
            }
        }
    }

    /// Another process has held the database for as long as anybody waits: whoever waited
    /// meanwhile has waited as well, and is not to wait once more behind each other.
    fn turn_away(&self) {
        for _ in 0..MAX_GROUP_REQUESTS {
            let Some(job) = self.queue.take() else { return };
            job.answer(Some(StateError::Locked {
                path: self.path().to_owned(),
            }));
        }
    }

    fn run_group(
        &mut self,
        first: Box<dyn Job>,
        ran: &mut Vec<Box<dyn Job>>,
        meaning: &mut Meaning,
    ) -> Result<(), Failure> {
        ran.push(first);
        self.begin()?;
        let until = self.clock.monotonic() + MAX_GROUP_WORK;
        while let Some(job) = ran.last_mut() {
            step(
                &self.conn,
                &mut self.names,
                &*self.clock,
                &mut **job,
                meaning,
            )?;
            if ran.len() >= MAX_GROUP_REQUESTS || self.clock.monotonic() >= until {
                break;
            }
            match self.queue.take() {
                Some(job) => ran.push(job),
                None => break,
            }
        }
        self.commit()?;
        Ok(())
    }

    /// Ends a transaction that failed, then does what its requests still need.
    fn recover(&mut self, failure: &Failure, ran: Vec<Box<dyn Job>>) {
        let standstill = self.roll_back(failure);
        if standstill.is_none() && ran.len() > 1 {
            for job in ran {
                self.alone(job);
            }
            return;
        }
        let error = standstill.or_else(|| self.own_error(failure));
        for job in ran {
            job.answer(error.clone());
        }
    }

    /// Runs one request in a transaction of its own, so that a bad one fails alone.
    fn alone(&mut self, mut job: Box<dyn Job>) {
        if let Some(error) = self.standstill() {
            return job.answer(Some(error));
        }
        let mut meaning = Meaning::default();
        match self.run_alone(&mut *job, &mut meaning) {
            Ok(()) => self.committed(meaning, vec![job]),
            Err(failure) => {
                let error = self
                    .roll_back(&failure)
                    .or_else(|| self.own_error(&failure));
                job.answer(error);
            }
        }
    }

    fn run_alone(&mut self, job: &mut dyn Job, meaning: &mut Meaning) -> Result<(), Failure> {
        self.begin()?;
        step(&self.conn, &mut self.names, &*self.clock, job, meaning)?;
        self.commit()?;
        Ok(())
    }

    /// Rolls back where the engine has not done so by itself, and judges what failed.
    /// Answers why nothing can be written from now on, where that is so.
    fn roll_back(&mut self, failure: &Failure) -> Option<StateError> {
        self.names.forget_all();
        self.hub.meter().rolled_back();
        if !self.conn.is_autocommit()
            && let Err(error) = self.conn.execute_batch("ROLLBACK")
        {
            self.fail(&error);
        } else if let Failure::Engine(error) = failure {
            match Fault::of(error) {
                Fault::DiskFull => self.disk_is_full(),
                Fault::Fatal => self.fail(error),
                Fault::Locked | Fault::Statement => {}
            }
        }
        self.standstill()
    }

    /// What a failure means for the one request that caused it: `None` where the request
    /// holds its own refusal.
    fn own_error(&self, failure: &Failure) -> Option<StateError> {
        match failure {
            Failure::Engine(error) => Some(failure_of(self.path(), error)),
            Failure::RefusedLate => None,
        }
    }

    fn committed(&mut self, meaning: Meaning, ran: Vec<Box<dyn Job>>) {
        // What went to a file that nobody finds again is not to be acknowledged.
        if let Err(error) = self.files.check() {
            self.fail_with(error.clone());
            for job in ran {
                job.answer(Some(error.clone()));
            }
            return;
        }
        if meaning.erased {
            self.erasure.note(self.clock.monotonic());
        }
        self.hub.meter().committed(ran.len());
        self.hub.publish(meaning.head, meaning.effects.into_iter());
        for job in ran {
            job.answer(None);
        }
        if let Err(error) = self.checkpoints.committed(&self.conn, self.path()) {
            self.put_off(&error);
        }
    }

    /// The log was not moved.
    fn put_off(&self, error: &rusqlite::Error) {
        match Fault::of(error) {
            Fault::Fatal => self.fail(error),
            Fault::DiskFull | Fault::Locked | Fault::Statement => {
                tracing::warn!(%error, "a checkpoint was put off");
            }
        }
    }

    fn begin(&self) -> rusqlite::Result<()> {
        self.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(())
    }

    fn commit(&self) -> rusqlite::Result<()> {
        self.conn.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    /// Finds out whether a full disk has room again.
    fn probe_disk(&mut self) {
        let probe = || -> rusqlite::Result<()> {
            self.begin()?;
            self.conn
                .execute("UPDATE write_probe SET at = ?1", [self.clock.now()])?;
            self.commit()
        };
        match probe() {
            Ok(()) => {
                self.full = None;
                self.hub.report(Health::Serving);
                tracing::info!(path = %self.path().display(), "the database is written again");
            }
            Err(error) => {
                self.full = Some(self.clock.monotonic() + RETRY_FULL_DISK);
                self.roll_back(&Failure::Engine(error));
            }
        }
    }

    fn disk_is_full(&mut self) {
        let first = self.full.is_none();
        self.full = Some(self.clock.monotonic() + RETRY_FULL_DISK);
        if first {
            let error = StateError::DiskFull {
                path: self.path().to_owned(),
            };
            tracing::error!(%error, "reading only until there is room");
            self.hub.report(Health::ReadOnly(Arc::new(error)));
        }
    }

    /// Nothing is written any more: what the file holds is unknown.
    fn fail(&self, error: &rusqlite::Error) {
        self.fail_with(StateError::Fatal {
            path: self.path().to_owned(),
            detail: error.to_string(),
        });
    }

    fn fail_with(&self, error: StateError) {
        tracing::error!(%error, "the database has failed");
        self.hub.report(Health::Failed(Arc::new(error)));
    }
}

/// Runs one request inside the open transaction.
fn step(
    conn: &Connection,
    names: &mut Names,
    clock: &dyn Clock,
    job: &mut dyn Job,
    meaning: &mut Meaning,
) -> Result<(), Failure> {
    let changes = conn.total_changes();
    let (head, effects, erased) = (meaning.head, meaning.effects.len(), meaning.erased);
    match job.run(&mut Tx::new(conn, names, meaning, clock.now()))? {
        Ran::Done => Ok(()),
        Ran::Refused => {
            meaning.head = head;
            meaning.effects.truncate(effects);
            meaning.erased = erased;
            if conn.total_changes() == changes {
                Ok(())
            } else {
                Err(Failure::RefusedLate)
            }
        }
    }
}
