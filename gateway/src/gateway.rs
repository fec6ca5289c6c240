//! The daemon: everything that runs between taking the state directory and giving it back.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tidings_node::clock::Clock;
use tidings_node::connection::{Agent, ConnectionState};
use tidings_node::discover::RootSet;
use tidings_node::held_dir::{HeldDir, HoldError, Holder};
use tidings_node::local::socket::{self, GATEWAY_SOCKET, SocketError};
use tidings_node::wake_command::CommandFigures;
use tidings_protocol::session_api::{ApiError, ErrorType};
use tidings_protocol::{EpochMs, Host};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::config::Config;
use crate::doors::http::{HttpError, HttpOptions, Listening};
use crate::doors::{GatewayInfo, Service, SocketDoor};
use crate::local_node::LocalNodeError;
use crate::nodes::authority::{Authority, AuthorityError};
use crate::nodes::listener::{self, ListenError};
use crate::nodes::{NodeContext, SessionInterface};
use crate::sessions::files::Files;
use crate::sessions::keeper;
use crate::sessions::maintenance;
use crate::sessions::projection::Stores;
use crate::sessions::transcript::cache::Indexes;
use crate::sessions::transcript::lock::{LockTimes, Locker};
use crate::state::{Health, NodeRecord, NodeStanding, OpenError, State, StateError, StateOptions};
use crate::turns::models::Models;
use crate::turns::runner::{Jobs, Runner, Shelves};
use crate::wake_command::WakeCommands;
use crate::{effects, local_node, state, upkeep};

/// What a gateway needs to run.
#[derive(Debug)]
pub struct GatewayOptions {
    /// Its state directory.
    pub state_dir: PathBuf,
    /// Where nodes connect.
    pub listen: SocketAddr,
    /// Where HTTP is answered; `None` for nowhere.
    pub http: Option<HttpOptions>,
    /// The roots of the embedded node agent; `None` for a gateway without one.
    pub local_roots: Option<RootSet>,
    /// The configuration, and each that takes its place while the gateway runs.
    pub config: watch::Receiver<Arc<Config>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// A running gateway.
pub struct Gateway {
    listen: SocketAddr,
    http: Option<String>,
    socket: PathBuf,
    state: State,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    local: Option<(Agent, JoinHandle<()>)>,
    // Given back last.
    state_dir: HeldDir,
}

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The state directory cannot be held.
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The database cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// The certificate authority cannot be read.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The QUIC endpoint cannot be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The HTTP door does not open.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The socket cannot be opened.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The embedded node agent cannot start.
    #[error("the node agent of this machine: {0}")]
    LocalNode(#[from] LocalNodeError),
}

impl From<StartError> for ApiError {
    fn from(error: StartError) -> Self {
        if let StartError::Http(error) = &error {
            return error.into();
        }
        let (error_type, hint) = match &error {
            StartError::Hold(HoldError::Held { .. }) => (
                ErrorType::Unavailable,
                "use it (tidings status), stop it, or give this one another --state-dir",
            ),
            StartError::Hold(_) => (ErrorType::CannotCreate, "give another --state-dir"),
            StartError::Open(OpenError::DiskFull { .. } | OpenError::Locked { .. }) => (
                ErrorType::TryLater,
                "free some space, or end the other process",
            ),
            StartError::Open(OpenError::NotWritable { .. }) => (
                ErrorType::CannotCreate,
                "check the owner and permissions of the directory",
            ),
            StartError::Open(OpenError::Newer { .. } | OpenError::MigrationChanged { .. }) => (
                ErrorType::InvalidData,
                "use the newer version that has written it, or another --state-dir",
            ),
            StartError::Open(_) => (
                ErrorType::InvalidData,
                "restore a backup, or start afresh with another --state-dir",
            ),
            StartError::Listen(ListenError::Bind { .. }) => {
                (ErrorType::Unavailable, "give another --listen address")
            }
            StartError::Socket(SocketError::PathTooLong { .. }) => {
                (ErrorType::Configuration, "use a shorter --state-dir")
            }
            StartError::Authority(_) => (
                ErrorType::InvalidData,
                "put the file back from a copy of the state directory",
            ),
            StartError::State(_)
            | StartError::Listen(_)
            | StartError::Http(_)
            | StartError::Socket(_)
            | StartError::LocalNode(_) => (ErrorType::CannotCreate, "see the message"),
        };
        Self::new(error_type, error.to_string()).with_hint(hint)
    }
}

impl Gateway {
    /// Starts a gateway; it is ready when this returns.
    pub async fn start(options: GatewayOptions) -> Result<Self, StartError> {
        let state_dir = HeldDir::hold(&options.state_dir, Holder::Gateway)?;
        let http = match options.http {
            Some(http) => Some(Listening::open(http, options.config.clone()).await?),
            None => None,
        };
        let clock = options.clock;
        let state = open_state(state_dir.path(), clock.clone()).await?;
        refuse_lost_authority(&state, state_dir.path()).await?;
        let authority = Authority::load_or_create(state_dir.path(), clock.now())?;
        let context = Arc::new(NodeContext::new(state.clone(), authority, clock.clone()));
        let stores = Stores {
            state: state.clone(),
            state_dir: state_dir.path().to_owned(),
            files: Files::default(),
            clock: clock.clone(),
        };
        let last_ran = state.last_projected_at().await?;
        finish_what_was_begun(&stores, &options.config).await;
        let endpoint = listener::listen(&context, options.listen)?;
        let listen = endpoint.local_addr().map_err(|source| ListenError::Bind {
            address: options.listen,
            source,
        })?;
        let socket = state_dir.path().join(GATEWAY_SOCKET);
        let door = socket::bind(socket.clone())?;
        let (jobs, inbox) = Jobs::new(options.config.clone());
        let wake_commands = Arc::new(CommandFigures::default());
        let http_url = http.as_ref().map(Listening::url);
        let service = Service::new(
            context.clone(),
            GatewayInfo {
                state_dir: state_dir.path().to_owned(),
                listen,
                http: http_url.clone(),
                started_at: clock.now(),
                config: options.config.clone(),
                wake_commands: wake_commands.clone(),
            },
        )
        .run_by(jobs.clone());

        let (stop, stopped) = watch::channel(false);
        let (projections, changed) = mpsc::channel(keeper::QUEUE);
        let mut tasks = JoinSet::new();
        let runner = runner(&stores, &service, jobs, stopped.clone());
        tasks.spawn(runner.run(inbox));
        let upkeep_of_stores = maintenance::keep::keep(
            stores.clone(),
            options.config.clone(),
            state.subscribe(),
            last_ran,
        );
        tasks.spawn(until(stopped.clone(), upkeep_of_stores));
        tasks.spawn(keeper::keep(stores, options.config.clone(), changed));
        let effects = effects::pass_on(context.clone(), state.subscribe(), projections.clone());
        tasks.spawn(until(stopped.clone(), effects));
        let log = upkeep::keep_log(state.clone(), clock.clone(), options.config.clone());
        tasks.spawn(until(stopped.clone(), log));
        let leases = upkeep::keep_leases(state.clone(), clock.clone());
        tasks.spawn(until(stopped.clone(), leases));
        let certificates = listener::keep_certificates(endpoint.clone(), context.clone());
        tasks.spawn(until(stopped.clone(), certificates));
        let commands = WakeCommands {
            state: state.clone(),
            state_dir: state_dir.path().to_owned(),
            config: options.config,
            figures: wake_commands,
        };
        tasks.spawn(until(stopped.clone(), commands.run()));
        if let Some(http) = http {
            tasks.spawn(http.serve(service.clone(), stopped.clone()));
        }
        let service = Arc::new(service);
        let sessions: Arc<dyn SessionInterface> = service.clone();
        let nodes = listener::accept(endpoint, context.clone(), sessions, stopped.clone());
        tasks.spawn(nodes);
        let own_agent = Arc::new(OnceLock::new());
        let answering = Arc::new(SocketDoor::new(service, own_agent.clone()));
        tasks.spawn(socket::serve(door, answering, stopped));
        effects::all_projections(&context, &projections).await;
        let local = match options.local_roots {
            Some(roots) => {
                let local = local_node::start(&context, &state_dir, listen, roots).await?;
                // It is set once, here.
                let _ = own_agent.set(local.0.clone());
                Some(local)
            }
            None => None,
        };
        Ok(Self {
            listen,
            http: http_url,
            socket,
            state,
            stop,
            tasks,
            local,
            state_dir,
        })
    }

    /// Where nodes connect.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Where HTTP is answered, as the beginning of an address; nothing where it is off.
    pub fn http(&self) -> Option<&str> {
        self.http.as_deref()
    }

    /// The Unix socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The state directory.
    pub fn state_dir(&self) -> &Path {
        self.state_dir.path()
    }

    /// Waits until the node agent of this machine is connected.
    pub async fn local_node_connected(&self) -> Result<(), ApiError> {
        let gone = || ApiError::new(ErrorType::Internal, "this machine's node agent has ended");
        let Some((agent, _)) = &self.local else {
            return Err(gone());
        };
        let mut state = agent.connection();
        let connected =
            |(state, _): &(ConnectionState, EpochMs)| matches!(state, ConnectionState::Connected);
        state.wait_for(connected).await.map_err(|_| gone())?;
        Ok(())
    }

    /// Waits until the database can no longer be trusted: then the process must end.
    pub async fn failed(&self) -> Arc<StateError> {
        let mut health = self.state.health();
        loop {
            if let Health::Failed(error) = &*health.borrow_and_update() {
                return error.clone();
            }
            if health.changed().await.is_err() {
                return Arc::new(StateError::Closed);
            }
        }
    }

    /// How the database stands, to the last.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.state.health()
    }

    /// Ends the gateway gracefully: what is committed stays, the nodes are told.
    pub async fn stop(mut self) {
        if let Some((agent, task)) = self.local.take() {
            agent.stop();
            let _ = task.await;
        }
        self.stop.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
        let _ = std::fs::remove_file(&self.socket);
        self.state.close().await;
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway")
            .field("listen", &self.listen)
            .field("state_dir", &self.state_dir)
            .finish_non_exhaustive()
    }
}

/// Who runs turns.
fn runner(
    stores: &Stores,
    service: &Service,
    jobs: Jobs,
    stopped: watch::Receiver<bool>,
) -> Arc<Runner> {
    let times = {
        let variable = |name: &str| std::env::var(name).ok();
        LockTimes::resolve(&jobs.config().session.write_lock, variable)
    };
    Arc::new(Runner {
        state: stores.state.clone(),
        service: service.clone(),
        shelves: Shelves {
            stores: stores.clone(),
            indexes: Indexes::new(stores.files.clone()),
            locker: Locker::new(stores.files.clone(), stores.clock.clone(), times),
        },
        models: Models::default(),
        jobs,
        stopped,
    })
}

/// Opens the database of a state directory that this process holds.
pub(crate) async fn open_state(dir: &Path, clock: Arc<dyn Clock>) -> Result<State, OpenError> {
    refuse_emptied(dir)?;
    let options = StateOptions {
        directory: dir.to_owned(),
        clock,
    };
    let path = dir.to_owned();
    match tokio::task::spawn_blocking(move || State::open(&options)).await {
        Ok(opened) => opened,
        Err(error) => Err(OpenError::Failed {
            path,
            detail: error.to_string(),
        }),
    }
}

/// An authority that is gone has been lost: a new one in its place would lock out every node
/// that trusts the old one.
async fn refuse_lost_authority(state: &State, dir: &Path) -> Result<(), StartError> {
    let path = Authority::folder(dir);
    if path.exists() {
        return Ok(());
    }
    let nodes = state.nodes().await?;
    let trusts = |node: &NodeRecord| {
        node.standing == NodeStanding::Active && node.host != Host::GatewayLocal
    };
    if nodes.iter().any(trusts) {
        return Err(AuthorityError::Gone { path }.into());
    }
    Ok(())
}

/// A database that has nothing in it, in a directory that a gateway was run on, has been
/// lost. A new one in its place would forget every node and give numbers a second time.
fn refuse_emptied(dir: &Path) -> Result<(), OpenError> {
    match state::unwritten(dir) {
        Some(path) if Authority::exists(dir) => Err(OpenError::Corrupt {
            path,
            detail: "it is empty or not there, and a gateway was run on this directory".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// What the process before could not finish: agents leave, and ended conversations are put
/// away, before anybody begins new ones.
async fn finish_what_was_begun(stores: &Stores, config: &watch::Receiver<Arc<Config>>) {
    if let Err(error) = stores.finish_leaving().await {
        tracing::warn!(%error, "what is left of a deleted agent stays for now");
    }
    maintenance::keep::put_away(stores, config).await;
}

/// Runs `task` until `stopped`.
async fn until(mut stopped: watch::Receiver<bool>, task: impl Future<Output = ()>) {
    tokio::select! {
        () = task => {}
        _ = stopped.changed() => {}
    }
}
