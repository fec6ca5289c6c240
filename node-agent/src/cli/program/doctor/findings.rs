//! What follows from what was seen on this machine. Pure.

use tidings_protocol::session_api::{CertificateState, Finding, NodeStatus, RootStatus, Severity};
use tidings_protocol::wire::messages::{RefusalCode, Refused};

use super::{Agent, Certificate, Looked};
use crate::cli::format::{span, utc};
use crate::clock::MAX_SKEW_MS;
use crate::connection::{IdentityFileError, Probe};

/// Fewer file watches than this are soon used up: one is needed for each directory.
const FEW_WATCHES: u64 = 16_384;

/// What is wrong.
pub(super) fn findings(looked: &Looked) -> Vec<Finding> {
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
    use tidings_protocol::{Catalog, EpochMs, HostName, NodeId};

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
