//! A target that is named by its adopted key becomes a session by that.

use tidings_protocol::identity::read_adopted_key;
use tidings_protocol::session_api::{Adopt, ApiError, ErrorType};

use super::Service;
use crate::state::SessionAddress;

impl Service {
    /// Adopts the thread that the key of a target names, where no session has that key yet.
    /// A thread that is not there is left to whoever asks for the session.
    pub(super) async fn adopt_named(&self, target: &SessionAddress) -> Result<(), ApiError> {
        let Some(thread) = read_adopted_key(target.key()) else {
            return Ok(());
        };
        if self.nodes.state.session_exists(target.clone()).await? {
            return Ok(());
        }
        let adopt = Adopt {
            catalog: thread.catalog,
            host: thread.host_name.to_string(),
            thread_id: thread.thread_id,
            agent: Some(thread.agent_id),
            watch_by: None,
        };
        match self.adopt(adopt).await {
            Ok(_) => Ok(()),
            Err(error) if error.error_type == ErrorType::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}
