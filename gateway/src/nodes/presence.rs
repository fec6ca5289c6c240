//! Which nodes are connected now, and how to reach them. It is memory only: presence is
//! never written, so an idle node costs no commit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quinn::{Connection, VarInt};
use tidings_node::clock::Clock;
use tidings_node::framed::{self, StreamError};
use tidings_protocol::report::LinkId;
use tidings_protocol::wire::messages::{Presence, RootState};
use tidings_protocol::wire::{FrameError, MAX_FRAME_BYTES, Message};
use tidings_protocol::{EpochMs, Host};
use tokio::sync::mpsc;

use super::windows;

/// A node that has given no sign of life for this long is `stalled`: three presences.
const STALLED_AFTER: Duration = Duration::from_secs(45);
/// How long an older connection has to answer before a newer one replaces it.
const PING_DEADLINE: Duration = Duration::from_secs(1);
/// Link changes that wait for a node; one that is further behind is sent away to start anew.
pub(super) const MAX_WAITING_CHANGES: usize = 1_024;

/// The connected nodes, by the host they serve.
#[derive(Debug, Clone)]
pub struct Presences {
    nodes: Arc<Mutex<HashMap<Host, Connected>>>,
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
struct Connected {
    instance: [u8; 16],
    connection: Connection,
    changes: mpsc::Sender<Message>,
    last_sign: Duration,
    presence: Option<(Presence, EpochMs)>,
}

/// What the memory says about a connected node.
#[derive(Debug, Clone)]
pub struct Seen {
    /// No sign of life for too long.
    pub stalled: bool,
    /// Its last presence, and when it came (gateway's clock).
    pub presence: Option<(Presence, EpochMs)>,
}

impl Seen {
    /// When the node last said that this link's root is watched and nothing of it is pending.
    pub fn observed_at(&self, link: LinkId, path: &str) -> Option<EpochMs> {
        let (presence, at) = self.presence.as_ref()?;
        let pending = presence.pending_truncated || presence.pending.contains(&link);
        let watched = presence.roots.iter().any(|root| {
            root.state == RootState::Watched
                && path
                    .strip_prefix(root.path.as_str())
                    .is_some_and(|rest| rest.starts_with('/'))
        });
        (watched && !pending).then_some(*at)
    }
}

/// Why a node could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// It is not connected: its machine is off, or its agent is not running.
    #[error("it is not connected")]
    NotConnected,
    /// It did not answer in time.
    #[error("it did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The stream broke.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// Its build does not know the request.
    #[error("its agent does not know {0}: update it")]
    Unsupported(String),
    /// It said no.
    #[error(transparent)]
    Failed(tidings_protocol::session_api::ApiError),
}

/// Another machine with the same key is connected and alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DuplicateIdentity;

/// A node's place among the connected; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    presences: Presences,
    host: Host,
    connection: usize,
}

impl Presences {
    /// Nobody is connected yet.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            nodes: Arc::default(),
            clock,
        }
    }

    /// What is known of a node; `None` when it is not connected.
    pub fn seen(&self, host: &Host) -> Option<Seen> {
        let nodes = self.lock();
        let connected = nodes.get(host)?;
        let silent = self.clock.monotonic().saturating_sub(connected.last_sign);
        Some(Seen {
            stalled: silent >= STALLED_AFTER,
            presence: connected.presence.clone(),
        })
    }

    /// Tells a node of a change of its links. One that is not connected gets all links when
    /// it comes; one that cannot keep up is sent away, and comes back for all of them.
    pub fn tell(&self, host: &Host, change: Message) {
        let nodes = self.lock();
        let Some(connected) = nodes.get(host) else {
            return;
        };
        if connected.changes.try_send(change).is_err() {
            connected.connection.close(0u32.into(), b"too far behind");
        }
    }

    /// Sends every node away, to come back and get all its links.
    pub fn resync(&self) {
        for connected in self.lock().values() {
            connected.connection.close(0u32.into(), b"resync");
        }
    }

    /// Ends a node's connection.
    pub fn disconnect(&self, host: &Host, reason: &str) {
        if let Some(connected) = self.lock().get(host) {
            connected.connection.close(0u32.into(), reason.as_bytes());
        }
    }

    /// Asks a node and waits for its answer.
    pub async fn request(
        &self,
        host: &Host,
        request: Message,
        deadline: Duration,
    ) -> Result<Message, RequestError> {
        let connection = self
            .lock()
            .get(host)
            .map(|connected| connected.connection.clone())
            .ok_or(RequestError::NotConnected)?;
        let answer = tokio::time::timeout(deadline, ask(&connection, &request)).await;
        match answer.map_err(|_| RequestError::TimedOut(deadline))?? {
            Message::Failed(error) => Err(RequestError::Failed(error)),
            Message::Unsupported { name } => Err(RequestError::Unsupported(name)),
            answer => Ok(answer),
        }
    }

    /// Gives a node its place. An older connection of another process is asked for a sign of
    /// life first: if it answers, there are two machines with one key.
    pub(super) async fn admit(
        &self,
        host: &Host,
        instance: [u8; 16],
        connection: &Connection,
        changes: mpsc::Sender<Message>,
    ) -> Result<Place, DuplicateIdentity> {
        let older = self
            .lock()
            .get(host)
            .filter(|older| older.instance != instance)
            .map(|older| older.connection.clone());
        if let Some(older) = older {
            let ping = ask(&older, &Message::Ping {});
            if let Ok(Ok(_)) = tokio::time::timeout(PING_DEADLINE, ping).await {
                return Err(DuplicateIdentity);
            }
        }
        let connected = Connected {
            instance,
            connection: connection.clone(),
            changes,
            last_sign: self.clock.monotonic(),
            presence: None,
        };
        self.put(host, connected);
        Ok(Place {
            presences: self.clone(),
            host: host.clone(),
            connection: connection.stable_id(),
        })
    }

    fn put(&self, host: &Host, connected: Connected) {
        let mut nodes = self.lock();
        let before = windows::share(nodes.len());
        set_windows(&connected.connection, before);
        if let Some(older) = nodes.insert(host.clone(), connected) {
            older
                .connection
                .close(0u32.into(), b"replaced by a newer connection");
        }
        share_windows(&nodes, before);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Host, Connected>> {
        // Nothing panics while holding it; if something did, the map is still whole.
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Notes a presence.
    pub(super) fn note(&self, presence: Presence) {
        let clock = &self.presences.clock;
        let mut nodes = self.presences.lock();
        if let Some(connected) = self.mine(&mut nodes) {
            connected.last_sign = clock.monotonic();
            connected.presence = Some((presence, clock.now()));
        }
    }

    /// True while no newer connection has taken the place.
    pub(super) fn is_current(&self) -> bool {
        self.mine(&mut self.presences.lock()).is_some()
    }

    fn mine<'a>(&self, nodes: &'a mut HashMap<Host, Connected>) -> Option<&'a mut Connected> {
        nodes
            .get_mut(&self.host)
            .filter(|connected| connected.connection.stable_id() == self.connection)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut nodes = self.presences.lock();
        // The late end of an older connection changes nothing for the newer one.
        if self.mine(&mut nodes).is_some() {
            let before = windows::share(nodes.len());
            nodes.remove(&self.host);
            share_windows(&nodes, before);
        }
    }
}

/// Gives every node its share of the budget, where it is another than before.
fn share_windows(nodes: &HashMap<Host, Connected>, before: u32) {
    let share = windows::share(nodes.len());
    if share != before {
        for connected in nodes.values() {
            set_windows(&connected.connection, share);
        }
    }
}

fn set_windows(connection: &Connection, share: u32) {
    connection.set_receive_window(VarInt::from_u32(share));
    connection.set_send_window(u64::from(share));
}

async fn ask(connection: &Connection, request: &Message) -> Result<Message, RequestError> {
    let (mut send, mut receive) = connection
        .open_bi()
        .await
        .map_err(|error| StreamError::Io(error.into()))?;
    framed::write(&mut send, request).await?;
    let _ = send.finish();
    match framed::read(&mut receive, MAX_FRAME_BYTES).await {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(StreamError::Torn.into()),
        Err(StreamError::Frame(FrameError::Unsupported { name })) => {
            Err(RequestError::Unsupported(name))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use tidings_protocol::Catalog;
    use tidings_protocol::wire::messages::RootPresence;

    use super::*;

    #[test]
    fn a_link_is_observed_only_while_its_root_is_watched_and_nothing_of_it_is_pending() {
        let seen = |path: &str, state, pending: Vec<LinkId>, pending_truncated| Seen {
            stalled: false,
            presence: Some((
                Presence {
                    roots: vec![RootPresence {
                        catalog: Catalog::Claude,
                        path: path.to_owned(),
                        state,
                    }],
                    pending,
                    pending_truncated,
                    ..Presence::default()
                },
                7,
            )),
        };
        let link = LinkId(3);
        for (path, state, pending, truncated, observed) in [
            ("/r", RootState::Watched, vec![], false, Some(7)),
            ("/r", RootState::Watched, vec![LinkId(4)], false, Some(7)),
            ("/r", RootState::Watched, vec![link], false, None),
            ("/r", RootState::Watched, vec![], true, None),
            ("/r", RootState::Polled, vec![], false, None),
            ("/r", RootState::Unavailable, vec![], false, None),
            ("/r/p/t", RootState::Watched, vec![], false, None),
        ] {
            let seen = seen(path, state, pending.clone(), truncated);
            assert_eq!(
                seen.observed_at(link, "/r/p/t.jsonl"),
                observed,
                "{path} {state:?} {pending:?} {truncated}"
            );
        }
    }
}
