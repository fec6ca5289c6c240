//! Threads that may block. Unlike a runtime's own they are never waited for: one that is
//! stuck in a file system that never answers must not keep the process from ending.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a thread that has nothing to do stays: the bursts it is kept for come closer
/// together, and nobody pays for it in the quiet between.
const IDLE_LIMIT: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// A pool of threads, made as they are needed.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    news: Condvar,
    limit: usize,
}

#[derive(Default)]
struct State {
    /// Bounded by whoever runs jobs: at most one per free slot.
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    stopped: Stopped,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stopped {
    #[default]
    No,
    Yes,
}

impl Pool {
    /// A pool of at most `limit` threads.
    pub(super) fn new(limit: usize) -> Self {
        let shared = Shared {
            state: Mutex::default(),
            news: Condvar::new(),
            limit,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Runs the job on a thread of the pool, as soon as one is free. What it captured is
    /// dropped instead when the pool has stopped.
    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.shared.lock();
        if state.stopped == Stopped::Yes {
            return;
        }
        state.jobs.push_back(Box::new(job));
        if state.idle < state.jobs.len() && state.threads < self.shared.limit {
            let shared = self.shared.clone();
            let thread = thread::Builder::new().name("tidings-reader".to_owned());
            match thread.spawn(move || shared.work()) {
                Ok(_) => state.threads += 1,
                Err(error) => tracing::warn!(%error, "no thread can be made to read with"),
            }
        }
        drop(state);
        self.shared.news.notify_one();
    }

    /// Takes no more jobs and ends the threads that are not stuck.
    pub(super) fn stop(&self) {
        let mut state = self.shared.lock();
        state.stopped = Stopped::Yes;
        let waiting = std::mem::take(&mut state.jobs);
        drop(state);
        drop(waiting);
        self.shared.news.notify_all();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn work(&self) {
        while let Some(job) = self.next_job() {
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!("a job of the readers' pool failed");
            }
        }
    }

    /// The next job; `None` when the thread is not needed any more.
    fn next_job(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.stopped == Stopped::Yes {
                state.threads -= 1;
                return None;
            }
            state.idle += 1;
            let (woken, waited) = self
                .news
                .wait_timeout(state, IDLE_LIMIT)
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if waited.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The counts are right after every statement that can be interrupted.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("jobs", &self.jobs.len())
            .field("threads", &self.threads)
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, sync_channel};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn a_stuck_job_holds_up_no_other_and_no_more_threads_than_allowed_are_made() {
        let pool = Pool::new(2);
        let (unblock, blocked) = sync_channel::<()>(0);
        let (done, results) = sync_channel(16);
        let told = done.clone();
        pool.run(move || {
            let _ = blocked.recv();
            let _ = told.send(0);
        });
        for n in 1..=10 {
            let told = done.clone();
            pool.run(move || {
                let _ = told.send(n);
            });
        }
        let finished: Vec<i32> = (0..10)
            .map(|_| results.recv_timeout(PATIENCE).expect("a result"))
            .collect();
        assert_eq!(finished, (1..=10).collect::<Vec<_>>());
        assert_eq!(pool.shared.lock().threads, 2);
        drop(unblock);
        assert_eq!(results.recv_timeout(PATIENCE), Ok(0));
    }

    #[test]
    fn a_job_that_panics_costs_only_itself() {
        let pool = Pool::new(1);
        let (done, results) = sync_channel(1);
        pool.run(|| panic!("on purpose"));
        pool.run(move || {
            let _ = done.send(());
        });
        assert_eq!(results.recv_timeout(PATIENCE), Ok(()));
    }

    #[test]
    fn a_stopped_pool_drops_what_it_is_given() {
        let pool = Pool::new(1);
        pool.stop();
        let (done, results) = sync_channel::<()>(1);
        pool.run(move || {
            let _ = done.send(());
        });
        let dropped = results.recv_timeout(PATIENCE);
        assert_eq!(dropped, Err(RecvTimeoutError::Disconnected));
    }
}
