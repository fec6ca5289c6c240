//! What a node agent answers on its own socket: itself what is about itself, and for the
//! programs of its machine what the gateway says.

use tidings_protocol::session_api::{ApiError, Call, ErrorType, Privilege, Reply, Request};
use tokio::sync::mpsc;

use super::relay::Relayer;
use super::socket::Responder;
use crate::connection::Agent;

/// Answers for a node agent.
#[derive(Debug)]
pub struct NodeResponder {
    agent: Agent,
    gateway: Relayer,
}

impl NodeResponder {
    /// Answers for this agent.
    #[must_use]
    pub fn new(agent: Agent) -> Self {
        Self {
            gateway: Relayer::new(agent.clone()),
            agent,
        }
    }
}

impl Responder for NodeResponder {
    async fn answer(&self, call: Call) -> Reply {
        self.agent.nudge_for(&call);
        match call.request.privilege() {
            Privilege::Session => self.gateway.answer(call).await,
            Privilege::Operator => Reply::Error(for_the_operator()),
            Privilege::Public => match call.request {
                Request::NodeStatus {} => Reply::NodeStatus(Box::new(self.agent.status().await)),
                _ => Reply::Error(ApiError::new(
                    ErrorType::Unsupported,
                    "a node agent does not answer this request",
                )),
            },
        }
    }

    fn follow(&self, call: Call) -> mpsc::Receiver<Reply> {
        if call.request.privilege() == Privilege::Session {
            return self.gateway.follow(call);
        }
        let (replies, receiver) = mpsc::channel(1);
        // The channel has room for one and nobody else holds it.
        let _ = replies.try_send(Reply::Error(for_the_operator()));
        receiver
    }
}

fn for_the_operator() -> ApiError {
    ApiError::new(
        ErrorType::NotPermitted,
        "this is an operator's request: it is not answered over a node's connection",
    )
    .with_hint("ask the gateway, on its machine")
}
