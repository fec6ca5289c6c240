//! The handle on the writer thread, and the requests that go to it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::group::{WriterParts, WriterThread};
use super::panicking::panicked;
use super::queue::{Job, Priority, Queue, Ran};
use super::tx::{OpError, OpResult, Tx};
use crate::state::StateError;

/// The handle on the writer thread.
pub(crate) struct Writer {
    queue: Arc<Queue>,
    path: PathBuf,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the writer thread.
    pub(crate) fn start(parts: WriterParts) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::new());
        let path = parts.files.database().to_owned();
        let thread = WriterThread::new(parts, Arc::clone(&queue));
        let handle = std::thread::Builder::new()
            .name("state-writer".to_owned())
            .spawn(move || thread.run())?;
        Ok(Self {
            queue,
            path,
            thread: Mutex::new(Some(handle)),
        })
    }

    /// Runs an operation in a transaction and answers after the commit.
    pub(crate) async fn run<T, F>(&self, priority: Priority, op: F) -> Result<T, StateError>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> OpResult<T> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job = Operation {
            op,
            result: None,
            answer,
        };
        self.queue.push(priority, Box::new(job)).await?;
        match answered.await {
            Ok(result) => result,
            // Only a panic drops a request without an answer.
            Err(_) => Err(panicked(&self.path)),
        }
    }

    /// How many requests wait, lane by lane.
    pub(crate) fn queued(&self) -> [usize; 3] {
        self.queue.lengths()
    }

    /// Lets nothing more in; what waits is still written.
    pub(crate) fn close(&self) {
        self.queue.close();
    }

    /// Waits until everything is written and the connection closed. Blocks.
    pub(crate) fn join(&self) {
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // A panic in there has been reported as the database's failure.
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

/// An operation with its result and whoever waits for it.
struct Operation<F, T> {
    op: F,
    result: Option<Result<T, StateError>>,
    answer: oneshot::Sender<Result<T, StateError>>,
}

impl<F, T> Job for Operation<F, T>
where
    T: Send,
    F: FnMut(&mut Tx<'_>) -> OpResult<T> + Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<Ran, rusqlite::Error> {
        let (result, ran) = match (self.op)(tx) {
            Ok(value) => (Ok(value), Ran::Done),
            Err(OpError::Refused(refusal)) => (Err(refusal), Ran::Refused),
            Err(OpError::Engine(error)) => return Err(error),
        };
        self.result = Some(result);
        Ok(ran)
    }

    fn answer(self: Box<Self>, failure: Option<StateError>) {
        let result = match failure {
            Some(failure) => Err(failure),
            None => self.result.unwrap_or(Err(StateError::Closed)),
        };
        // An error says that nobody waits any more.
        let _ = self.answer.send(result);
    }

    fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }
}
