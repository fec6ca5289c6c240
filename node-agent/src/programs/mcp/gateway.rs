//! The gateway, as the tools ask it: a connection per call, so that one that was away is
//! found when it is back.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tidings_protocol::EpochMs;
use tidings_protocol::session_api::{ApiError, Caller, ErrorType, Reply, Request};

use crate::cli::Door;
use crate::cli::format::utc;
use crate::clock::{Clock, SystemClock};
use crate::connection::REQUEST_DEADLINE;

/// How long an answer may take: somewhat more than a machine that the gateway asks has, so
/// that it is the gateway that says why. A model is not kept waiting longer.
const DEADLINE: Duration = REQUEST_DEADLINE.saturating_add(Duration::from_secs(2));

/// Asks through a door, and remembers since when nobody answers there.
#[derive(Debug)]
pub(super) struct Gateway {
    door: Door,
    clock: SystemClock,
    away_since: Mutex<Option<EpochMs>>,
}

impl Gateway {
    pub(super) fn new(door: Door) -> Self {
        Self {
            door: Door {
                deadline: DEADLINE,
                ..door
            },
            clock: SystemClock::new(),
            away_since: Mutex::new(None),
        }
    }

    /// The answer to a request of this caller.
    pub(super) async fn ask(
        &self,
        caller: Option<Caller>,
        request: Request,
    ) -> Result<Reply, ApiError> {
        let answered = self.ask_once(caller, request).await;
        let mut since = self
            .away_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match answered {
            Err(error) if error.error_type == ErrorType::Unavailable => {
                let first = *since.get_or_insert_with(|| self.clock.now());
                Err(ApiError {
                    message: format!(
                        "{}; out of reach at least since {} UTC",
                        error.message,
                        utc(first)
                    ),
                    ..error
                })
            }
            answered => {
                *since = None;
                answered
            }
        }
    }

    async fn ask_once(&self, caller: Option<Caller>, request: Request) -> Result<Reply, ApiError> {
        let mut connection = self.door.clone().connect().await?;
        if let Some(caller) = caller {
            connection.introduce(&caller).await?;
        }
        connection.ask(&request).await
    }
}
