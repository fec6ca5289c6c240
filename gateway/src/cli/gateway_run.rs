//! `tidings gateway run`: the daemon, until it is told to stop.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tidings_node::cli::service::{ServiceState, notify};
use tidings_node::cli::{CommandError, Output, OutputFormat, daemon, logging};
use tidings_node::clock::SystemClock;
use tidings_node::discover::{RootSet, Surroundings};
use tidings_protocol::session_api::{ApiError, ErrorType};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::logs::LOG_FILE;
use super::run_options::{HttpOption, LocalNode, RunOptions};
use crate::config::{Config, Layers};
use crate::doors::http::HttpOptions;
use crate::state::Health;
use crate::{Gateway, GatewayOptions};

/// How long the ready line waits for this machine's own node agent.
const LOCAL_NODE_GRACE: Duration = Duration::from_secs(1);

/// Printed once the gateway is ready.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Ready<'a> {
    event: &'static str,
    listen: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<&'a str>,
    socket: &'a Path,
    state_dir: &'a Path,
    pid: u32,
}

/// Runs the gateway until SIGTERM or SIGINT, or until its database fails.
pub(super) fn run(options: RunOptions) -> Result<(), CommandError> {
    let runtime = daemon::runtime()?;
    runtime.block_on(async {
        let stopped = daemon::stop_signal()?;
        let layers = Layers::of_this_process(&options.state_dir, options.config.clone());
        let loaded = layers.load().map_err(ApiError::from)?;
        let (reloaded, config) = watch::channel(Arc::new(loaded.config));
        let output = options.output;
        let gateway = Gateway::start(gateway_options(options, config)?)
            .await
            .map_err(ApiError::from)?;
        // Only now is the directory this gateway's.
        logging::also_into(&gateway.state_dir().join(LOG_FILE));
        tracing::info!(
            pid = std::process::id(),
            listen = %gateway.listen(),
            http = gateway.http(),
            "the gateway runs"
        );
        // A moment, so that the first command after the ready line finds this machine's
        // threads; a slow disk must not keep nodes waiting for longer.
        let _ = tokio::time::timeout(LOCAL_NODE_GRACE, gateway.local_node_connected()).await;
        say_ready(&gateway, output)?;
        notify(ServiceState::Ready);
        tokio::select! {
            end = serve(gateway, stopped) => end,
            error = reload(&layers, &reloaded) => Err(error.into()),
        }
    })
}

/// Reads the configuration anew at each SIGHUP: the whole of it, or it stays as it is.
async fn reload(layers: &Layers, config: &watch::Sender<Arc<Config>>) -> ApiError {
    let mut hangups = match signal(SignalKind::hangup()) {
        Ok(hangups) => hangups,
        Err(error) => {
            let message = format!("signals cannot be caught: {error}");
            return ApiError::new(ErrorType::Internal, message);
        }
    };
    while hangups.recv().await.is_some() {
        match layers.load() {
            Ok(loaded) => {
                config.send_replace(Arc::new(loaded.config));
                tracing::info!("the configuration was read anew");
            }
            Err(error) => tracing::error!(%error, "the configuration stays as it was"),
        }
    }
    std::future::pending().await
}

fn gateway_options(
    options: RunOptions,
    config: watch::Receiver<Arc<Config>>,
) -> Result<GatewayOptions, ApiError> {
    let local_roots = match options.local_node {
        LocalNode::None => None,
        LocalNode::Embedded => {
            let surroundings = Surroundings::of_this_process();
            let roots = RootSet::new(&surroundings, &options.roots)
                .map_err(|error| ApiError::new(ErrorType::InvalidRequest, error.to_string()))?;
            Some(roots)
        }
    };
    Ok(GatewayOptions {
        state_dir: options.state_dir,
        listen: options.listen,
        http: match options.http {
            HttpOption::Listen(address) => Some(HttpOptions::at(address)),
            HttpOption::Off => None,
        },
        local_roots,
        config,
        clock: Arc::new(SystemClock::new()),
    })
}

fn say_ready(gateway: &Gateway, format: OutputFormat) -> Result<(), CommandError> {
    let ready = Ready {
        event: "ready",
        listen: gateway.listen().to_string(),
        http: gateway.http(),
        socket: gateway.socket(),
        state_dir: gateway.state_dir(),
        pid: std::process::id(),
    };
    Output::new(format).item(&ready, |ready| {
        let http = ready.http.map(|url| format!(", HTTP to {url}"));
        format!(
            "ready: nodes connect to {}, commands to {}{}",
            ready.listen,
            ready.socket.display(),
            http.unwrap_or_default()
        )
    })
}

/// Serves until told to stop, or until the database cannot be trusted any more.
async fn serve(gateway: Gateway, stopped: impl Future<Output = ()>) -> Result<(), CommandError> {
    let health = gateway.health();
    let told = tokio::select! {
        () = stopped => true,
        _ = gateway.failed() => false,
    };
    // Of a database that has failed nothing is written any more, in no orderly way either.
    if told {
        notify(ServiceState::Stopping);
        gateway.stop().await;
    }
    let health = health.borrow();
    match &*health {
        Health::Failed(error) => Err(ApiError::new(ErrorType::Internal, error.to_string())
            .with_hint(error.way_out())
            .into()),
        Health::Serving | Health::ReadOnly(_) => Ok(()),
    }
}
