//! What the door counts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts of one process.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// Requests by route and status: as many as there are routes and statuses.
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    connections: AtomicU64,
    streams: AtomicU64,
    cut_off: AtomicU64,
}

/// Counts one thing for as long as it is there.
#[derive(Debug)]
pub(super) struct Open {
    figures: Arc<Figures>,
    of: fn(&Figures) -> &AtomicU64,
}

impl Figures {
    /// A request was answered.
    pub(super) fn answered(&self, route: &'static str, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((route, status)).or_default() += 1;
    }

    /// Answered requests, by route and status.
    pub(super) fn requests(&self) -> BTreeMap<(&'static str, u16), u64> {
        let requests = self.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A connection, until it is dropped.
    pub(super) fn connection(self: &Arc<Self>) -> Open {
        Open::new(self, |figures| &figures.connections)
    }

    /// A stream, until it is dropped.
    pub(super) fn stream(self: &Arc<Self>) -> Open {
        Open::new(self, |figures| &figures.streams)
    }

    /// A reader took nothing for too long.
    pub(super) fn cut_off(&self) {
        self.cut_off.fetch_add(1, Ordering::Relaxed);
    }

    /// Connections and streams that are open, and readers that were cut off.
    pub(super) fn counts(&self) -> [u64; 3] {
        [&self.connections, &self.streams, &self.cut_off].map(|count| count.load(Ordering::Relaxed))
    }
}

impl Open {
    fn new(figures: &Arc<Figures>, of: fn(&Figures) -> &AtomicU64) -> Self {
        of(figures).fetch_add(1, Ordering::Relaxed);
        Self {
            figures: figures.clone(),
            of,
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        (self.of)(&self.figures).fetch_sub(1, Ordering::Relaxed);
    }
}
