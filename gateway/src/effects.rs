//! What a commit means to the rest of the gateway: nodes hear of their links, projections
//! follow their entries.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidings_protocol::Host;
use tidings_protocol::wire::Message;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};

use crate::nodes::NodeContext;
use crate::state::{AgentId, Effect, NodeStanding};

/// Passes effects on until the state closes.
///
/// Agents whose projection is due wait here for room, each once: files are written far more
/// slowly than commits come, and whoever waited for them would miss effects that nodes need.
pub(crate) async fn pass_on(
    context: Arc<NodeContext>,
    mut effects: broadcast::Receiver<Effect>,
    projections: mpsc::Sender<AgentId>,
) {
    let mut due = BTreeSet::new();
    loop {
        let effect = tokio::select! {
            effect = effects.recv() => effect,
            room = projections.reserve(), if !due.is_empty() => {
                match (room, due.pop_first()) {
                    (Ok(room), Some(agent)) => room.send(agent),
                    // Nobody writes projections any more.
                    _ => due.clear(),
                }
                continue;
            }
        };
        match effect {
            Ok(Effect::EntriesChanged { agent }) => {
                due.insert(agent);
            }
            Ok(effect) => pass_on_one(&context, effect).await,
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "effects were missed: everything is read afresh");
                context.presences.resync();
                due.extend(all_agents(&context).await);
            }
            Err(RecvError::Closed) => return,
        }
    }
}

/// Has the projection of every agent written.
pub(crate) async fn all_projections(context: &NodeContext, projections: &mpsc::Sender<AgentId>) {
    for agent in all_agents(context).await {
        let _ = projections.send(agent).await;
    }
}

async fn all_agents(context: &NodeContext) -> Vec<AgentId> {
    context.state.agents().await.unwrap_or_else(|error| {
        tracing::warn!(%error, "the agents could not be listed");
        Vec::new()
    })
}

async fn pass_on_one(context: &NodeContext, effect: Effect) {
    match effect {
        Effect::LinkChanged { host, link } => match context.state.link(link).await {
            Ok(Some(mut link)) => {
                link.echo = link.echo.told_at(context.clock.now());
                context.presences.tell(&host, Message::Link(Box::new(link)));
            }
            Ok(None) => context.presences.tell(&host, Message::LinkRemoved { link }),
            Err(error) => {
                tracing::warn!(%error, "a changed link could not be read");
                context.presences.disconnect(&host, "resync");
            }
        },
        Effect::LinkRemoved { host, link } => {
            context.presences.tell(&host, Message::LinkRemoved { link });
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
        Effect::CertificateRevoked { node } => {
            let reason = "its certificate was revoked";
            context.presences.disconnect(&Host::Node(node), reason);
        }
        // A wake is for the wake stream, which subscribes by itself.
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidings_node::clock::{Clock, SystemClock};

    use super::*;
    use crate::nodes::authority::Authority;
    use crate::state::{State, StateOptions};

    #[tokio::test]
    async fn effects_pass_while_projections_are_written_slowly_and_each_agent_waits_once() {
        let dir = tempfile::tempdir().expect("directory");
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let options = StateOptions {
            directory: dir.path().to_owned(),
            clock: clock.clone(),
        };
        let state = State::open(&options).expect("open");
        let authority = Authority::load_or_create(dir.path(), clock.now()).expect("authority");
        let context = Arc::new(NodeContext::new(state, authority, clock));
        let (effects, received) = broadcast::channel(4);
        // Nobody reads it: a disk that hangs.
        let (projections, mut written) = mpsc::channel(1);
        let passing = tokio::spawn(pass_on(context, received, projections));
        let agent = |number: usize| AgentId::parse(&format!("agent-{}", number % 3)).expect("one");
        for number in 0..100 {
            let changed = Effect::EntriesChanged {
                agent: agent(number),
            };
            effects.send(changed).expect("somebody listens");
            let taken = async {
                while !effects.is_empty() {
                    tokio::task::yield_now().await;
                }
            };
            let taken = tokio::time::timeout(Duration::from_secs(20), taken).await;
            taken.expect("an effect waits for a projection");
        }
        // One had been handed over when the queue was empty, and is due once more.
        let mut due = BTreeSet::new();
        for _ in 0..4 {
            due.insert(written.recv().await.expect("an agent"));
        }
        assert_eq!(due, (0..3).map(agent).collect());
        drop(effects);
        passing.await.expect("it ends with the state");
        assert_eq!(written.recv().await, None);
    }
}
