//! What the writer counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of one process.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    commits: AtomicU64,
    requests: AtomicU64,
    rolled_back: AtomicU64,
}

/// What was counted so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriterFigures {
    /// Committed transactions; each is one group of requests.
    pub commits: u64,
    /// The requests in them.
    pub requests: u64,
    /// Transactions that were rolled back.
    pub rolled_back: u64,
}

impl Meter {
    pub(crate) fn committed(&self, requests: usize) {
        let requests = u64::try_from(requests).unwrap_or(u64::MAX);
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.requests.fetch_add(requests, Ordering::Relaxed);
    }

    pub(crate) fn rolled_back(&self) {
        self.rolled_back.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn figures(&self) -> WriterFigures {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        WriterFigures {
            commits: read(&self.commits),
            requests: read(&self.requests),
            rolled_back: read(&self.rolled_back),
        }
    }
}
