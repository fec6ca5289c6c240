//! What a commit means to the rest of the gateway: nodes hear of their links, projections
//! follow their entries.

use std::sync::Arc;

use tidings_protocol::Host;
use tidings_protocol::wire::Message;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};

use crate::nodes::NodeContext;
use crate::state::{AgentId, Effect, NodeStanding};

/// Passes effects on until the state closes.
pub(crate) async fn pass_on(
    context: Arc<NodeContext>,
    mut effects: broadcast::Receiver<Effect>,
    projections: mpsc::Sender<AgentId>,
) {
    loop {
        match effects.recv().await {
            Ok(effect) => pass_on_one(&context, effect, &projections).await,
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "effects were missed: everything is read afresh");
                context.presences.resync();
                all_projections(&context, &projections).await;
            }
            Err(RecvError::Closed) => return,
        }
    }
}

/// Has the projection of every agent written.
pub(crate) async fn all_projections(context: &NodeContext, projections: &mpsc::Sender<AgentId>) {
    match context.state.agents().await {
        Ok(agents) => {
            for agent in agents {
                let _ = projections.send(agent).await;
            }
        }
        Err(error) => tracing::warn!(%error, "the agents could not be listed"),
    }
}

async fn pass_on_one(context: &NodeContext, effect: Effect, projections: &mpsc::Sender<AgentId>) {
    match effect {
        Effect::LinkChanged { host, link } => match context.state.link(link).await {
            Ok(Some(link)) => context.presences.tell(&host, Message::Link(Box::new(link))),
            Ok(None) => context.presences.tell(&host, Message::LinkRemoved { link }),
            Err(error) => {
                tracing::warn!(%error, "a changed link could not be read");
                context.presences.disconnect(&host, "resync");
            }
        },
        Effect::LinkRemoved { host, link } => {
            context.presences.tell(&host, Message::LinkRemoved { link });
        }
        Effect::EntriesChanged { agent } => {
            let _ = projections.send(agent).await;
        }
        Effect::NodeChanged { node } => {
            let standing = context.state.node(node.clone()).await;
            let active =
                standing.is_ok_and(|node| node.is_some_and(|n| n.standing == NodeStanding::Active));
            if !active {
                context
                    .presences
                    .disconnect(&Host::Node(node), "no longer a node");
            }
        }
        // A wake is for the wake stream, which subscribes by itself.
        _ => {}
    }
}
