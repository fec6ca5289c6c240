//! `tidings-node doctor`: what is wrong on this machine, and the command that mends it.

mod findings;

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use tidings_protocol::EpochMs;
use tidings_protocol::session_api::{CertificateState, NodeStatus, RootStatus};

use super::status;
use crate::cli::diagnosis::{Diagnosis, Remedy};
use crate::cli::{CommandError, CommonArgs, daemon};
use crate::clock::{Clock, SystemClock};
use crate::connection::{IdentityFileError, NodeIdentity, Probe, probe, validity_of};
use crate::discover::{RootSet, Surroundings};
use crate::held_dir::is_ours;
use crate::open_files::Open;
use findings::findings;

#[cfg(target_os = "linux")]
const WATCH_LIMIT: &str = "/proc/sys/fs/inotify/max_user_watches";

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings-node doctor --fix")]
pub(super) struct DoctorArgs {
    /// Mends what is safe to mend: takes from others the permission to read what is secret
    #[arg(long)]
    fix: bool,
}

/// What a look at this machine shows.
struct Looked {
    identity: Result<Certificate, IdentityFileError>,
    agent: Agent,
    roots: Vec<RootStatus>,
    watch_limit: Option<u64>,
    run: String,
}

/// The life of this node's certificate, and how it stands.
#[derive(Debug, Clone, Copy)]
struct Certificate {
    state: CertificateState,
    not_after: EpochMs,
}

/// What is known of the way to the gateway.
enum Agent {
    /// The agent runs, and says so itself.
    Runs(Box<NodeStatus>),
    /// It does not; what the gateway at this address says to this node was looked up.
    Down {
        gateway: String,
        probe: Result<Probe, String>,
    },
    /// It does not, and there is no gateway to ask.
    Unpaired,
}

pub(super) fn run(args: &DoctorArgs, common: &CommonArgs) -> Result<(), CommandError> {
    let state_dir = common.state_dir()?;
    let flag = common.state_dir_flag();
    let remedy = if args.fix {
        Remedy::Apply
    } else {
        Remedy::Name(format!("tidings-node doctor --fix{flag}"))
    };
    let mut diagnosis = Diagnosis::default();
    for open in open_to_others(&state_dir) {
        diagnosis.add_open(open, &remedy);
    }
    let looked = daemon::runtime()?.block_on(look(&state_dir, common));
    diagnosis.extend(findings(&looked));
    diagnosis.look_at_programs("tidings-node");
    diagnosis.print(common.output())
}

/// What of a node's state directory is open to others.
fn open_to_others(state_dir: &Path) -> Vec<Open> {
    let Ok(state_dir) = std::fs::canonicalize(state_dir) else {
        return Vec::new();
    };
    if !is_ours(&state_dir) {
        return Vec::new();
    }
    let files = ["node.key", "node.json"].map(|name| (state_dir.join(name), 0o600));
    std::iter::once((state_dir, 0o700))
        .chain(files)
        .filter_map(|(path, wanted)| Open::at(path, wanted))
        .collect()
}

async fn look(state_dir: &Path, common: &CommonArgs) -> Looked {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let loaded = NodeIdentity::load(state_dir);
    let agent = match (status::ask(common).await, &loaded) {
        (Ok(status), _) => Agent::Runs(Box::new(status)),
        (Err(_), Ok(identity)) => Agent::Down {
            gateway: identity.gateway.clone(),
            probe: probe(identity, &clock).await,
        },
        (Err(_), Err(_)) => Agent::Unpaired,
    };
    let roots = match &agent {
        Agent::Runs(status) => status.roots.clone(),
        Agent::Down { .. } | Agent::Unpaired => unreadable_roots(),
    };
    let now = clock.now();
    Looked {
        identity: loaded.map(|identity| certificate(&identity, now)),
        agent,
        roots,
        watch_limit: watch_limit(),
        run: format!("tidings-node run{}", common.state_dir_flag()),
    }
}

fn certificate(identity: &NodeIdentity, now: EpochMs) -> Certificate {
    let (not_before, not_after) = validity_of(&identity.certificate).unwrap_or_default();
    Certificate {
        state: CertificateState::at(not_before, not_after, now),
        not_after,
    }
}

/// The usual roots that are there and cannot be read. One that is not there is no fault.
fn unreadable_roots() -> Vec<RootStatus> {
    let Ok(roots) = RootSet::new(&Surroundings::of_this_process(), &[]) else {
        return Vec::new();
    };
    let is_bad = |path: &Path| match std::fs::read_dir(path) {
        Ok(_) => false,
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    let bad = roots.all().iter().filter(|root| is_bad(&root.path));
    bad.map(|root| RootStatus {
        catalog: root.catalog,
        path: root.shown(),
        state: "unavailable".to_owned(),
    })
    .collect()
}

#[cfg(target_os = "linux")]
fn watch_limit() -> Option<u64> {
    std::fs::read_to_string(WATCH_LIMIT)
        .ok()?
        .trim()
        .parse()
        .ok()
}

#[cfg(not(target_os = "linux"))]
fn watch_limit() -> Option<u64> {
    None
}
