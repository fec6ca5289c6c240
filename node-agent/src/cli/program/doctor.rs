//! `tidings-node doctor`: what is wrong on this machine, and the command that mends it.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use tidings_protocol::EpochMs;
use tidings_protocol::session_api::{CertificateState, Finding, NodeStatus, RootStatus, Severity};
use tidings_protocol::wire::messages::{RefusalCode, Refused};

use super::status;
use crate::cli::diagnosis::{Diagnosis, Remedy};
use crate::cli::format::{span, utc};
use crate::cli::{CommandError, CommonArgs, daemon};
use crate::clock::{Clock, MAX_SKEW_MS, SystemClock};
use crate::connection::{IdentityFileError, NodeIdentity, Probe, probe, validity_of};
use crate::discover::{RootSet, Surroundings};
use crate::held_dir::is_ours;
use crate::open_files::Open;

/// Fewer file watches than this are soon used up: one is needed for each directory.
const FEW_WATCHES: u64 = 16_384;
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

/// What is wrong.
fn findings(looked: &Looked) -> Vec<Finding> {
    let mut found = Vec::new();
    match &looked.identity {
        Ok(certificate) => found.extend(of_certificate(*certificate)),
        Err(error) => found.push(of_identity(error)),
    }
    match &looked.agent {
        Agent::Runs(status) => found.extend(of_status(status)),
        Agent::Down { gateway, probe } => {
            found.push(warning(
                "the node agent is not running: this machine's transcripts are not followed",
                &looked.run,
            ));
            found.extend(of_probe(gateway, probe));
        }
        Agent::Unpaired => {}
    }
    found.extend(looked.roots.iter().filter_map(of_root));
    found.extend(looked.watch_limit.and_then(of_watch_limit));
    found
}

fn of_identity(error: &IdentityFileError) -> Finding {
    let hint = match error {
        IdentityFileError::NotPaired { .. } => "tidings-node join LINK",
        IdentityFileError::File(_) => "run the command as the user who has joined",
        _ => "pair anew: tidings-node leave, then tidings-node join LINK",
    };
    failure(error.to_string(), hint)
}

fn of_certificate(certificate: Certificate) -> Option<Finding> {
    let until = utc(certificate.not_after);
    match certificate.state {
        CertificateState::Valid | CertificateState::Revoked => None,
        CertificateState::Expiring => Some(warning(
            format!("this node's certificate expires on {until} UTC and was not renewed"),
            "the agent renews it by itself, once it is connected for an hour",
        )),
        CertificateState::Expired => Some(failure(
            format!("this node's certificate has expired on {until} UTC"),
            "start the agent: it is let in to renew it; if it is not, on the gateway: \
             tidings cert renew NODE --out FOLDER",
        )),
        CertificateState::NotYetValid => Some(failure(
            "this node's certificate is not valid yet by this machine's clock",
            "set the clock right",
        )),
    }
}

fn of_status(status: &NodeStatus) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(why) = &status.connection_error {
        found.push(match &status.connection_hint {
            Some(hint) => {
                let reason = why.strip_suffix(&format!(": {hint}"));
                turned_away(reason.unwrap_or(why), hint)
            }
            None => failure(
                format!("not connected to the gateway at {}: {why}", status.gateway),
                UDP_HINT,
            ),
        });
    }
    found.extend(status.gateway_ahead_ms.and_then(of_skew));
    found.extend(
        status
            .warnings
            .iter()
            .map(|text| warning(text.clone(), "tidings-node status says more")),
    );
    found
}

const UDP_HINT: &str =
    "check that the gateway runs, and that no firewall stops UDP to its port, in either direction";

fn of_probe(gateway: &str, probe: &Result<Probe, String>) -> Option<Finding> {
    match probe {
        Ok(Probe::Welcome { gateway_ahead_ms }) => of_skew(*gateway_ahead_ms),
        Ok(Probe::Refused(refused)) => of_refusal(refused),
        Err(why) => Some(failure(
            format!("the gateway at {gateway} cannot be reached over UDP: {why}"),
            UDP_HINT,
        )),
    }
}

fn of_refusal(refused: &Refused) -> Option<Finding> {
    // The certificate is a finding of its own, and the agent renews it by itself.
    let is_said = refused.code == RefusalCode::CertificateExpired;
    (!is_said).then(|| turned_away(&refused.reason, &refused.hint))
}

fn turned_away(reason: &str, hint: &str) -> Finding {
    failure(format!("the gateway turns this node away: {reason}"), hint)
}

/// Clocks that are wrong make certificates look too young or too old.
fn of_skew(gateway_ahead_ms: i64) -> Option<Finding> {
    if gateway_ahead_ms.abs() <= MAX_SKEW_MS {
        return None;
    }
    let by = span(gateway_ahead_ms);
    let way = if gateway_ahead_ms > 0 {
        "behind"
    } else {
        "ahead of"
    };
    Some(warning(
        format!("this machine's clock is {by} {way} the gateway's"),
        "set both clocks right: certificates are judged by them",
    ))
}

fn of_root(root: &RootStatus) -> Option<Finding> {
    let (what, hint) = match root.state.as_str() {
        "unavailable" => (
            format!("{} ({}) cannot be read", root.path, root.catalog),
            "check that it is there, and that this user may read it",
        ),
        "polled" => (
            format!("{} ({}) is read only now and then", root.path, root.catalog),
            "file events are used up, or not to be had there: raise \
             fs.inotify.max_user_watches",
        ),
        _ => return None,
    };
    Some(warning(what, hint))
}

fn of_watch_limit(limit: u64) -> Option<Finding> {
    (limit < FEW_WATCHES).then(|| {
        warning(
            format!("this system lets a user watch only {limit} directories"),
            "sysctl fs.inotify.max_user_watches=524288",
        )
    })
}

fn failure(what: impl Into<String>, hint: &str) -> Finding {
    finding(Severity::Error, what, hint)
}

fn warning(what: impl Into<String>, hint: &str) -> Finding {
    finding(Severity::Warning, what, hint)
}

fn finding(severity: Severity, what: impl Into<String>, hint: &str) -> Finding {
    Finding {
        severity,
        what: what.into(),
        hint: hint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use tidings_protocol::{Catalog, HostName, NodeId};

    use super::*;

    const NOW: EpochMs = 1_790_000_000_000;
    const HOUR: i64 = 3_600_000;

    fn status() -> NodeStatus {
        NodeStatus {
            version: "0.1.0".to_owned(),
            node_id: NodeId::of_public_key(b"key"),
            host_name: HostName::parse("laptop").expect("name"),
            gateway: "gw:7430".to_owned(),
            connection: "connected".to_owned(),
            connection_since: NOW,
            connection_error: None,
            connection_hint: None,
            certificate_not_after: NOW,
            certificate_state: CertificateState::Valid,
            gateway_ahead_ms: Some(0),
            roots: Vec::new(),
            links: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn sound() -> Looked {
        Looked {
            identity: Ok(Certificate {
                state: CertificateState::Valid,
                not_after: NOW,
            }),
            agent: Agent::Runs(Box::new(status())),
            roots: Vec::new(),
            watch_limit: Some(524_288),
            run: "tidings-node run".to_owned(),
        }
    }

    fn down(probe: Result<Probe, String>) -> Looked {
        let gateway = "gw:7430".to_owned();
        Looked {
            agent: Agent::Down { gateway, probe },
            ..sound()
        }
    }

    fn refused(code: RefusalCode) -> Probe {
        Probe::Refused(Refused {
            code,
            reason: "why".to_owned(),
            hint: "what to do".to_owned(),
        })
    }

    fn root(state: &str) -> Looked {
        let root = RootStatus {
            catalog: Catalog::Claude,
            path: "/r".to_owned(),
            state: state.to_owned(),
        };
        Looked {
            roots: vec![root],
            ..sound()
        }
    }

    fn certificate_is(state: CertificateState) -> Looked {
        Looked {
            identity: Ok(Certificate {
                state,
                not_after: NOW,
            }),
            ..sound()
        }
    }

    fn agent_says(status: NodeStatus) -> Looked {
        Looked {
            agent: Agent::Runs(Box::new(status)),
            ..sound()
        }
    }

    #[test]
    fn each_thing_that_is_wrong_is_found_and_nothing_else() {
        let not_running = "Warning: the node agent is not running: this machine's transcripts \
                           are not followed";
        let ahead = |ms| {
            Ok(Probe::Welcome {
                gateway_ahead_ms: ms,
            })
        };
        let not_paired = Looked {
            identity: Err(IdentityFileError::NotPaired { dir: "/s".into() }),
            agent: Agent::Unpaired,
            ..sound()
        };
        let lost = NodeStatus {
            connection_error: Some("no answer".to_owned()),
            ..status()
        };
        let late = NodeStatus {
            gateway_ahead_ms: Some(-48 * HOUR),
            ..status()
        };
        let few = Looked {
            watch_limit: Some(8_192),
            ..sound()
        };
        let turned_away = NodeStatus {
            connection: "refused".to_owned(),
            connection_error: Some("why: what to do".to_owned()),
            connection_hint: Some("what to do".to_owned()),
            ..status()
        };
        let cases: [(Looked, &[&str]); 16] = [
            (sound(), &[]),
            (not_paired, &["Error: /s holds no paired node"]),
            (
                agent_says(lost),
                &["Error: not connected to the gateway at gw:7430: no answer"],
            ),
            (
                agent_says(turned_away),
                &["Error: the gateway turns this node away: why"],
            ),
            (
                agent_says(late),
                &["Warning: this machine's clock is 2 d ahead of the gateway's"],
            ),
            (down(ahead(0)), &[not_running]),
            (down(ahead(MAX_SKEW_MS)), &[not_running]),
            (
                down(ahead(3 * HOUR)),
                &[
                    not_running,
                    "Warning: this machine's clock is 3 h behind the gateway's",
                ],
            ),
            (
                down(Err("gw does not answer".to_owned())),
                &[
                    not_running,
                    "Error: the gateway at gw:7430 cannot be reached over UDP: gw does not \
                     answer",
                ],
            ),
            (
                down(Ok(refused(RefusalCode::Revoked))),
                &[not_running, "Error: the gateway turns this node away: why"],
            ),
            (
                down(Ok(refused(RefusalCode::CertificateExpired))),
                &[not_running],
            ),
            (
                certificate_is(CertificateState::Expiring),
                &[
                    "Warning: this node's certificate expires on 2026-09-21 14:13:20 UTC and \
                   was not renewed",
                ],
            ),
            (
                certificate_is(CertificateState::Expired),
                &["Error: this node's certificate has expired on 2026-09-21 14:13:20 UTC"],
            ),
            (
                root("unavailable"),
                &["Warning: /r (claude) cannot be read"],
            ),
            (root("watched"), &[]),
            (
                few,
                &["Warning: this system lets a user watch only 8192 directories"],
            ),
        ];
        for (looked, expected) in cases {
            let found = findings(&looked);
            let lines: Vec<_> = found
                .iter()
                .map(|finding| format!("{:?}: {}", finding.severity, finding.what))
                .collect();
            assert_eq!(lines, expected);
            assert!(found.iter().all(|finding| !finding.hint.is_empty()));
        }
    }
}
