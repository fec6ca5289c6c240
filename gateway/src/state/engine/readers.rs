//! Connections that only read. They neither wait for the writer nor hold it up.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::fault::{Fault, failure};
use super::hub::Hub;
use crate::state::{Health, StateError};

/// How many readers there are: a page is read in well under a millisecond, so more would
/// only wait for the same two cores.
pub(crate) const READERS: usize = 4;

/// A pool of read-only connections.
pub(crate) struct Readers {
    path: PathBuf,
    hub: Arc<Hub>,
    idle: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf, hub: Arc<Hub>, connections: Vec<Connection>) -> Self {
        Self {
            path,
            hub,
            permits: Arc::new(Semaphore::new(connections.len())),
            idle: Arc::new(Mutex::new(connections)),
        }
    }

    /// Reads in one transaction, so that everything in the answer is of one moment.
    pub(crate) async fn read<T, F>(&self, op: F) -> Result<T, StateError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, ReadError> + Send + 'static,
    {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|_| StateError::Closed)?;
        let lent = Lent::take(Arc::clone(&self.idle), permit).ok_or(StateError::Closed)?;
        let (path, hub) = (self.path.clone(), Arc::clone(&self.hub));
        let result = tokio::task::spawn_blocking(move || {
            let result = read_in_transaction(&lent, op);
            drop(lent);
            result.map_err(|error| match error {
                ReadError::Refused(error) => error,
                ReadError::Engine(error) => failed(&path, &hub, &error),
            })
        });
        // A panic in there is ours; the connection went back all the same.
        result.await.unwrap_or(Err(StateError::Closed))
    }

    /// Lets nobody read any more and closes the connections; one that is lent is closed
    /// when it comes back.
    pub(crate) fn close(&self) {
        self.permits.close();
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

/// Why something was not read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// What was asked for cannot be answered.
    Refused(StateError),
    /// The engine failed.
    Engine(rusqlite::Error),
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<StateError> for ReadError {
    fn from(error: StateError) -> Self {
        Self::Refused(error)
    }
}

/// A page that cannot be read is a failure of the database, whoever finds it.
fn failed(path: &Path, hub: &Hub, error: &rusqlite::Error) -> StateError {
    let failure = failure(path, error);
    if Fault::of(error) == Fault::Fatal {
        tracing::error!(error = %failure, "the database has failed");
        hub.report(Health::Failed(Arc::new(failure.clone())));
    }
    failure
}

fn read_in_transaction<T>(
    lent: &Lent,
    op: impl FnOnce(&Connection) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    let Some(conn) = &lent.conn else {
        return Err(StateError::Closed.into());
    };
    // Rolled back when dropped, which for a reader is as good as committed.
    let transaction = Transaction::new_unchecked(conn, TransactionBehavior::Deferred)?;
    op(&transaction)
}

/// A connection that goes back to the pool whatever happens.
struct Lent {
    conn: Option<Connection>,
    idle: Arc<Mutex<Vec<Connection>>>,
    permit: OwnedSemaphorePermit,
}

impl Lent {
    fn take(idle: Arc<Mutex<Vec<Connection>>>, permit: OwnedSemaphorePermit) -> Option<Self> {
        let conn = idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        Some(Self {
            conn: Some(conn),
            idle,
            permit,
        })
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take()
            && !self.permit.semaphore().is_closed()
        {
            self.idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(conn);
        }
    }
}
