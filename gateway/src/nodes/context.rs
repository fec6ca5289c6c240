//! What every connection of a node needs.

use std::sync::Arc;

use tidings_node::clock::Clock;

use super::authority::Authority;
use super::presence::Presences;
use crate::state::State;

/// What every connection needs.
pub struct NodeContext {
    /// The state database.
    pub state: State,
    /// Who is connected.
    pub presences: Presences,
    /// The certificate authority.
    pub authority: Authority,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for NodeContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeContext").finish_non_exhaustive()
    }
}
