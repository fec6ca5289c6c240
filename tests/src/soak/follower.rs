//! Somebody who follows the log, over every end of the gateway: no signal is missed, none
//! comes twice, and each comes behind the one before it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidings_protocol::session_api::{Reply, Request, SignalsQuery};

use super::pace::Pace;
use crate::audit::Snapshot;
use crate::door::DoorClient;

/// How long it waits before it asks again whether a gateway is there.
const PATIENCE: Duration = Duration::from_millis(50);

/// A follower.
#[derive(Debug)]
pub(super) struct Follower {
    state_dir: PathBuf,
    /// The last sequence that it has seen, for whoever waits for it.
    last: Arc<AtomicU64>,
    seen: Vec<u64>,
    wrong: Vec<String>,
}

impl Follower {
    /// One who follows the log of this state directory from its beginning.
    pub(super) fn of(state_dir: &Path) -> Self {
        Self {
            state_dir: state_dir.to_owned(),
            last: Arc::default(),
            seen: Vec::new(),
            wrong: Vec::new(),
        }
    }

    /// The last sequence that it has seen.
    pub(super) fn last(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.last)
    }

    /// Follows until it is enough and the gateway has gone.
    pub(super) fn follow(mut self, pace: &Pace) -> Self {
        loop {
            if let Some(mut door) = DoorClient::try_connect(&self.state_dir) {
                self.follow_through(&mut door);
            }
            if !pace.rest(PATIENCE) {
                return self;
            }
        }
    }

    fn follow_through(&mut self, door: &mut DoorClient) {
        let query = SignalsQuery {
            after: Some(self.seen.last().copied().unwrap_or(0)),
            ..SignalsQuery::default()
        };
        let mut answer = door.try_ask(&Request::SignalsFollow(query));
        while let Some(reply) = answer {
            let Reply::Signals(page) = reply else {
                // It was turned away: a gateway that ends says so.
                return;
            };
            for signal in page.signals {
                self.sees(signal.sequence);
            }
            answer = door.next();
        }
    }

    fn sees(&mut self, sequence: u64) {
        let last = self.seen.last().copied().unwrap_or(0);
        if sequence <= last {
            self.wrong
                .push(format!("signal {sequence} was told behind {last}"));
        }
        self.seen.push(sequence);
        self.last.store(sequence, Ordering::Relaxed);
    }

    /// What is wrong, one line each, where the log is this by now.
    pub(super) fn compare(self, log: &Snapshot) -> Vec<String> {
        let mut wrong = self.wrong;
        if !self.seen.iter().eq(log.signals.keys()) {
            wrong.push(format!(
                "a follower has seen {} signals up to {:?}, the log has {} up to {}",
                self.seen.len(),
                self.seen.last(),
                log.signals.len(),
                log.head()
            ));
        }
        wrong
    }
}
