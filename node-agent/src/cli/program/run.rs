//! `tidings-node run`: the daemon, until it is told to stop.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tidings_protocol::EpochMs;
use tidings_protocol::session_api::{ApiError, Call, ErrorType, Request};
use tokio::sync::watch;

use crate::cli::service::{ServiceState, notify};
use crate::cli::{CommandError, CommonArgs, Output, OutputFormat, daemon};
use crate::clock::SystemClock;
use crate::connection::{Agent, AgentOptions, ConnectionState, IdentityFileError, NodeIdentity};
use crate::discover::{RootArgument, RootSet, SEEN_FILE, Surroundings};
use crate::held_dir::{HeldDir, HoldError, Holder};
use crate::local::NodeResponder;
use crate::local::socket::{self, NODE_SOCKET, Responder, SocketError};
use crate::wake_command::WakeCommand;

/// How soon the wakes are asked for again, when their stream has ended.
const WAKES_AGAIN: Duration = Duration::from_secs(2);

/// How a node agent is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRunOptions {
    /// Where its key and certificate are kept.
    pub state_dir: PathBuf,
    /// Where this machine's transcripts are, by catalog; a catalog that is not named has
    /// its default places.
    pub roots: Vec<RootArgument>,
    /// What to start for each wake of a session on this machine.
    pub wake_command: Option<PathBuf>,
    /// For whom it prints.
    pub output: OutputFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings-node run --root claude=/srv/agents/projects")]
pub(super) struct RunArgs {
    /// A directory with transcripts of a catalog, instead of that catalog's usual ones
    #[arg(long = "root", value_name = "CATALOG=DIR")]
    roots: Vec<RootArgument>,
    /// A program to start, with the session key, whenever there is news for a session of this
    /// machine
    #[arg(long, value_name = "PROGRAM")]
    wake_command: Option<PathBuf>,
}

impl RunArgs {
    pub(super) fn into_options(self, common: &CommonArgs) -> Result<NodeRunOptions, ApiError> {
        Ok(NodeRunOptions {
            state_dir: common.state_dir()?,
            roots: self.roots,
            wake_command: self.wake_command.as_deref().map(program).transpose()?,
            output: common.output().format(),
        })
    }
}

/// The program by its whole path: nobody looks for it later.
fn program(named: &Path) -> Result<PathBuf, ApiError> {
    let path = std::path::absolute(named).unwrap_or_else(|_| named.to_owned());
    if path.is_file() {
        return Ok(path);
    }
    Err(ApiError::new(
        ErrorType::Configuration,
        format!("--wake-command: {} is no program", path.display()),
    )
    .with_hint("give the path of one that this user may run"))
}

/// Printed at every change of the connection.
#[derive(Debug, Serialize)]
struct Change<'a> {
    #[serde(rename = "event")]
    name: &'static str,
    gateway: &'a str,
    at: EpochMs,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Runs the node agent until SIGTERM or SIGINT.
pub(super) fn run(options: &NodeRunOptions) -> Result<(), CommandError> {
    let identity = NodeIdentity::load(&options.state_dir).map_err(identity_error)?;
    let held =
        HeldDir::hold(&options.state_dir, Holder::NodeAgent).map_err(|error| hold_error(&error))?;
    let surroundings = Surroundings::of_this_process();
    let roots = RootSet::new(&surroundings, &options.roots)
        .map_err(|error| ApiError::new(ErrorType::InvalidRequest, error.to_string()))?;
    daemon::runtime()?.block_on(async {
        let stopped = daemon::stop_signal()?;
        let gateway = identity.gateway.clone();
        let door =
            socket::bind(held.path().join(NODE_SOCKET)).map_err(|error| socket_error(&error))?;
        let (agent, task) = Agent::start(AgentOptions {
            identity,
            identity_dir: Some(held.path().to_owned()),
            seen_file: Some(held.path().join(SEEN_FILE)),
            roots,
            clock: Arc::new(SystemClock::new()),
        })
        .map_err(|error| ApiError::new(ErrorType::InvalidData, error.to_string()))?;
        let (close, closed) = watch::channel(false);
        let responder = Arc::new(NodeResponder::new(agent.clone()));
        let waking = options.wake_command.clone().map(|program| {
            let command = WakeCommand::new(program, held.path().to_owned(), Arc::default());
            tokio::spawn(wake(command, responder.clone(), agent.connection()))
        });
        let serving = tokio::spawn(socket::serve(door, responder, closed));
        let output = Output::new(options.output);
        // It follows files from now on, whether or not its gateway is there.
        notify(ServiceState::Ready);
        let ended = tokio::select! {
            ended = say_changes(agent.connection(), &gateway, output) => ended,
            () = stopped => Ok(()),
        };
        notify(ServiceState::Stopping);
        if let Some(waking) = waking {
            waking.abort();
        }
        agent.stop();
        let _ = task.await;
        close.send_replace(true);
        let _ = serving.await;
        let _ = std::fs::remove_file(held.path().join(NODE_SOCKET));
        ended
    })
}

/// Starts the command for each wake of this machine's sessions; at each new connection for
/// each notice that is available then.
async fn wake(
    mut command: WakeCommand,
    gateway: Arc<NodeResponder>,
    mut connection: watch::Receiver<(ConnectionState, EpochMs)>,
) {
    let is_there =
        |(state, _): &(ConnectionState, EpochMs)| matches!(state, ConnectionState::Connected);
    while connection.wait_for(is_there).await.is_ok() {
        let mut wakes = gateway.follow(Call {
            caller: None,
            request: Request::WakesFollow {},
        });
        if let Some(error) = command.run_for(&mut wakes).await {
            tracing::info!(%error, "no wakes for the wake command until the next try");
        }
        tokio::time::sleep(WAKES_AGAIN).await;
    }
}

/// Says each change of the connection, once.
async fn say_changes(
    mut connection: watch::Receiver<(ConnectionState, EpochMs)>,
    gateway: &str,
    output: Output,
) -> Result<(), CommandError> {
    let mut said = None;
    loop {
        let (state, since) = connection.borrow_and_update().clone();
        let now = (state.event(), since);
        if said != Some(now) {
            say(&state, since, gateway, output)?;
            said = Some(now);
        }
        if connection.changed().await.is_err() {
            return Ok(());
        }
    }
}

fn say(
    state: &ConnectionState,
    at: EpochMs,
    gateway: &str,
    output: Output,
) -> Result<(), CommandError> {
    let change = Change {
        name: state.event(),
        gateway,
        at,
        reason: state.trouble(),
    };
    output.item(&change, |change| match &change.reason {
        Some(reason) => format!("{} ({gateway}): {reason}", change.name),
        None => format!("{} ({gateway})", change.name),
    })
}

pub(super) fn identity_error(error: IdentityFileError) -> ApiError {
    match error {
        IdentityFileError::NotPaired { .. } => {
            ApiError::new(ErrorType::Configuration, error.to_string())
                .with_hint("pair it first: tidings-node join LINK")
        }
        IdentityFileError::Damaged { .. } => {
            ApiError::new(ErrorType::InvalidData, error.to_string())
                .with_hint("pair anew, with another --state-dir")
        }
        error => ApiError::new(ErrorType::CannotCreate, error.to_string()),
    }
}

pub(super) fn hold_error(error: &HoldError) -> ApiError {
    let error_type = match error {
        HoldError::Held { .. } => ErrorType::Unavailable,
        _ => ErrorType::CannotCreate,
    };
    ApiError::new(error_type, error.to_string()).with_hint("tidings-node status says how it is")
}

fn socket_error(error: &SocketError) -> ApiError {
    let error_type = match error {
        SocketError::PathTooLong { .. } => ErrorType::Configuration,
        _ => ErrorType::CannotCreate,
    };
    ApiError::new(error_type, error.to_string()).with_hint("give another --state-dir")
}
