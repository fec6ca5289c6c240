//! Connections that wait for their next request: what holds a place and does nothing with it
//! makes room when all places are taken.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The connections that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// The number of whoever began to wait last.
    last: u64,
    /// By number: who has waited longest is the first.
    waiting: BTreeMap<u64, oneshot::Sender<()>>,
}

/// A connection among those that wait; it waits no more once this is dropped.
#[derive(Debug)]
pub(super) struct Wait<'w> {
    all: &'w Waiting,
    number: u64,
    told: oneshot::Receiver<()>,
}

impl Waiting {
    /// A connection begins to wait.
    pub(super) fn begin(&self) -> Wait<'_> {
        let (tell, told) = oneshot::channel();
        let mut queue = self.lock();
        queue.last += 1;
        let number = queue.last;
        queue.waiting.insert(number, tell);
        Wait {
            all: self,
            number,
            told,
        }
    }

    /// Tells whoever has waited longest to go. False when nobody waits.
    pub(super) fn make_room(&self) -> bool {
        self.lock().waiting.pop_first().is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // It is whole after every statement.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wait<'_> {
    /// Completes when this connection is to go.
    pub(super) async fn is_over(&mut self) {
        // Its sender is dropped, and says nothing.
        let _ = (&mut self.told).await;
    }

    /// The connection has something to do. False when it was told to go before.
    pub(super) fn end(self) -> bool {
        self.all.lock().waiting.remove(&self.number).is_some()
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.all.lock().waiting.remove(&self.number);
    }
}

#[tokio::test]
async fn whoever_has_waited_longest_goes_first_and_who_has_something_to_do_stays() {
    let waiting = Waiting::default();
    assert!(!waiting.make_room());
    let (first, mut second, third) = (waiting.begin(), waiting.begin(), waiting.begin());
    assert!(first.end(), "busy");
    assert!(waiting.make_room());
    second.is_over().await;
    assert!(!second.end(), "too late");
    drop(third);
    assert!(!waiting.make_room(), "gone by itself");
}
