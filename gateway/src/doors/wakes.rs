//! The wake stream: each notice, as it becomes available to a watcher.

use tidings_protocol::Host;
use tidings_protocol::session_api::{ApiError, Reply, Wake, Wakes};
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::sync::mpsc;

use super::Service;
use super::origin::Origin;
use crate::state::{Effect, SessionAddress, State, StateError};

/// Whose wakes are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Those of all sessions.
    Everybodys,
    /// Those of these sessions.
    Of(Vec<SessionAddress>),
    /// Those of the sessions that continue a thread on this machine.
    On(Host),
}

impl Whose {
    /// Those of the wakes that are theirs.
    async fn among(&self, state: &State, mut wakes: Vec<Wake>) -> Result<Vec<Wake>, StateError> {
        match self {
            Self::Everybodys => {}
            Self::Of(sessions) => {
                wakes.retain(|wake| sessions.iter().any(|own| *own.key() == wake.watcher));
            }
            Self::On(host) => {
                let watchers = wakes.iter().map(|wake| wake.watcher.clone()).collect();
                let there = state.keys_on_host(host.clone(), watchers).await?;
                wakes.retain(|wake| there.contains(&wake.watcher));
            }
        }
        Ok(wakes)
    }
}

impl Service {
    /// Whose wakes a caller is told. A machine's own agent, which says that no conversation
    /// calls, is told those of its machine.
    pub(super) async fn wakes_of(&self, origin: &Origin) -> Result<Whose, ApiError> {
        Ok(match origin {
            Origin::Operator | Origin::Token(_) => Whose::Everybodys,
            Origin::Program { host, caller: None } => Whose::On(host.clone()),
            other => Whose::Of(self.sessions_of(other).await?),
        })
    }

    /// First one wake per notice available now, perhaps none, which says that the stream
    /// stands; then each wake as it is committed.
    pub(super) async fn wakes_follow(
        &self,
        whose: &Whose,
        replies: &mpsc::Sender<Reply>,
    ) -> Result<(), ApiError> {
        Ok(send_wakes(&self.nodes.state, whose, replies).await?)
    }
}

/// Sends the wakes until the state closes or nobody reads them. Whoever reads too slowly to
/// hear of each wake is told what is available then.
pub(crate) async fn send_wakes(
    state: &State,
    whose: &Whose,
    replies: &mpsc::Sender<Reply>,
) -> Result<(), StateError> {
    // Subscribed before the look: what comes between the two is told twice, never not.
    let mut effects = state.subscribe();
    let mut next = Next::Afresh;
    loop {
        let (wakes, is_first) = match next {
            Next::Wake(wake) => (vec![wake], false),
            Next::Afresh => (available(state).await?, true),
            Next::End => return Ok(()),
        };
        let wakes = whose.among(state, wakes).await?;
        if (is_first || !wakes.is_empty())
            && replies.send(Reply::Wakes(Wakes { wakes })).await.is_err()
        {
            return Ok(());
        }
        next = next_of(&mut effects).await;
    }
}

/// What to send next.
enum Next {
    /// This wake.
    Wake(Wake),
    /// What is available now: some wakes were missed, or none has been told yet.
    Afresh,
    /// Nothing any more.
    End,
}

async fn next_of(effects: &mut Receiver<Effect>) -> Next {
    loop {
        return match effects.recv().await {
            Ok(Effect::Wake(wake)) => Next::Wake(Wake {
                watcher: wake.watcher,
                target: wake.target,
            }),
            Ok(_) => continue,
            Err(RecvError::Lagged(_)) => Next::Afresh,
            Err(RecvError::Closed) => Next::End,
        };
    }
}

async fn available(state: &State) -> Result<Vec<Wake>, StateError> {
    let wakes = state.wakes().await?;
    let wake = |wake: crate::state::Wake| Wake {
        watcher: wake.watcher,
        target: wake.target,
    };
    Ok(wakes.into_iter().map(wake).collect())
}

#[cfg(test)]
mod tests {
    use tidings_protocol::{NodeId, SessionKey};
    use tokio::sync::broadcast;

    use super::*;

    fn wake(rest: &str) -> crate::state::Wake {
        let key = |rest: &str| SessionKey::parse(&format!("agent:main:{rest}")).expect("key");
        crate::state::Wake {
            watcher: key(rest),
            target: key("target"),
        }
    }

    #[tokio::test]
    async fn whoever_missed_a_wake_is_told_afresh_and_then_goes_on() {
        let (effects, mut receiver) = broadcast::channel(2);
        let node = NodeId::parse(&"07".repeat(16)).expect("node id");
        let tell = |effect| effects.send(effect).expect("a receiver");
        tell(Effect::NodeChanged { node });
        tell(Effect::Wake(wake("a")));
        let next = next_of(&mut receiver).await;
        assert!(matches!(next, Next::Wake(next) if next.watcher == wake("a").watcher));

        for rest in ["b", "c", "d"] {
            tell(Effect::Wake(wake(rest)));
        }
        assert!(matches!(next_of(&mut receiver).await, Next::Afresh));
        let next = next_of(&mut receiver).await;
        assert!(matches!(next, Next::Wake(next) if next.watcher == wake("c").watcher));

        drop(effects);
        assert!(matches!(next_of(&mut receiver).await, Next::Wake(_)));
        assert!(matches!(next_of(&mut receiver).await, Next::End));
    }
}
