//! What operators did, and the certificates they made and revoked.

use tidings_protocol::HostName;
use tidings_protocol::session_api::AuditEntry;

use super::*;
use crate::state::{AuditAction, EnrolRefusal, NameWish, NewNode, NodeRecord, NodeStanding};

impl Fixture {
    async fn lines(&self, node: &NodeRecord) -> Vec<AuditEntry> {
        let lines = self
            .state
            .audit_of(node.node.clone(), node.host_name.clone());
        lines.await.expect("lines")
    }

    fn audited(&self) -> i64 {
        self.number("SELECT count(*) FROM audit_log")
    }

    fn new_node(machine: &str, name: NameWish, serial: u8) -> NewNode {
        NewNode {
            node: NodeId::of_public_key(machine.as_bytes()),
            name,
            version: "1.0".to_owned(),
            certificate: certificate(serial),
        }
    }
}

fn given(name: &str) -> NameWish {
    NameWish::Given(HostName::parse(name).expect("a host name"))
}

fn acts(lines: &[AuditEntry]) -> Vec<(&str, &str, &str)> {
    let act = |line| {
        let AuditEntry {
            actor,
            action,
            outcome,
            ..
        }: &AuditEntry = line;
        (actor.as_str(), action.as_str(), outcome.as_str())
    };
    lines.iter().map(act).collect()
}

#[tokio::test]
async fn each_act_on_a_node_is_one_line_with_who_did_it() {
    let fixture = Fixture::new();
    fixture.local_node().await;
    assert_eq!(fixture.audited(), 0, "nobody did that");
    let node = fixture.paired("ada").await;
    let id = node.node.clone();
    let renamed = fixture.state.rename_node(id.clone(), "Ada".to_owned());
    assert_eq!(renamed.await, Ok(true));
    let stored = fixture
        .state
        .store_issued_certificate(id.clone(), certificate(8));
    assert_eq!(stored.await, Ok(()));
    let serials = vec![certificate(8).serial];
    let revoked = fixture.state.revoke_certificates(id.clone(), serials);
    assert_eq!(revoked.await.map(|serials| serials.len()), Ok(1));
    for standing in [NodeStanding::Removed, NodeStanding::Revoked] {
        let set = fixture.state.set_node_standing(id.clone(), standing);
        assert_eq!(set.await, Ok(true));
    }
    let refused = Some("the host name is\ntaken".to_owned());
    let audited = fixture
        .state
        .audit(AuditAction::Approve, id.to_string(), refused);
    assert_eq!(audited.await, Ok(()));
    let own = format!("node:{id}");
    assert_eq!(
        acts(&fixture.lines(&node).await),
        [
            ("operator", "nodes.approve", "the host name istaken"),
            ("operator", "nodes.revoke", "done"),
            ("operator", "nodes.remove", "done"),
            ("operator", "cert.revoke", "done"),
            ("operator", "cert.renew", "done"),
            ("operator", "nodes.rename", "done"),
            (own.as_str(), "nodes.join", "done"),
        ]
    );
    // The invitation named no machine; it is a line all the same.
    assert_eq!(fixture.audited(), 8);
}

#[tokio::test]
async fn what_did_not_happen_is_not_recorded_as_done() {
    let fixture = Fixture::new();
    let node = fixture.paired("ada").await;
    let before = fixture.audited();
    let taken = fixture
        .state
        .approve_node(Fixture::new_node("eve", given("ada"), 2));
    let free = HostName::parse("ada-2").expect("a host name");
    assert_eq!(taken.await, Ok(Err(EnrolRefusal::NameTaken { free })));
    let stranger = NodeId::of_public_key(b"stranger");
    let unknown = fixture
        .state
        .rename_node(stranger.clone(), "name".to_owned());
    assert_eq!(unknown.await, Ok(false));
    let unknown = fixture
        .state
        .revoke_certificates(stranger, vec![certificate(77).serial]);
    assert_eq!(unknown.await, Ok(Vec::new()), "another node's certificate");
    assert!(fixture.invite(9, Some("ada")).await.is_err());
    assert_eq!(fixture.audited(), before);
    assert_eq!(fixture.state.node(node.node.clone()).await, Ok(Some(node)));
}

#[tokio::test]
async fn a_machine_becomes_a_node_by_approval_or_by_request_under_its_name() {
    let fixture = Fixture::new();
    let machine = NameWish::Machine("Ada's Laptop".to_owned());
    let approved = fixture
        .state
        .approve_node(Fixture::new_node("ada", machine.clone(), 1));
    let approved = approved.await.expect("an answer").expect("a node");
    assert_eq!(approved.host_name.as_str(), "ada-s-laptop");
    assert_eq!(approved.name, "Ada's Laptop");
    let second = fixture
        .state
        .approve_node(Fixture::new_node("bob", machine, 2));
    let second = second.await.expect("an answer").expect("a node");
    assert_eq!(second.host_name.as_str(), "ada-s-laptop-2");
    let issued = fixture
        .state
        .issue_node(Fixture::new_node("eve", given("desk"), 3));
    let issued = issued.await.expect("an answer").expect("a node");
    assert_eq!(
        (issued.host_name.as_str(), issued.name.as_str()),
        ("desk", "desk")
    );
    let revoke = fixture
        .state
        .set_node_standing(issued.node, NodeStanding::Revoked);
    assert_eq!(revoke.await, Ok(true));
    let again = fixture
        .state
        .issue_node(Fixture::new_node("eve", given("desk"), 4));
    assert_eq!(again.await, Ok(Err(EnrolRefusal::Revoked)));
}

#[tokio::test]
async fn a_revoked_certificate_stays_known_however_often_its_node_renews() {
    let fixture = Fixture::new();
    let node = fixture.paired("ada").await.node;
    let first = certificate(77).serial;
    let revoked = fixture
        .state
        .revoke_certificates(node.clone(), vec![first.clone()]);
    assert_eq!(revoked.await, Ok(vec![first.clone()]));
    let record = fixture.state.node(node.clone()).await.expect("read");
    assert_eq!(record.expect("a node").certificate_not_after, None);
    for serial in 100..140 {
        let renewed = fixture
            .state
            .store_certificate(node.clone(), certificate(serial));
        assert_eq!(renewed.await, Ok(()));
    }
    assert_eq!(fixture.state.is_revoked(first).await, Ok(true));
    assert_eq!(
        fixture.state.is_revoked(certificate(139).serial).await,
        Ok(false)
    );
    let kept = fixture.state.certificates().await.expect("certificates");
    assert_eq!(
        kept.len(),
        24 + 1,
        "the newest, and the one that is turned away"
    );
    assert_eq!(kept[0].serial, certificate(139).serial);
}

#[tokio::test]
async fn only_the_newest_lines_are_kept() {
    let fixture = Fixture::new();
    fixture
        .outside()
        .execute(
            "INSERT INTO audit_log (id, at, actor, action, outcome)
             VALUES (1, 0, 'operator', 'nodes.rename', 'done'),
                    (10000, 0, 'operator', 'nodes.rename', 'done')",
            [],
        )
        .expect("lines");
    fixture.invite(1, None).await.expect("invited");
    assert_eq!(fixture.audited(), 2, "the oldest has gone");
}
