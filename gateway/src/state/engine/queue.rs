//! What waits for the writer: three lanes, each bounded.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::tx::Tx;
use crate::state::StateError;

/// How many requests wait in each lane, at most; who comes later waits to get in. Four
/// groups of the interactive and report lanes are some ten milliseconds of work; upkeep
/// comes one batch at a time.
const LANE_CAPACITY: [usize; 3] = [1024, 1024, 64];

/// Which lane a request waits in; the writer takes from the first that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    /// Somebody waits for the answer.
    Interactive,
    /// A node waits for the acknowledgement.
    Report,
    /// Nobody waits.
    Upkeep,
}

/// What became of one run of a request inside a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ran {
    /// It did what it was asked.
    Done,
    /// It declined.
    Refused,
}

/// A request that the writer runs. It may be run again after a rollback.
pub(crate) trait Job: Send {
    /// Runs inside a transaction and keeps the result.
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<Ran, rusqlite::Error>;
    /// Answers with the result that was kept, or with what went wrong instead.
    fn answer(self: Box<Self>, failure: Option<StateError>);
    /// True when nobody waits for the answer any more.
    fn is_abandoned(&self) -> bool;
}

/// What the writer finds when it looks.
pub(crate) enum Next {
    /// Work.
    Job(Box<dyn Job>),
    /// Nothing, for as long as it was ready to wait.
    Nothing,
    /// The end: closed, and everything taken.
    Closed,
}

/// The requests that wait for the writer.
pub(crate) struct Queue {
    lanes: Mutex<Lanes>,
    ready: Condvar,
    room: [Semaphore; 3],
}

#[derive(Default)]
struct Lanes {
    jobs: [VecDeque<Box<dyn Job>>; 3],
    closed: bool,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self {
            lanes: Mutex::default(),
            ready: Condvar::new(),
            room: LANE_CAPACITY.map(Semaphore::new),
        }
    }

    /// Waits for room in the lane, then adds the request.
    pub(crate) async fn push(
        &self,
        priority: Priority,
        job: Box<dyn Job>,
    ) -> Result<(), StateError> {
        let lane = priority as usize;
        let room = self.room[lane].acquire().await;
        let room = room.map_err(|_| StateError::Closed)?;
        let mut lanes = self.lock();
        if lanes.closed {
            return Err(StateError::Closed);
        }
        lanes.jobs[lane].push_back(job);
        // Given back when the request is taken.
        SemaphorePermit::forget(room);
        drop(lanes);
        self.ready.notify_one();
        Ok(())
    }

    /// The next request that somebody still waits for, without waiting for one.
    pub(crate) fn take(&self) -> Option<Box<dyn Job>> {
        self.take_from(&mut self.lock())
    }

    /// The next request; waits for one, at most for `patience` where that is given.
    pub(crate) fn wait(&self, patience: Option<Duration>) -> Next {
        let mut lanes = self.lock();
        loop {
            if let Some(job) = self.take_from(&mut lanes) {
                return Next::Job(job);
            }
            if lanes.closed {
                return Next::Closed;
            }
            let Some(patience) = patience else {
                lanes = self
                    .ready
                    .wait(lanes)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (again, timeout) = self
                .ready
                .wait_timeout(lanes, patience)
                .unwrap_or_else(PoisonError::into_inner);
            lanes = again;
            if timeout.timed_out() {
                return match self.take_from(&mut lanes) {
                    Some(job) => Next::Job(job),
                    None => Next::Nothing,
                };
            }
        }
    }

    /// How many requests wait in each lane.
    pub(crate) fn lengths(&self) -> [usize; 3] {
        self.lock().jobs.each_ref().map(VecDeque::len)
    }

    /// Lets nothing more in. What waits is still taken.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        for room in &self.room {
            room.close();
        }
        self.ready.notify_all();
    }

    /// Lets nothing more in and drops what waits.
    pub(crate) fn abandon(&self) {
        self.close();
        self.lock().jobs = Default::default();
    }

    fn take_from(&self, lanes: &mut Lanes) -> Option<Box<dyn Job>> {
        for (lane, room) in lanes.jobs.iter_mut().zip(&self.room) {
            while let Some(job) = lane.pop_front() {
                room.add_permits(1);
                if !job.is_abandoned() {
                    return Some(job);
                }
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Lanes> {
        // A panic while the lock is held leaves the lanes whole: nothing in between.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
