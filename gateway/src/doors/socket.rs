//! The gateway's own socket: the session interface, and for hooks the node agent of this
//! machine, which is to read at once what they speak of.

use std::sync::{Arc, OnceLock};

use tidings_node::connection::Agent;
use tidings_node::local::socket::Responder;
use tidings_protocol::session_api::{Call, Reply};
use tokio::sync::mpsc;

use super::Service;

/// Answers on the gateway's own socket.
#[derive(Debug)]
pub struct SocketDoor {
    service: Arc<Service>,
    agent: Arc<OnceLock<Agent>>,
}

impl SocketDoor {
    /// Answers with this service; `agent` holds the node agent of this machine, once and if
    /// there is one.
    #[must_use]
    pub fn new(service: Arc<Service>, agent: Arc<OnceLock<Agent>>) -> Self {
        Self { service, agent }
    }
}

impl Responder for SocketDoor {
    async fn answer(&self, call: Call) -> Reply {
        if let Some(agent) = self.agent.get() {
            agent.nudge_for(&call);
        }
        self.service.answer(call).await
    }

    fn follow(&self, call: Call) -> mpsc::Receiver<Reply> {
        self.service.follow(call)
    }
}
