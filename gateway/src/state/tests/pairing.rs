//! Invitations and nodes.

use tidings_protocol::HostName;
use tidings_protocol::join_link::JoinCode;
use tidings_protocol::session_api::OpenInvitation;

use super::*;
use crate::state::{
    InvitationStanding, NewInvitation, NodeRecord, NodeStanding, RedeemRefusal, Redeemed,
    Redemption, StateError,
};

const MINUTES_10: EpochMs = 10 * 60_000;

impl Fixture {
    pub(super) async fn invite(&self, code: u8, name: Option<&str>) -> Result<(), StateError> {
        let host_name = name.map(|name| HostName::parse(name).expect("a host name"));
        let invitation = NewInvitation {
            code: JoinCode::from_bytes([code; 16]),
            host_name,
            expires_at: self.clock.now() + MINUTES_10,
        };
        self.state.create_invitation(invitation).await
    }

    async fn redeem(&self, code: u8, machine: &str, serial: u8) -> Redeemed {
        let redemption = Redemption {
            code: JoinCode::from_bytes([code; 16]),
            node: NodeId::of_public_key(machine.as_bytes()),
            machine_name: machine.to_owned(),
            version: "1.0".to_owned(),
            certificate: certificate(serial),
        };
        let redeemed = self.state.redeem_invitation(redemption).await;
        redeemed.expect("an answer")
    }

    /// A machine of this name, paired.
    pub(super) async fn paired(&self, machine: &str) -> NodeRecord {
        self.invite(77, None).await.expect("invited");
        match self.redeem(77, machine, 77).await {
            Redeemed::Joined { node, .. } => *node,
            Redeemed::Refused(refusal) => panic!("{refusal:?}"),
        }
    }

    async fn standing(&self, code: u8) -> InvitationStanding {
        let code = JoinCode::from_bytes([code; 16]);
        self.state.invitation(code).await.expect("an answer")
    }
}

fn refusal(redeemed: Redeemed) -> Option<RedeemRefusal> {
    match redeemed {
        Redeemed::Refused(refusal) => Some(refusal),
        Redeemed::Joined { .. } => None,
    }
}

#[tokio::test]
async fn an_open_invitation_is_listed_until_it_is_used_withdrawn_or_too_old() {
    let fixture = Fixture::new();
    let names = async || {
        let open = fixture.state.open_invitations().await.expect("a list");
        let name = |open: &OpenInvitation| open.name.as_ref().map(ToString::to_string);
        open.iter().map(name).collect::<Vec<_>>()
    };
    let withdraw = async |name: &str| {
        let withdrawn = fixture.state.withdraw_invitations(name.to_owned()).await;
        withdrawn.expect("an answer").len()
    };
    let some = |name: &str| Some(name.to_owned());
    for (code, name) in [
        (1, Some("ada")),
        (2, None),
        (3, Some("bob")),
        (4, Some("eve")),
    ] {
        fixture.invite(code, name).await.expect("invited");
        fixture.clock.pass(1);
    }
    assert_eq!(names().await, [some("ada"), None, some("bob"), some("eve")]);
    assert_eq!(refusal(fixture.redeem(3, "bob", 3).await), None);
    assert_eq!(withdraw("bob").await, 0, "it is used");
    assert_eq!(withdraw("ada").await, 1);
    assert_eq!(withdraw("ada").await, 0, "once");
    let refused = refusal(fixture.redeem(1, "ada", 1).await);
    assert_eq!(refused, Some(RedeemRefusal::Unknown));
    let nameless = fixture.state.open_invitations().await.expect("a list");
    assert_eq!(withdraw(&nameless[0].id).await, 1);
    assert_eq!(names().await, [some("eve")]);
    fixture.clock.pass(MINUTES_10);
    assert_eq!(names().await, []);
    assert_eq!(withdraw("eve").await, 0, "too old");
    let lines = "SELECT count(*) FROM audit_log WHERE action = 'nodes.reject'";
    assert_eq!(fixture.number(lines), 2);
}

#[tokio::test]
async fn a_code_pairs_one_machine_and_gives_it_the_same_answer_again() {
    let fixture = Fixture::new();
    assert_eq!(fixture.standing(1).await, InvitationStanding::Unknown);
    fixture.invite(1, Some("laptop")).await.expect("invited");
    assert_eq!(fixture.standing(1).await, InvitationStanding::Open);
    let first = fixture.redeem(1, "ada", 1).await;
    let Redeemed::Joined { node, certificate } = &first else {
        panic!("{first:?}");
    };
    assert_eq!(node.host_name.as_str(), "laptop");
    assert_eq!(node.name, "laptop");
    assert_eq!(node.standing, NodeStanding::Active);
    assert_eq!(certificate, &vec![1; 3]);
    assert_eq!(
        fixture.standing(1).await,
        InvitationStanding::Redeemed(node.node.clone())
    );
    assert_eq!(fixture.redeem(1, "ada", 2).await, first, "not the new one");
    let other = fixture.redeem(1, "eve", 3).await;
    assert_eq!(refusal(other), Some(RedeemRefusal::Used));
    fixture.clock.pass(MINUTES_10);
    let late = fixture.redeem(1, "ada", 2).await;
    assert_eq!(refusal(late), Some(RedeemRefusal::Expired));
    assert_eq!(fixture.standing(1).await, InvitationStanding::Expired);
}

#[tokio::test]
async fn a_code_that_is_wrong_or_old_pairs_nobody() {
    let fixture = Fixture::new();
    let unknown = fixture.redeem(1, "ada", 1).await;
    assert_eq!(refusal(unknown), Some(RedeemRefusal::Unknown));
    fixture.invite(1, None).await.expect("invited");
    fixture.clock.pass(MINUTES_10);
    let old = fixture.redeem(1, "ada", 1).await;
    assert_eq!(refusal(old), Some(RedeemRefusal::Expired));
    assert_eq!(fixture.state.nodes().await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_code_is_kept_as_its_digest_only() {
    let fixture = Fixture::new();
    fixture.invite(0xab, None).await.expect("invited");
    let found = fixture
        .number("SELECT count(*) FROM join_codes WHERE instr(digest, x'abababababababab') > 0");
    assert_eq!(found, 0);
}

#[tokio::test]
async fn host_names_are_given_once_and_never_again() {
    let fixture = Fixture::new();
    fixture.local_node().await;
    let taken = fixture.invite(1, Some("local")).await;
    assert_eq!(
        taken,
        Err(StateError::NameTaken {
            name: "local".to_owned(),
            free: "local-2".to_owned()
        })
    );
    // Two invitations for one name: taken at pairing, so the second to come is refused.
    fixture.invite(1, Some("box")).await.expect("invited");
    fixture.invite(2, Some("box")).await.expect("invited");
    assert_eq!(refusal(fixture.redeem(1, "ada", 1).await), None);
    let free = HostName::parse("box-2").expect("a host name");
    let second = fixture.redeem(2, "bob", 2).await;
    assert_eq!(refusal(second), Some(RedeemRefusal::NameTaken { free }));
    // A removed node keeps its name.
    let ada = NodeId::of_public_key(b"ada");
    let removed = fixture.state.set_node_standing(ada, NodeStanding::Removed);
    assert_eq!(removed.await, Ok(true));
    assert!(fixture.invite(3, Some("box")).await.is_err());
    // A machine's own name is made to fit.
    fixture.invite(4, None).await.expect("invited");
    let Redeemed::Joined { node, .. } = fixture.redeem(4, "Box", 4).await else {
        panic!("refused");
    };
    assert_eq!(node.host_name.as_str(), "box-2");
    assert_eq!(node.name, "Box");
}

#[tokio::test]
async fn a_removed_machine_may_come_back_under_its_name_and_a_revoked_one_may_not() {
    let fixture = Fixture::new();
    let node = fixture.paired("ada").await;
    let set = async |standing| {
        let set = fixture.state.set_node_standing(node.node.clone(), standing);
        set.await.expect("an answer")
    };
    assert!(set(NodeStanding::Removed).await);
    fixture.invite(2, None).await.expect("invited");
    let Redeemed::Joined { node: back, .. } = fixture.redeem(2, "ada", 2).await else {
        panic!("refused");
    };
    assert_eq!(back.host_name, node.host_name);
    assert_eq!(back.standing, NodeStanding::Active);
    assert!(set(NodeStanding::Revoked).await);
    assert!(set(NodeStanding::Removed).await);
    fixture.invite(3, None).await.expect("invited");
    let again = fixture.redeem(3, "ada", 3).await;
    assert_eq!(refusal(again), Some(RedeemRefusal::Revoked));
}

#[tokio::test]
async fn the_gateways_own_machine_is_the_node_local_whatever_its_key() {
    let fixture = Fixture::new();
    let first = fixture.local_node().await;
    fixture.paired("ada").await;
    let second = NodeId::of_public_key(b"a new key");
    let local = fixture
        .state
        .ensure_local_node(second.clone(), "1.1".to_owned(), certificate(2))
        .await
        .expect("local");
    assert_eq!(local.node, second);
    assert_eq!(local.host, Host::GatewayLocal);
    assert_eq!(local.host_name, HostName::local());
    assert_eq!(local.certificate_not_after, Some(START + 2_000));
    assert_eq!(fixture.state.node(first).await, Ok(None));
    let nodes = fixture.state.nodes().await.expect("nodes");
    let names: Vec<_> = nodes.iter().map(|node| node.host_name.as_str()).collect();
    assert_eq!(names, ["local", "ada"]);
    let stays = fixture
        .state
        .set_node_standing(second, NodeStanding::Revoked);
    assert!(matches!(stays.await, Err(StateError::Invalid(_))));
}

#[tokio::test]
async fn a_node_is_seen_when_it_comes_and_when_it_goes() {
    let fixture = Fixture::new();
    let node = fixture.paired("ada").await.node;
    let record = async || {
        let record = fixture.state.node(node.clone()).await.expect("read");
        record.expect("a node")
    };
    assert_eq!(record().await.last_seen_at, None);
    let connected = fixture.state.node_connected(node.clone(), "2.0".to_owned());
    assert_eq!(connected.await, Ok(()));
    assert_eq!(record().await.last_seen_at, Some(START));
    assert_eq!(record().await.version.as_deref(), Some("2.0"));
    fixture.clock.pass(5);
    let disconnected = fixture.state.node_disconnected(node.clone());
    assert_eq!(disconnected.await, Ok(()));
    assert_eq!(record().await.last_seen_at, Some(START + 5));
    let renewed = fixture
        .state
        .store_certificate(node.clone(), certificate(9));
    assert_eq!(renewed.await, Ok(()));
    assert_eq!(record().await.certificate_not_after, Some(START + 9_000));
    let renamed = fixture.state.rename_node(node.clone(), " Ada\n".to_owned());
    assert_eq!(renamed.await, Ok(true));
    assert_eq!(record().await.name, "Ada");
    assert_eq!(record().await.host_name.as_str(), "ada");
    let stranger = NodeId::of_public_key(b"stranger");
    let unknown = fixture.state.node_connected(stranger, "1".to_owned()).await;
    assert!(matches!(unknown, Err(StateError::NodeNotActive(_))));
}
