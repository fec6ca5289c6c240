//! The node agent as a whole: the follower, and a connection that comes back for ever.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quinn::{ClientConfig, Connection, ConnectionError, Endpoint};
use ring::rand::{SecureRandom, SystemRandom};
use tidings_protocol::identity::GATEWAY_SERVER_NAME;
use tidings_protocol::session_api::{
    ApiError, Call, CertificateState, ErrorType, NodeStatus, Request,
};
use tidings_protocol::wire::messages::Refused;
use tidings_protocol::{Catalog, EpochMs, HostName, NodeId};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::back_off::{self, Ending, attempt_deadline};
use super::credentials::Credentials;
use super::identity::NodeIdentity;
use super::join::{client_endpoint, resolve};
use super::session::{self, End, Session};
use super::tls::{TlsError, paired};
use super::trouble::clock_trouble;
use crate::cli::format::{span, utc};
use crate::clock::{Clock, MAX_SKEW_MS};
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
    /// Where it is remembered which directories were seen.
    pub seen_file: Option<PathBuf>,
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
    Refused(Refused),
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

    /// What is said of it: a first attempt is another thing than one that failed.
    pub fn event(&self) -> &'static str {
        match self {
            Self::Connecting(Some(_)) => "disconnected",
            state => state.as_str(),
        }
    }

    /// Why it is not connected.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Connecting(reason) => reason.as_deref(),
            Self::Connected => None,
            Self::Refused(refused) => Some(&refused.reason),
        }
    }

    /// Why it is not connected, and what to do where the gateway has said so.
    pub fn trouble(&self) -> Option<String> {
        let reason = self.reason()?;
        Some(match self.hint() {
            Some(hint) => format!("{reason}: {hint}"),
            None => reason.to_owned(),
        })
    }

    /// What to do, where the gateway has said so.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Refused(refused) => Some(&refused.hint),
            Self::Connecting(_) | Self::Connected => None,
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
    /// The connection, while the gateway has welcomed this node on it.
    welcomed: watch::Sender<Option<Connection>>,
    gateway_ahead_ms: Mutex<Option<i64>>,
    clock: Arc<dyn Clock>,
}

impl Agent {
    /// Starts following and connecting. The task ends after [`Agent::stop`].
    pub fn start(options: AgentOptions) -> Result<(Self, JoinHandle<()>), TlsError> {
        let AgentOptions {
            identity,
            identity_dir,
            seen_file,
            roots,
            clock,
        } = options;
        paired(&identity, &clock)?;
        let catalogs = roots.catalogs();
        let follower = Follower::start(FollowerOptions {
            roots,
            clock: clock.clone(),
            seen_file,
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
            welcomed: watch::Sender::new(None),
            gateway_ahead_ms: Mutex::new(None),
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

    /// The gateway's address.
    pub fn gateway_address(&self) -> &str {
        &self.shared.gateway
    }

    /// The connection to the gateway, to ask it something; an error says since when there is
    /// none, why, and what to do.
    pub fn gateway(&self) -> Result<Connection, ApiError> {
        let welcomed = self.shared.welcomed.borrow().clone();
        welcomed.ok_or_else(|| self.shared.out_of_reach())
    }

    /// Reads at once what a hook speaks of: its program has just written, or is about to.
    /// Nothing for any other call.
    pub fn nudge_for(&self, call: &Call) {
        if let (Request::HookEvent(_), Some(caller)) = (&call.request, &call.caller) {
            let thread = (caller.catalog, caller.thread_id.clone());
            self.shared.follower.nudge(&thread);
        }
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
            connection_error: state.trouble(),
            connection_hint: state.hint().map(str::to_owned),
            certificate_not_after: self.shared.credentials.not_after(),
            certificate_state: self.shared.credentials.standing(self.shared.clock.now()),
            gateway_ahead_ms: self.shared.gateway_ahead(),
            roots: self.shared.follower.roots(),
            links: self.shared.follower.links(),
            warnings: own_warnings(&self.shared)
                .into_iter()
                .chain(presence.warnings)
                .collect(),
        }
    }

    /// Ends the agent gracefully: what is known is reported, the gateway is told.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }
}

impl Shared {
    fn out_of_reach(&self) -> ApiError {
        let (state, since) = self.state.borrow().clone();
        let (gateway, since) = (&self.gateway, utc(since));
        let message = match state {
            ConnectionState::Refused(refused) => {
                let reason = refused.reason;
                let message = format!(
                    "the gateway at {gateway} refuses this node since {since} UTC: {reason}"
                );
                return ApiError::new(ErrorType::Unavailable, message).with_hint(refused.hint);
            }
            ConnectionState::Connecting(Some(reason)) => {
                format!("the gateway at {gateway} is out of reach since {since} UTC: {reason}")
            }
            ConnectionState::Connecting(None) | ConnectionState::Connected => {
                format!("the node agent is still connecting to the gateway at {gateway}")
            }
        };
        ApiError::new(ErrorType::Unavailable, message).with_hint(
            "start the gateway on its machine (tidings gateway run); the node agent connects \
             by itself, and tidings-node status shows it",
        )
    }

    fn welcomed(&self, connection: &Connection, gateway_time: EpochMs) {
        self.welcomed.send_replace(Some(connection.clone()));
        let ahead = gateway_time.saturating_sub(self.clock.now());
        *lock(&self.gateway_ahead_ms) = Some(ahead);
        self.set_state(ConnectionState::Connected);
    }

    /// Says in the log, once for each state, that the certificate is not renewed.
    fn say_if_due(&self, said: CertificateState) -> CertificateState {
        let state = self.credentials.standing(self.clock.now());
        if state != said && state != CertificateState::Valid {
            let not_after = self.credentials.not_after();
            let state = state.as_str();
            tracing::warn!(state, not_after, "this node's certificate is not renewed");
        }
        state
    }

    fn gateway_ahead(&self) -> Option<i64> {
        *lock(&self.gateway_ahead_ms)
    }

    fn set_state(&self, state: ConnectionState) {
        self.state.send_if_modified(|(current, since)| {
            if *current == state {
                return false;
            }
            // Once per change of state, however often an attempt fails.
            if current.event() != state.event() {
                match &state {
                    ConnectionState::Connected => {
                        tracing::info!(gateway = self.gateway, "connected");
                    }
                    ConnectionState::Connecting(reason) => {
                        tracing::warn!(gateway = self.gateway, reason, "not connected");
                    }
                    ConnectionState::Refused(Refused { reason, hint, .. }) => {
                        tracing::error!(gateway = self.gateway, reason, hint, "refused");
                    }
                }
            }
            if current.as_str() != state.as_str() {
                *since = self.clock.now();
            }
            *current = state;
            true
        });
    }
}

/// What an operator should know of the certificate and the clock.
fn own_warnings(shared: &Shared) -> Vec<String> {
    let state = shared.credentials.standing(shared.clock.now());
    let of_certificate = (state != CertificateState::Valid).then(|| {
        let state = state.as_str().replace('_', " ");
        format!("this node's certificate is {state}: tidings-node doctor says what to do")
    });
    let skew = shared.gateway_ahead().filter(|ms| ms.abs() > MAX_SKEW_MS);
    let of_clock = skew.map(|ms| {
        let way = if ms > 0 { "behind" } else { "ahead of" };
        format!("this machine's clock is {} {way} the gateway's", span(ms))
    });
    of_certificate.into_iter().chain(of_clock).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while holding it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn keep_connected(shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    let mut failures: u32 = 0;
    let instance = random::<16>();
    let mut certificate = CertificateState::Valid;
    while !*stopped.borrow() {
        certificate = shared.say_if_due(certificate);
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
                let welcomed = |gateway_time| shared.welcomed(&connection, gateway_time);
                let end = session.run(hello, welcomed, &mut stopped).await;
                shared.welcomed.send_replace(None);
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
                shared.set_state(ConnectionState::Refused(refused));
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

async fn connect(shared: &Shared, deadline: Duration) -> Result<(Endpoint, Connection), String> {
    let config = shared
        .credentials
        .client_config(&shared.clock)
        .map_err(|error| error.to_string())?;
    dial(&shared.gateway, config, &*shared.clock, deadline).await
}

/// Connects to the gateway, by each of its addresses in turn.
pub(super) async fn dial(
    gateway: &str,
    config: ClientConfig,
    clock: &dyn Clock,
    deadline: Duration,
) -> Result<(Endpoint, Connection), String> {
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
            Ok(Err(error)) => last = why_not(address, &error, clock.now()),
            Err(_) => {
                last = format!(
                    "{address} does not answer: is the gateway running, and is UDP let through \
                     to that port?"
                );
            }
        }
    }
    Err(last)
}

/// Why a connection did not come to be; a wrong clock is the usual reason where the
/// certificates are good.
fn why_not(address: SocketAddr, error: &ConnectionError, now: EpochMs) -> String {
    match clock_trouble(error, now) {
        Some(trouble) => trouble.to_string(),
        None => format!("{address}: {error}"),
    }
}

/// Random bytes; zeros if the system has none, which only makes waits equal.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let _ = SystemRandom::new().fill(&mut bytes);
    bytes
}
