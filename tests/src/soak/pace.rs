//! How everybody at work learns that it is enough.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Goes on until somebody says that it is enough.
#[derive(Debug, Default)]
pub(super) struct Pace {
    enough: Mutex<bool>,
    said: Condvar,
}

impl Pace {
    /// Rests; false as soon as it is enough.
    pub(super) fn rest(&self, time: Duration) -> bool {
        let enough = self.enough.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .said
            .wait_timeout_while(enough, time, |enough| !*enough);
        let (enough, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !*enough
    }

    /// It is enough.
    pub(super) fn end(&self) {
        *self.enough.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.said.notify_all();
    }
}
