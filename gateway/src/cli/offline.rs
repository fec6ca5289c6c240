//! A state directory whose gateway does not run, for the commands that need none.

use std::path::Path;
use std::sync::Arc;

use tidings_node::clock::{Clock, SystemClock};
use tidings_node::held_dir::{HeldDir, HoldError, Holder};
use tidings_protocol::session_api::ApiError;

use crate::gateway::open_state;
use crate::sessions::files::Files;
use crate::sessions::projection::Stores;
use crate::{StartError, state::State};

/// The stores of a state directory, held as a gateway holds it.
pub(super) struct Offline {
    pub(super) stores: Stores,
    state: State,
    // Given back last.
    _held: HeldDir,
}

impl Offline {
    /// Opens a state directory, made new where it is missing. One that a gateway holds is
    /// refused with this hint.
    pub(super) async fn open(state_dir: &Path, live_hint: &str) -> Result<Self, ApiError> {
        let held = HeldDir::hold(state_dir, Holder::Gateway).map_err(|error| {
            let is_live = matches!(error, HoldError::Held { .. });
            let answer = ApiError::from(StartError::from(error));
            if is_live {
                answer.with_hint(live_hint)
            } else {
                answer
            }
        })?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let state = open_state(held.path(), clock.clone())
            .await
            .map_err(StartError::from)?;
        Ok(Self {
            stores: Stores {
                state: state.clone(),
                state_dir: held.path().to_owned(),
                files: Files::default(),
                clock,
            },
            state,
            _held: held,
        })
    }

    /// Closes the database and gives the directory back.
    pub(super) async fn close(self) {
        drop(self.stores);
        self.state.close().await;
    }
}
