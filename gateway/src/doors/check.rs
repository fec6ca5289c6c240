//! What is wrong with this gateway, its nodes and its links, and the command that mends it.

use tidings_node::cli::format::utc;
use tidings_protocol::session_api::{
    ApiError, Finding, Findings, LinkStatus, Node, NodeState, Severity,
};
use tidings_protocol::{EpochMs, Host};

use super::Service;
use crate::nodes::authority::NODE_LEAF_LAST_THIRD_MS;
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
    now: EpochMs,
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
            now: self.nodes.clock.now(),
        };
        Ok(Findings {
            findings: findings(looked),
        })
    }
}

/// What is wrong, the worst first.
fn findings(looked: Looked) -> Vec<Finding> {
    let mut found = of_database(&looked.health, looked.integrity);
    for node in &looked.nodes {
        found.extend(of_certificate(node, looked.now));
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
        Health::Failed(why) => vec![error(
            why.to_string(),
            "check the disk, then start the gateway again: it recovers by itself",
        )],
    };
    match integrity {
        Ok(lines) => {
            let damaged = |line| error(format!("the database is damaged: {line}"), RESTORE);
            found.extend(lines.into_iter().map(damaged));
        }
        Err(why) => found.push(error(
            format!("the database cannot be checked: {why}"),
            RESTORE,
        )),
    }
    found
}

fn of_certificate(node: &Node, now: EpochMs) -> Option<Finding> {
    let ends = node.certificate_not_after;
    let is_turned_away = matches!(node.status, NodeState::Revoked | NodeState::Pending);
    if is_turned_away || ends - now > NODE_LEAF_LAST_THIRD_MS {
        return None;
    }
    let name = &node.host_name;
    let hint = match node.host {
        Host::GatewayLocal => "start the gateway again: its own node gets a new one at each start",
        Host::Node(_) => {
            "its agent renews it by itself once it is connected: tidings-node run on that machine"
        }
    };
    let ends_at = utc(ends);
    Some(if ends <= now {
        let what = format!("the certificate of {name} has expired on {ends_at} UTC");
        error(what, hint)
    } else {
        let what = format!("the certificate of {name} expires on {ends_at} UTC");
        warning(what, hint)
    })
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
    use tidings_protocol::{Catalog, HostName, NodeId, SessionKey, ThreadId};

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
            certificate_not_after: NOW + 20 * DAY,
            warnings: Vec::new(),
            roots: Vec::new(),
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
            now: NOW,
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
            certificate_not_after: 0,
            ..laptop()
        };
        assert_eq!(of_node(turned_away), []);
    }

    #[test]
    fn a_certificate_is_found_in_the_last_third_of_its_life() {
        for (left, found) in [
            (10 * DAY + 1, None),
            (10 * DAY, Some(Severity::Warning)),
            (1, Some(Severity::Warning)),
            (0, Some(Severity::Error)),
            (-DAY, Some(Severity::Error)),
        ] {
            let node = Node {
                certificate_not_after: NOW + left,
                ..laptop()
            };
            let severities: Vec<_> = of_node(node).iter().map(|f| f.severity).collect();
            assert_eq!(severities, Vec::from_iter(found), "{left} ms left");
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
            now: NOW,
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
