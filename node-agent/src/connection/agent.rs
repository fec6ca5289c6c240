//! The node agent as a whole: the follower, and a connection that comes back for ever.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quinn::Connection;
use ring::rand::{SecureRandom, SystemRandom};
use tidings_protocol::identity::GATEWAY_SERVER_NAME;
use tidings_protocol::session_api::NodeStatus;
use tidings_protocol::{Catalog, EpochMs, HostName, NodeId};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::back_off::{self, Ending, attempt_deadline};
use super::credentials::Credentials;
use super::identity::NodeIdentity;
use super::join::{client_endpoint, resolve};
use super::session::{self, End, Session};
use super::tls::{TlsError, paired};
use crate::clock::Clock;
use crate::discover::RootSet;
use crate::follow::{Follower, FollowerOptions};

/// A connection that held this long was a good one: the next wait is the shortest again. One
/// that breaks right after its welcome is not, or a full disk at the gateway would be
/// knocked at without a pause.
const STEADY_MS: EpochMs = 1_000;

/// What an agent needs to run.
#[derive(Debug)]
pub struct AgentOptions {
    /// Who it is.
    pub identity: NodeIdentity,
    /// Where a renewed certificate is kept; `None` for an agent that gets one at each start.
    pub identity_dir: Option<PathBuf>,
    /// Where transcripts are looked for.
    pub roots: RootSet,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// How the connection to the gateway stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionState {
    /// No connection yet, or one that broke; the reason of the last failure.
    Connecting(Option<String>),
    /// Welcomed by the gateway.
    Connected,
    /// Turned away: why, and what to do.
    Refused(String),
}

impl ConnectionState {
    /// The state's name.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Connecting(_) => "connecting",
            Self::Connected => "connected",
            Self::Refused(_) => "refused",
        }
    }

    fn error(&self) -> Option<String> {
        match self {
            Self::Connecting(reason) => reason.clone(),
            Self::Connected => None,
            Self::Refused(reason) => Some(reason.clone()),
        }
    }
}

/// A running node agent. A clone is another handle on the same agent.
#[derive(Debug, Clone)]
pub struct Agent {
    shared: Arc<Shared>,
    stop: Arc<watch::Sender<bool>>,
}

#[derive(Debug)]
struct Shared {
    follower: Follower,
    catalogs: Vec<Catalog>,
    node_id: NodeId,
    host_name: HostName,
    gateway: String,
    credentials: Credentials,
    state: watch::Sender<(ConnectionState, EpochMs)>,
    clock: Arc<dyn Clock>,
}

impl Agent {
    /// Starts following and connecting. The task ends after [`Agent::stop`].
    pub fn start(options: AgentOptions) -> Result<(Self, JoinHandle<()>), TlsError> {
        let AgentOptions {
            identity,
            identity_dir,
            roots,
            clock,
        } = options;
        paired(&identity, &clock)?;
        let catalogs = roots.catalogs();
        let follower = Follower::start(FollowerOptions {
            roots,
            clock: clock.clone(),
            readers: FollowerOptions::READERS,
        });
        let shared = Arc::new(Shared {
            follower,
            catalogs,
            node_id: identity.node_id.clone(),
            host_name: identity.host_name.clone(),
            gateway: identity.gateway.clone(),
            credentials: Credentials::new(identity, identity_dir),
            state: watch::Sender::new((ConnectionState::Connecting(None), clock.now())),
            clock,
        });
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(keep_connected(shared.clone(), stopped));
        let agent = Self {
            shared,
            stop: Arc::new(stop),
        };
        Ok((agent, task))
    }

    /// How the connection stands, as it changes.
    pub fn connection(&self) -> watch::Receiver<(ConnectionState, EpochMs)> {
        self.shared.state.subscribe()
    }

    /// The agent at a glance.
    pub async fn status(&self) -> NodeStatus {
        let (state, since) = self.shared.state.borrow().clone();
        let presence = self.shared.follower.presence().await;
        NodeStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            node_id: self.shared.node_id.clone(),
            host_name: self.shared.host_name.clone(),
            gateway: self.shared.gateway.clone(),
            connection: state.as_str().to_owned(),
            connection_since: since,
            connection_error: state.error(),
            certificate_not_after: self.shared.credentials.not_after(),
            roots: self.shared.follower.roots(),
            links: self.shared.follower.links(),
            warnings: presence.warnings,
        }
    }

    /// Ends the agent gracefully: what is known is reported, the gateway is told.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }
}

impl Shared {
    fn set_state(&self, state: ConnectionState) {
        self.state.send_if_modified(|(current, since)| {
            if *current == state {
                return false;
            }
            // Once per change of state, however often an attempt fails.
            if current.as_str() != state.as_str() {
                match &state {
                    ConnectionState::Connected => {
                        tracing::info!(gateway = self.gateway, "connected");
                    }
                    ConnectionState::Connecting(reason) => {
                        tracing::warn!(gateway = self.gateway, reason, "not connected");
                    }
                    ConnectionState::Refused(reason) => {
                        tracing::error!(gateway = self.gateway, reason, "refused");
                    }
                }
                *since = self.clock.now();
            }
            *current = state;
            true
        });
    }
}

async fn keep_connected(shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    let mut failures: u32 = 0;
    let instance = random::<16>();
    while !*stopped.borrow() {
        let attempt = tokio::select! {
            attempt = connect(&shared, attempt_deadline(failures)) => attempt,
            _ = stopped.changed() => break,
        };
        let end = match attempt {
            Err(reason) => End::Lost(reason),
            Ok((endpoint, connection)) => {
                let session = Session {
                    connection: &connection,
                    follower: &shared.follower,
                    credentials: &shared.credentials,
                    clock: &*shared.clock,
                };
                let hello = session::hello(instance, shared.catalogs.clone());
                let welcomed = || shared.set_state(ConnectionState::Connected);
                let end = session.run(hello, welcomed, &mut stopped).await;
                endpoint.wait_idle().await;
                end
            }
        };
        let (state, since) = shared.state.borrow().clone();
        let held = shared.clock.now().saturating_sub(since);
        if state == ConnectionState::Connected && held >= STEADY_MS {
            failures = 0;
        }
        shared.follower.disconnected();
        failures = failures.saturating_add(1);
        let ending = match end {
            End::Stopped => break,
            // The new certificate is to be shown at once.
            End::Renewed => continue,
            End::Lost(reason) => {
                shared.set_state(ConnectionState::Connecting(Some(reason)));
                Ending::Lost
            }
            End::Refused(refused) => {
                let reason = format!("{}: {}", refused.reason, refused.hint);
                shared.set_state(ConnectionState::Refused(reason));
                Ending::Refused
            }
        };
        let wait = back_off::wait(ending, failures, random::<1>()[0]);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = stopped.changed() => break,
        }
    }
    shared.follower.finish().await;
}

async fn connect(
    shared: &Shared,
    deadline: Duration,
) -> Result<(quinn::Endpoint, Connection), String> {
    let gateway = shared.gateway.as_str();
    let config = shared
        .credentials
        .client_config(&shared.clock)
        .map_err(|error| error.to_string())?;
    let addresses = resolve(gateway)
        .await
        .map_err(|error| format!("cannot resolve {gateway}: {error}"))?;
    let mut last = format!("{gateway} has no address");
    for address in addresses {
        let endpoint = client_endpoint(address)
            .map_err(|error| format!("no UDP socket for {address}: {error}"))?;
        let connecting = endpoint
            .connect_with(config.clone(), address, GATEWAY_SERVER_NAME)
            .map_err(|error| format!("cannot connect to {address}: {error}"))?;
        match tokio::time::timeout(deadline, connecting).await {
            Ok(Ok(connection)) => return Ok((endpoint, connection)),
            Ok(Err(error)) => last = format!("{address}: {error}"),
            Err(_) => last = format!("{address} does not answer"),
        }
    }
    Err(last)
}

/// Random bytes; zeros if the system has none, which only makes waits equal.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let _ = SystemRandom::new().fill(&mut bytes);
    bytes
}
