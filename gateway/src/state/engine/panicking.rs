//! What a panic of the writer thread means for everybody else.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::hub::Hub;
use super::queue::Queue;
use crate::state::{Health, StateError};

/// A panic on the writer thread is a failure of the database like any other.
pub(crate) fn panicked(path: &Path) -> StateError {
    StateError::Fatal {
        path: path.to_owned(),
        detail: "the writer panicked".to_owned(),
    }
}

/// Says so when the thread panics.
pub(crate) struct PanicGuard {
    queue: Arc<Queue>,
    hub: Arc<Hub>,
    path: PathBuf,
}

impl PanicGuard {
    pub(crate) fn new(queue: Arc<Queue>, hub: Arc<Hub>, path: PathBuf) -> Self {
        Self { queue, hub, path }
    }
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let error = panicked(&self.path);
            self.hub.report(Health::Failed(Arc::new(error)));
        }
        self.queue.abandon();
    }
}
