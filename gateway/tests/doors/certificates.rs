//! Certificates that an operator makes and revokes.

use std::path::Path;
use std::sync::Arc;

use tidings_gateway::Gateway;
use tidings_node::cli::Connection;
use tidings_node::clock::{Clock, SystemClock};
use tidings_node::connection::{
    Agent, AgentOptions, ConnectionState, NodeIdentity, NodeKey, ProvisionError, accept, provision,
    signing_request,
};
use tidings_protocol::session_api::{
    CertificateIssued, CertificateKind, CertificateRef, CertificateState, ErrorType,
    IssueCertificate, NodeRef, NodeState, RenewCertificate, Request,
};
use tokio::time::timeout;

use crate::served::{PATIENCE, ask, body, connect, gateway, refused, roots};

struct House {
    gateway: Gateway,
    door: Connection,
    scratch: tempfile::TempDir,
}

impl House {
    async fn build() -> Self {
        let scratch = tempfile::tempdir().expect("scratch");
        let gateway = gateway(&scratch.path().join("gateway")).await;
        let door = connect(gateway.state_dir()).await;
        Self {
            gateway,
            door,
            scratch,
        }
    }

    async fn issue(&mut self, name: &str, key: &NodeKey) -> CertificateIssued {
        let issued = ask(&mut self.door, issuing(name, key)).await;
        *body!(issued, CertIssued)
    }

    async fn renew(&mut self, name: &str) -> CertificateIssued {
        let renew = Request::CertRenew(RenewCertificate {
            node: name.to_owned(),
            address: None,
        });
        *body!(ask(&mut self.door, renew).await, CertIssued)
    }

    async fn revoke(&mut self, name: &str) -> Vec<String> {
        let revoke = Request::CertRevoke(named(Some(name)));
        body!(ask(&mut self.door, revoke).await, CertRevoked).revoked
    }

    fn run(&self, identity: NodeIdentity) -> Agent {
        let (agent, _) = Agent::start(AgentOptions {
            identity,
            identity_dir: None,
            roots: roots(self.scratch.path()),
            seen_file: None,
            clock: Arc::new(SystemClock::new()),
        })
        .expect("agent");
        agent
    }
}

fn issuing(name: &str, key: &NodeKey) -> Request {
    Request::CertIssue(IssueCertificate {
        name: name.to_owned(),
        signing_request: signing_request(key).expect("request"),
        address: None,
    })
}

fn named(certificate: Option<&str>) -> CertificateRef {
    CertificateRef {
        certificate: certificate.map(str::to_owned),
    }
}

fn now() -> i64 {
    SystemClock::new().now()
}

/// What the machine with this state directory makes of a certificate that was carried there.
fn carried(issued: &CertificateIssued, dir: &Path) -> NodeIdentity {
    let folder = tempfile::tempdir().expect("scratch");
    provision(folder.path(), issued, None).expect("written");
    accept(folder.path(), dir, now()).expect("accepted")
}

async fn wait_for(agent: &Agent, is_meant: impl Fn(&ConnectionState) -> bool) {
    let mut state = agent.connection();
    let waiting = timeout(PATIENCE, state.wait_for(|(state, _)| is_meant(state)));
    let met = waiting.await.map(|met| drop(met.expect("runs")));
    assert!(met.is_ok(), "not in time, but {:?}", state.borrow());
}

fn is_connected(state: &ConnectionState) -> bool {
    *state == ConnectionState::Connected
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_a_request_of_the_machine_makes_it_a_node() {
    let mut house = House::build().await;
    let dir = house.scratch.path().join("laptop");
    let key = NodeKey::load_or_create(&dir).expect("key");
    let issued = house.issue("laptop", &key).await;
    assert_eq!(issued.node_id, key.node_id());
    assert_eq!(issued.gateway, house.gateway.listen().to_string());
    let agent = house.run(carried(&issued, &dir));
    wait_for(&agent, is_connected).await;
    agent.stop();
    // The same again: another certificate, the same node.
    let again = house.issue("laptop", &key).await;
    assert_ne!(again.serial, issued.serial);
    assert_eq!(again.node_id, issued.node_id);
    let inspected = Request::CertInspect(named(Some("laptop")));
    let rows = body!(ask(&mut house.door, inspected).await, CertInspect).certificates;
    let serials: Vec<_> = rows.iter().map(|row| row.serial.clone()).collect();
    assert_eq!(serials, [again.serial, issued.serial]);
    assert!(rows.iter().all(|row| row.state == CertificateState::Valid));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_or_a_key_that_is_another_nodes_is_refused() {
    let mut house = House::build().await;
    let (ada, eve) = (
        NodeKey::generate().expect("key"),
        NodeKey::generate().expect("key"),
    );
    house.issue("laptop", &ada).await;
    let error = refused(&mut house.door, issuing("laptop", &eve)).await;
    assert_eq!(error.error_type, ErrorType::Conflict, "{error}");
    assert_eq!(error.hint.as_deref(), Some("laptop-2 is free"));
    let error = refused(&mut house.door, issuing("desktop", &ada)).await;
    assert_eq!(error.error_type, ErrorType::Conflict, "{error}");
    let error = refused(&mut house.door, issuing("local", &eve)).await;
    assert_eq!(error.error_type, ErrorType::InvalidRequest, "{error}");
    let garbled = Request::CertIssue(IssueCertificate {
        name: "eve".to_owned(),
        signing_request: vec![0x30; 100],
        address: None,
    });
    let error = refused(&mut house.door, garbled).await;
    assert_eq!(error.error_type, ErrorType::InvalidData, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_certificate_ends_its_connection_and_another_one_brings_the_node_back() {
    let mut house = House::build().await;
    let dir = house.scratch.path().join("laptop");
    let key = NodeKey::load_or_create(&dir).expect("key");
    let issued = house.issue("laptop", &key).await;
    let agent = house.run(carried(&issued, &dir));
    wait_for(&agent, is_connected).await;

    assert_eq!(
        house.revoke(&issued.serial).await,
        std::slice::from_ref(&issued.serial)
    );
    let is_refused = |state: &ConnectionState| {
        matches!(state, ConnectionState::Refused(refused)
            if refused.reason.contains("certificate has been revoked"))
    };
    wait_for(&agent, is_refused).await;
    agent.stop();
    assert!(house.revoke(&issued.serial).await.is_empty(), "only once");
    let show = Request::NodesShow(NodeRef {
        node: "laptop".to_owned(),
    });
    let node = body!(ask(&mut house.door, show).await, Node);
    assert_eq!(node.status, NodeState::Offline, "the node is not revoked");
    assert_eq!(node.certificate_not_after, None);
    let actions: Vec<_> = node.audit.iter().map(|line| line.action.as_str()).collect();
    assert_eq!(actions, ["cert.revoke", "cert.issue"]);

    let renewed = house.renew("laptop").await;
    std::fs::remove_file(dir.join("node.json")).expect("the old identity goes");
    let agent = house.run(carried(&renewed, &dir));
    wait_for(&agent, is_connected).await;
    agent.stop();
    let listed = Request::CertInspect(named(None));
    let rows = body!(ask(&mut house.door, listed).await, CertInspect).certificates;
    let shown: Vec<_> = rows.iter().map(|row| (row.kind, row.state)).collect();
    assert_eq!(
        shown,
        [
            (CertificateKind::Authority, CertificateState::Valid),
            (CertificateKind::Server, CertificateState::Valid),
            (CertificateKind::Node, CertificateState::Valid),
            (CertificateKind::Node, CertificateState::Revoked),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_takes_only_a_certificate_of_its_own_that_is_valid_now() {
    let mut house = House::build().await;
    let dir = house.scratch.path().join("laptop");
    let folder = house.scratch.path().join("carried");
    let key = NodeKey::generate().expect("key");
    let issued = house.issue("laptop", &key).await;
    provision(&folder, &issued, None).expect("written");
    let refusal = |at| accept(&folder, &dir, at).expect_err("refused");
    assert!(matches!(refusal(now()), ProvisionError::NoKey { .. }));
    NodeKey::load_or_create(&dir).expect("another key");
    assert!(matches!(refusal(now()), ProvisionError::OtherKey { .. }));
    key.save(&dir).expect("the right key");
    let late = refusal(issued.not_after + 1_000);
    assert!(matches!(late, ProvisionError::NotValid { .. }), "{late}");
    // A file that somebody has changed.
    let forged = CertificateIssued {
        authority: house
            .issue("eve", &NodeKey::generate().expect("key"))
            .await
            .certificate,
        ..issued.clone()
    };
    provision(&folder, &forged, None).expect("written");
    assert!(matches!(refusal(now()), ProvisionError::NotValid { .. }));
    provision(&folder, &issued, None).expect("written");
    accept(&folder, &dir, now()).expect("accepted");
}
