//! What a node agent answers on its own socket.

use tidings_protocol::session_api::{ApiError, ErrorType, Reply, Request};
use tokio::sync::mpsc;

use super::socket::{Follow, Responder};
use crate::connection::Agent;

/// Answers for a node agent.
#[derive(Debug)]
pub struct NodeResponder {
    agent: Agent,
}

impl NodeResponder {
    /// Answers for this agent.
    #[must_use]
    pub fn new(agent: Agent) -> Self {
        Self { agent }
    }
}

impl Responder for NodeResponder {
    async fn answer(&self, request: Request) -> Reply {
        match request {
            Request::NodeStatus {} => Reply::NodeStatus(Box::new(self.agent.status().await)),
            _ => Reply::Error(for_the_gateway()),
        }
    }

    fn follow(&self, _stream: Follow) -> mpsc::Receiver<Reply> {
        let (replies, receiver) = mpsc::channel(1);
        // The channel has room for one and nobody else holds it.
        let _ = replies.try_send(Reply::Error(for_the_gateway()));
        receiver
    }
}

fn for_the_gateway() -> ApiError {
    ApiError::new(
        ErrorType::Unsupported,
        "a node agent answers for itself only",
    )
    .with_hint("ask the gateway, on its machine")
}
