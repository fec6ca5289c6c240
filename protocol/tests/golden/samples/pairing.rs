//! Pairing by approval, and certificates: messages, requests and replies.

use tidings_protocol::HostName;
use tidings_protocol::pairing::PairingWords;
use tidings_protocol::session_api::{
    AuditEntry, CertificateIssued, CertificateKind, CertificateRef, CertificateRow,
    CertificateState, Certificates, CertificatesRevoked, IssueCertificate, Node, NodeState,
    NodesApprove, PairingEvent, PairingNews, PairingRef, PairingRejected, PairingRequest,
    RenewCertificate, Reply, Request,
};
use tidings_protocol::wire::Message;
use tidings_protocol::wire::messages::{Ask, NonceOf};

use super::parts::{NOON, host_name, node_id};

const SERIAL: &str = "00112233445566778899aabbccddeeff";

pub(super) fn messages() -> Vec<(&'static str, Message)> {
    vec![
        (
            "ask",
            Message::Ask(Ask {
                signing_request: vec![0x30, 0x82, 0x00, 0xff],
                commitment: [0xc0; 32],
                machine_name: "Ada's laptop".to_owned(),
                agent_version: "0.1.0".to_owned(),
            }),
        ),
        ("nonce", Message::Nonce(NonceOf { nonce: [0x0f; 32] })),
        ("reveal", Message::Reveal(NonceOf { nonce: [0xf0; 32] })),
        ("shown", Message::Shown {}),
    ]
}

pub(super) fn requests() -> Vec<(&'static str, Request)> {
    let issue = |address| {
        Request::CertIssue(IssueCertificate {
            name: "laptop".to_owned(),
            signing_request: vec![0x30, 0x82, 0x00, 0xff],
            address,
        })
    };
    let approve = |name| {
        Request::NodesApprove(NodesApprove {
            request: words().to_string(),
            name,
        })
    };
    let named = |certificate: Option<&str>| CertificateRef {
        certificate: certificate.map(str::to_owned),
    };
    vec![
        ("nodes_listen", Request::NodesListen {}),
        ("under its own name", approve(None)),
        ("under another name", approve(Some("laptop".to_owned()))),
        (
            "nodes_reject",
            Request::NodesReject(PairingRef {
                request: node_id().to_string(),
            }),
        ),
        ("for the listen address", issue(None)),
        ("for another address", issue(Some("gw.example.org".into()))),
        (
            "cert_renew",
            Request::CertRenew(RenewCertificate {
                node: "laptop".to_owned(),
                address: Some("gw.example.org:7430".to_owned()),
            }),
        ),
        ("by its serial", Request::CertRevoke(named(Some(SERIAL)))),
        ("all", Request::CertInspect(named(None))),
        ("of one node", Request::CertInspect(named(Some("laptop")))),
    ]
}

pub(super) fn replies() -> Vec<(&'static str, Reply)> {
    let mut replies = vec![
        (
            "listening",
            Reply::NodesListen(PairingNews {
                event: PairingEvent::Listening,
                address: Some("192.0.2.1:7430".to_owned()),
                until: Some(NOON + 600_000),
                request: None,
            }),
        ),
        (
            "nodes_reject",
            Reply::NodesReject(PairingRejected {
                rejected: true,
                id: node_id().to_string(),
                machine_name: "Ada's laptop".to_owned(),
            }),
        ),
        ("that waits for approval", Reply::Node(Box::new(pending()))),
        ("with what was done to it", Reply::Node(Box::new(audited()))),
        (
            "cert_issued",
            Reply::CertIssued(Box::new(CertificateIssued {
                node_id: node_id(),
                host_name: host_name(),
                gateway: "192.0.2.1:7430".to_owned(),
                serial: SERIAL.to_owned(),
                not_after: NOON,
                certificate: vec![0x30, 0x03, 0x02, 0x01, 0x05],
                authority: vec![0x30; 300],
            })),
        ),
        (
            "cert_revoked",
            Reply::CertRevoked(CertificatesRevoked {
                host_name: host_name(),
                revoked: vec![SERIAL.to_owned()],
            }),
        ),
        (
            "cert_inspect",
            Reply::CertInspect(Certificates {
                certificates: certificates(),
            }),
        ),
    ];
    replies.extend(
        [
            ("requested", PairingEvent::Requested),
            ("approved", PairingEvent::Approved),
            ("rejected", PairingEvent::Rejected),
            ("expired", PairingEvent::Expired),
            ("withdrawn", PairingEvent::Withdrawn),
            ("closed", PairingEvent::Closed),
        ]
        .map(|(case, event)| {
            let news = PairingNews {
                event,
                address: None,
                until: None,
                request: (event != PairingEvent::Closed).then(request),
            };
            (case, Reply::NodesListen(news))
        }),
    );
    replies
}

fn words() -> PairingWords {
    let six = "acorn window tulip canyon sparrow napkin";
    six.parse().expect("six words")
}

fn request() -> PairingRequest {
    PairingRequest {
        id: node_id(),
        machine_name: "Ada's laptop".to_owned(),
        version: "0.1.0".to_owned(),
        address: "192.0.2.7:50000".to_owned(),
        words: words(),
        expires_at: NOON + 600_000,
    }
}

fn node(status: NodeState) -> Node {
    Node {
        id: node_id(),
        name: "Ada's laptop".to_owned(),
        host_name: host_name(),
        host: tidings_protocol::Host::Node(node_id()),
        status,
        last_seen_at: None,
        version: None,
        certificate_not_after: None,
        warnings: Vec::new(),
        roots: Vec::new(),
        request: None,
        audit: Vec::new(),
    }
}

fn pending() -> Node {
    Node {
        request: Some(request()),
        ..node(NodeState::Pending)
    }
}

fn audited() -> Node {
    Node {
        audit: vec![AuditEntry {
            at: NOON,
            actor: "operator".to_owned(),
            action: "nodes.approve".to_owned(),
            outcome: "done".to_owned(),
        }],
        ..node(NodeState::Offline)
    }
}

fn certificates() -> Vec<CertificateRow> {
    let own = |kind, state| CertificateRow {
        kind,
        state,
        host_name: None,
        node_id: None,
        serial: SERIAL.to_owned(),
        not_before: NOON - 1,
        not_after: NOON + 1,
        revoked_at: None,
    };
    let node = |state| CertificateRow {
        host_name: Some(HostName::local()),
        node_id: Some(node_id()),
        ..own(CertificateKind::Node, state)
    };
    vec![
        own(CertificateKind::Authority, CertificateState::Valid),
        own(CertificateKind::Server, CertificateState::Expiring),
        node(CertificateState::Expired),
        node(CertificateState::NotYetValid),
        CertificateRow {
            revoked_at: Some(NOON),
            ..node(CertificateState::Revoked)
        },
    ]
}
