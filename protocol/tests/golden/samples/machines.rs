//! The replies about the gateway, its nodes, and its upkeep.

use tidings_protocol::report::LinkId;
use tidings_protocol::session_api::{
    BackedUp, CertificateState, Counts, Finding, Findings, GatewayStatus, Invitation, LinkStatus,
    Node, NodeLinkStatus, NodeRemoved, NodeState, NodeStatus, Nodes, OpenInvitation, Reply,
    RootStatus, Severity, Status, UpstreamState,
};
use tidings_protocol::{Catalog, Host, HostName};

use super::parts::{NOON, PATH, adopted_key, host_name, node_host, node_id, thread};

/// Samples of these replies.
pub(super) fn all() -> Vec<(&'static str, Reply)> {
    [machines(), upkeep()].concat()
}

fn machines() -> Vec<(&'static str, Reply)> {
    let invitation = |name| {
        Reply::NodesInvite(Invitation {
            link: "tidings://join/0…@192.0.2.1:7430?ca=0…".to_owned(),
            name,
            expires_at: NOON + 600_000,
        })
    };
    vec![
        ("status", Reply::Status(Box::new(status()))),
        ("node_status", Reply::NodeStatus(Box::new(node_status()))),
        ("for a named machine", invitation(Some("laptop-2".into()))),
        ("for any machine", invitation(None)),
        (
            "nodes",
            Reply::NodesList(Nodes {
                nodes: nodes(),
                invitations: invitations(),
            }),
        ),
        ("with its roots", Reply::Node(Box::new(node_with_roots()))),
        (
            "nodes_remove",
            Reply::NodesRemove(NodeRemoved {
                removed: true,
                id: node_id(),
                host_name: host_name(),
            }),
        ),
    ]
}

fn status() -> Status {
    let link = |state, outcome: &str| LinkStatus {
        session_key: adopted_key(),
        catalog: Catalog::Claude,
        host: node_host(),
        thread_id: thread(),
        state,
        last_outcome: outcome.to_owned(),
        last_report_at: Some(NOON),
        lag_bytes: 300,
        unclassified: 1,
        blocked: Some("a byte range of a report ends before it begins".into()),
    };
    let silent = LinkStatus {
        last_report_at: None,
        blocked: None,
        ..link(UpstreamState::Offline, "none")
    };
    Status {
        gateway: GatewayStatus {
            version: "0.1.0".to_owned(),
            pid: 4_194_304,
            state_dir: "/home/ada/.tidings".to_owned(),
            listen: "[::]:7430".to_owned(),
            http: Some("http://127.0.0.1:7431".to_owned()),
            started_at: NOON,
            database: "ok".to_owned(),
            warnings: vec!["the disk is nearly full".to_owned()],
            model: Some("small".to_owned()),
            server_certificate_not_after: NOON + 7_776_000_000,
            authority_not_after: NOON + 315_360_000_000,
        },
        nodes: nodes(),
        links: vec![
            link(UpstreamState::Live, "activity"),
            silent,
            link(UpstreamState::Blocked, "quiet"),
            link(UpstreamState::Unlinked, "missing"),
        ],
        counts: Counts {
            sessions: 1,
            signals: 50_000,
            head: u64::from(u32::MAX) + 1,
            watches: 3,
            notices: 2,
            links: 4,
        },
    }
}

fn nodes() -> Vec<Node> {
    let node = |status| Node {
        id: node_id(),
        name: "Ada's laptop".to_owned(),
        host_name: host_name(),
        host: node_host(),
        status,
        last_seen_at: Some(NOON),
        version: Some("0.1.0".into()),
        certificate_not_after: Some(NOON + 2_592_000_000),
        warnings: vec!["fs.inotify.max_user_watches is too small".to_owned()],
        roots: Vec::new(),
        request: None,
        audit: Vec::new(),
    };
    let never_seen = Node {
        host_name: HostName::local(),
        host: Host::GatewayLocal,
        last_seen_at: None,
        version: None,
        warnings: Vec::new(),
        ..node(NodeState::Offline)
    };
    vec![
        never_seen,
        node(NodeState::Connected),
        node(NodeState::Stalled),
        node(NodeState::Pending),
        node(NodeState::Revoked),
    ]
}

fn node_with_roots() -> Node {
    let node = nodes().swap_remove(1);
    Node {
        roots: vec![root()],
        ..node
    }
}

fn root() -> RootStatus {
    RootStatus {
        catalog: Catalog::Codex,
        path: "/home/ada/.codex/sessions".to_owned(),
        state: "watched".to_owned(),
    }
}

fn invitations() -> Vec<OpenInvitation> {
    let named = OpenInvitation {
        id: "0011223344556677".to_owned(),
        name: Some(host_name()),
        created_at: NOON,
        expires_at: NOON + 600_000,
    };
    let nameless = OpenInvitation {
        name: None,
        ..named.clone()
    };
    vec![named, nameless]
}

fn node_status() -> NodeStatus {
    NodeStatus {
        version: "0.1.0".to_owned(),
        node_id: node_id(),
        host_name: host_name(),
        gateway: "192.0.2.1:7430".to_owned(),
        connection: "connecting".to_owned(),
        connection_since: NOON,
        connection_error: Some("the gateway does not answer".into()),
        connection_hint: Some("look after it".into()),
        certificate_not_after: NOON,
        certificate_state: CertificateState::Valid,
        gateway_ahead_ms: Some(-1_500),
        roots: vec![root()],
        links: vec![NodeLinkStatus {
            link: LinkId(3),
            catalog: Catalog::Codex,
            thread_id: thread(),
            path: PATH.to_owned(),
            offset: 1_048_577,
            state: "idle".to_owned(),
        }],
        warnings: vec!["polling".to_owned()],
    }
}

fn upkeep() -> Vec<(&'static str, Reply)> {
    let finding = |severity| Finding {
        severity,
        what: "laptop-2 is offline".to_owned(),
        hint: "start its agent there: tidings-node run".to_owned(),
    };
    vec![
        (
            "backup",
            Reply::Backup(BackedUp {
                file: "/var/backups/tidings.db".to_owned(),
                bytes: u64::from(u32::MAX) + 1,
            }),
        ),
        ("all is well", Reply::Check(Findings::default())),
        (
            "findings",
            Reply::Check(Findings {
                findings: vec![finding(Severity::Error), finding(Severity::Warning)],
                http: Some("http://127.0.0.1:7431".to_owned()),
            }),
        ),
    ]
}
