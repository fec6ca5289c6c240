//! What is wrong with this gateway, its nodes and its links, and the command that mends it.

use tidings_node::cli::format::utc;
use tidings_protocol::session_api::{
    ApiError, CertificateKind, CertificateRow, CertificateState, Finding, Findings, LinkStatus,
    Node, NodeState, Severity,
};
use tidings_protocol::{Host, HostName};

use super::{Service, http};
use crate::nodes::expiry;
use crate::state::{Health, StateError};

/// How many sessions a finding names; the status lists them all.
const MAX_NAMED: usize = 3;
const RESTORE: &str = "stop the gateway, keep a copy of the database, and restore a backup";

/// What a check looks at.
struct Looked {
    health: Health,
    integrity: Result<Vec<String>, StateError>,
    nodes: Vec<Node>,
    links: Vec<LinkStatus>,
    certificates: Vec<CertificateRow>,
}

impl Service {
    pub(super) async fn check(&self) -> Result<Findings, ApiError> {
        let state = &self.nodes.state;
        let health = state.health().borrow().clone();
        let looked = Looked {
            health,
            integrity: state.check_integrity().await,
            nodes: self.nodes_list().await?.nodes,
            links: self.links().await?,
            certificates: expiry::in_use(&self.nodes).await?,
        };
        let http = self.info.config.borrow().http.clone();
        let mut findings = findings(looked);
        findings.extend(http::findings(&http, self.nodes.clock.now()));
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        Ok(Findings {
            findings,
            http: self.info.http.clone(),
        })
    }
}

/// What is wrong, the worst first.
fn findings(looked: Looked) -> Vec<Finding> {
    let mut found = of_database(&looked.health, looked.integrity);
    found.extend(looked.certificates.iter().filter_map(of_certificate));
    for node in &looked.nodes {
        found.extend(of_presence(node));
        found.extend(node.warnings.iter().map(|text| {
            let hint = "tidings-node status on that machine says more";
            warning(format!("{}: {text}", node.host_name), hint)
        }));
    }
    found.extend(looked.links.iter().filter_map(of_blocked));
    found.extend(of_unclassified(&looked.links));
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found
}

fn of_database(health: &Health, integrity: Result<Vec<String>, StateError>) -> Vec<Finding> {
    let mut found = match health {
        Health::Serving => Vec::new(),
        Health::ReadOnly(why) => vec![error(
            format!("the gateway reads only: {why}"),
            "free some space; the gateway goes on by itself",
        )],
        Health::Failed(why) => vec![error(why.to_string(), why.way_out())],
    };
    match integrity {
        Ok(lines) => {
            let damaged = |line| error(format!("the database is damaged: {line}"), RESTORE);
            found.extend(lines.into_iter().map(damaged));
        }
        Err(why @ StateError::Replaced { .. }) => {
            found.push(error(why.to_string(), why.way_out()));
        }
        Err(why) => found.push(error(
            format!("the database cannot be checked: {why}"),
            RESTORE,
        )),
    }
    found
}

fn of_certificate(row: &CertificateRow) -> Option<Finding> {
    let of = match (row.kind, &row.host_name) {
        (CertificateKind::Authority, _) => "the gateway's authority".to_owned(),
        (CertificateKind::Server, _) => "the gateway itself".to_owned(),
        (CertificateKind::Node, Some(name)) => name.to_string(),
        (CertificateKind::Node, None) => "a node".to_owned(),
    };
    let is_local = |name: &HostName| name.as_str() == HostName::LOCAL;
    let hint = match row.kind {
        CertificateKind::Authority => {
            "make a new gateway in time: another --state-dir, and every node joins anew"
        }
        CertificateKind::Server => "start the gateway again: it gets a new one at each start",
        CertificateKind::Node if row.host_name.as_ref().is_some_and(is_local) => {
            "start the gateway again: its own node gets a new one at each start"
        }
        CertificateKind::Node => {
            "its agent renews it by itself once it is connected: tidings-node run on that machine"
        }
    };
    let ends_at = utc(row.not_after);
    match row.state {
        CertificateState::Valid | CertificateState::Revoked => None,
        CertificateState::Expiring => Some(warning(
            format!("the certificate of {of} expires on {ends_at} UTC"),
            hint,
        )),
        CertificateState::Expired => Some(error(
            format!("the certificate of {of} has expired on {ends_at} UTC"),
            hint,
        )),
        CertificateState::NotYetValid => Some(error(
            format!(
                "the certificate of {of} begins only on {} UTC",
                utc(row.not_before)
            ),
            "set this machine's clock right",
        )),
    }
}

fn of_presence(node: &Node) -> Option<Finding> {
    let name = &node.host_name;
    match (node.status, &node.host) {
        (NodeState::Stalled, _) => Some(warning(
            format!("{name} is connected and gives no sign of life"),
            "tidings-node status on that machine; if that hangs too, start its agent again",
        )),
        (NodeState::Offline, Host::GatewayLocal) => Some(warning(
            format!("{name} is offline: this machine's own transcripts are not followed"),
            "start the gateway without --no-local-node",
        )),
        (NodeState::Offline, Host::Node(_)) => {
            let since = node
                .last_seen_at
                .map(|at| format!(" since {} UTC", utc(at)));
            Some(warning(
                format!("{name} is offline{}", since.unwrap_or_default()),
                &format!(
                    "tidings-node run on that machine; or, for good: tidings nodes remove {name}"
                ),
            ))
        }
        _ => None,
    }
}

fn of_blocked(link: &LinkStatus) -> Option<Finding> {
    let why = link.blocked.as_ref()?;
    Some(error(
        format!("reports on {} are rejected: {why}", link.session_key),
        "it is tried again by itself; if it stays, update the older of gateway and node agent",
    ))
}

/// One finding for all links: where one has such records, many of that program's have.
fn of_unclassified(links: &[LinkStatus]) -> Option<Finding> {
    let with: Vec<_> = links.iter().filter(|link| link.unclassified > 0).collect();
    if with.is_empty() {
        return None;
    }
    let records: u64 = with.iter().map(|link| link.unclassified).sum();
    let named: Vec<&str> = with
        .iter()
        .take(MAX_NAMED)
        .map(|link| link.session_key.as_str())
        .collect();
    let more = match with.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(warning(
        format!(
            "records that no rule knows: {records}, in {}{more}",
            named.join(", ")
        ),
        "tidings-node classify FILE shows them; a newer node agent may know them",
    ))
}

fn error(what: String, hint: &str) -> Finding {
    finding(Severity::Error, what, hint)
}

fn warning(what: String, hint: &str) -> Finding {
    finding(Severity::Warning, what, hint)
}

fn finding(severity: Severity, what: String, hint: &str) -> Finding {
    Finding {
        severity,
        what,
        hint: hint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use tidings_protocol::session_api::UpstreamState;
    use tidings_protocol::{Catalog, EpochMs, NodeId, SessionKey, ThreadId};

    use super::*;

    const NOW: EpochMs = 1_790_000_000_000;
    const DAY: EpochMs = 24 * 60 * 60 * 1_000;

    fn laptop() -> Node {
        let id = NodeId::parse("0123456789abcdef0123456789abcdef").expect("node id");
        Node {
            id: id.clone(),
            name: "laptop".to_owned(),
            host_name: HostName::parse("laptop").expect("name"),
            host: Host::Node(id),
            status: NodeState::Connected,
            last_seen_at: Some(NOW),
            version: None,
            certificate_not_after: Some(NOW + DAY),
            warnings: Vec::new(),
            roots: Vec::new(),
            request: None,
            audit: Vec::new(),
        }
    }

    fn link(key: &str) -> LinkStatus {
        LinkStatus {
            session_key: SessionKey::parse(key).expect("key"),
            catalog: Catalog::Claude,
            host: Host::GatewayLocal,
            thread_id: ThreadId::parse("t").expect("thread"),
            state: UpstreamState::Live,
            last_outcome: "quiet".to_owned(),
            last_report_at: Some(NOW),
            lag_bytes: 0,
            unclassified: 0,
            blocked: None,
        }
    }

    fn sound() -> Looked {
        Looked {
            health: Health::Serving,
            integrity: Ok(Vec::new()),
            nodes: vec![laptop()],
            links: vec![link("agent:main:a")],
            certificates: vec![certificate(CertificateKind::Node, CertificateState::Valid)],
        }
    }

    fn of_node(node: Node) -> Vec<Finding> {
        findings(Looked {
            nodes: vec![node],
            ..sound()
        })
    }

    fn lines(found: &[Finding]) -> Vec<String> {
        let line = |finding: &Finding| format!("{:?}: {}", finding.severity, finding.what);
        found.iter().map(line).collect()
    }

    #[test]
    fn nothing_is_found_where_all_is_well() {
        assert_eq!(findings(sound()), []);
        let turned_away = Node {
            status: NodeState::Revoked,
            ..laptop()
        };
        assert_eq!(of_node(turned_away), []);
    }

    fn certificate(kind: CertificateKind, state: CertificateState) -> CertificateRow {
        CertificateRow {
            kind,
            state,
            host_name: (kind == CertificateKind::Node).then(|| laptop().host_name),
            node_id: None,
            serial: "01".to_owned(),
            not_before: NOW - DAY,
            not_after: NOW,
            revoked_at: None,
        }
    }

    #[test]
    fn a_certificate_is_found_when_it_should_have_been_renewed() {
        use CertificateKind::{Authority, Node, Server};
        use CertificateState::{Expired, Expiring, NotYetValid, Revoked, Valid};
        let ends = "on 2026-09-21 14:13:20 UTC";
        for (kind, state, line) in [
            (Node, Valid, None),
            (Node, Revoked, None),
            (
                Node,
                Expiring,
                Some(format!("Warning: the certificate of laptop expires {ends}")),
            ),
            (
                Node,
                Expired,
                Some(format!(
                    "Error: the certificate of laptop has expired {ends}"
                )),
            ),
            (
                Node,
                NotYetValid,
                Some(
                    "Error: the certificate of laptop begins only on 2026-09-20 14:13:20 UTC"
                        .to_owned(),
                ),
            ),
            (
                Server,
                Expiring,
                Some(format!(
                    "Warning: the certificate of the gateway itself expires {ends}"
                )),
            ),
            (
                Authority,
                Expired,
                Some(format!(
                    "Error: the certificate of the gateway's authority has expired {ends}"
                )),
            ),
        ] {
            let found = findings(Looked {
                certificates: vec![certificate(kind, state)],
                ..sound()
            });
            assert_eq!(lines(&found), Vec::from_iter(line), "{kind:?} {state:?}");
        }
    }

    #[test]
    fn a_node_that_is_silent_or_away_or_warns_is_found() {
        let local = |status| Node {
            host_name: HostName::local(),
            host: Host::GatewayLocal,
            status,
            ..laptop()
        };
        let away = |last_seen_at| Node {
            status: NodeState::Offline,
            last_seen_at,
            ..laptop()
        };
        let stalled = Node {
            status: NodeState::Stalled,
            ..laptop()
        };
        let warns = Node {
            warnings: vec!["its roots are polled".to_owned()],
            ..laptop()
        };
        for (node, line) in [
            (
                stalled,
                "Warning: laptop is connected and gives no sign of life",
            ),
            (
                away(Some(NOW)),
                "Warning: laptop is offline since 2026-09-21 14:13:20 UTC",
            ),
            (away(None), "Warning: laptop is offline"),
            (
                local(NodeState::Offline),
                "Warning: local is offline: this machine's own transcripts are not followed",
            ),
            (warns, "Warning: laptop: its roots are polled"),
        ] {
            assert_eq!(lines(&of_node(node)), [line]);
        }
    }

    #[test]
    fn the_worst_comes_first() {
        let full = StateError::DiskFull {
            path: PathBuf::from("/s/tidings.db"),
        };
        let unclassified = |key: &str, unclassified| LinkStatus {
            unclassified,
            ..link(key)
        };
        let blocked = LinkStatus {
            blocked: Some("a byte range ends before it begins".to_owned()),
            ..unclassified("agent:main:a", 1)
        };
        let found = findings(Looked {
            health: Health::ReadOnly(Arc::new(full)),
            integrity: Ok(vec![
                "row 7 missing from index events_by_session".to_owned(),
            ]),
            nodes: vec![Node {
                status: NodeState::Stalled,
                ..laptop()
            }],
            links: vec![
                blocked,
                unclassified("agent:main:b", 2),
                unclassified("agent:main:c", 0),
                unclassified("agent:main:d", 3),
                unclassified("agent:main:e", 4),
            ],
            certificates: Vec::new(),
        });
        assert_eq!(
            lines(&found),
            [
                "Error: the gateway reads only: /s/tidings.db cannot be written: the disk is full",
                "Error: the database is damaged: row 7 missing from index events_by_session",
                "Error: reports on agent:main:a are rejected: a byte range ends before it begins",
                "Warning: laptop is connected and gives no sign of life",
                "Warning: records that no rule knows: 10, in agent:main:a, agent:main:b, \
                 agent:main:d and 1 more",
            ]
        );
        assert!(found.iter().all(|finding| !finding.hint.is_empty()));
    }

    #[test]
    fn a_database_that_cannot_be_checked_is_found() {
        let found = findings(Looked {
            integrity: Err(StateError::Closed),
            ..sound()
        });
        let line = "Error: the database cannot be checked: the state database is closed";
        assert_eq!(lines(&found), [line]);
    }
}
