//! What the two daemons have in common: their runtime, and how they are told to stop.

use tidings_protocol::session_api::{ApiError, ErrorType};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// The runtime of a daemon: its work is short tasks and waiting, and it should not take a
/// machine over.
pub fn runtime() -> Result<Runtime, ApiError> {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| {
            ApiError::new(
                ErrorType::Internal,
                format!("no runtime can be started: {error}"),
            )
        })
}

/// Completes at the first SIGTERM or SIGINT after this call.
pub fn stop_signal() -> Result<impl Future<Output = ()>, ApiError> {
    let listen = |kind| {
        signal(kind).map_err(|error| {
            ApiError::new(
                ErrorType::Internal,
                format!("signals cannot be caught: {error}"),
            )
        })
    };
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
