//! What every connection of a node needs.

use std::sync::{Arc, Mutex, PoisonError};

use tidings_node::clock::Clock;

use super::approvals::Approvals;
use super::attempts::Attempts;
use super::authority::Authority;
use super::expiry::Life;
use super::presence::Presences;
use crate::state::State;

/// What every connection needs.
pub struct NodeContext {
    /// The state database.
    pub state: State,
    /// Who is connected.
    pub presences: Presences,
    /// Who asks to become a node.
    pub approvals: Arc<Approvals>,
    /// How often machines asked lately.
    pub(super) requests: Attempts,
    /// The life of the certificate that the endpoint shows.
    server_leaf: Mutex<Option<Life>>,
    /// The certificate authority.
    pub authority: Authority,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl NodeContext {
    /// Nobody is connected yet.
    #[must_use]
    pub fn new(state: State, authority: Authority, clock: Arc<dyn Clock>) -> Self {
        Self {
            state,
            presences: Presences::new(clock.clone()),
            approvals: Approvals::new(clock.clone()),
            requests: Attempts::default(),
            server_leaf: Mutex::default(),
            authority,
            clock,
        }
    }

    /// The life of the certificate that the endpoint shows, once there is one.
    pub(super) fn server_leaf(&self) -> Option<Life> {
        let leaf = self.server_leaf.lock();
        leaf.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The endpoint shows another certificate from now on.
    pub(super) fn set_server_leaf(&self, life: Life) {
        let mut leaf = self
            .server_leaf
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *leaf = Some(life);
    }
}

impl std::fmt::Debug for NodeContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeContext").finish_non_exhaustive()
    }
}
