//! `tidings nodes listen|approve|reject`, and a list with machines that ask.

use insta::assert_snapshot;
use tidings_protocol::pairing::PairingWords;
use tidings_protocol::session_api::{
    ApiError, AuditEntry, ErrorType, Node, NodeState, Nodes, PairingEvent, PairingNews,
    PairingRejected, PairingRequest, Reply,
};

use crate::fake::Fake;
use crate::run::with;
use crate::values::{TIME, laptop, laptop_id};

fn words() -> PairingWords {
    let words = "acorn window tulip canyon sparrow napkin";
    words.parse().expect("six words")
}

fn request() -> PairingRequest {
    PairingRequest {
        id: laptop_id(),
        machine_name: "ada-laptop".to_owned(),
        version: "0.1.0".to_owned(),
        address: "192.0.2.7:50000".to_owned(),
        words: words(),
        expires_at: TIME + 600_000,
    }
}

fn waiting() -> Node {
    Node {
        name: "ada-laptop".to_owned(),
        status: NodeState::Pending,
        certificate_not_after: None,
        warnings: Vec::new(),
        request: Some(request()),
        ..laptop()
    }
}

fn news(event: PairingEvent, request: Option<PairingRequest>) -> Reply {
    Reply::NodesListen(PairingNews {
        event,
        address: None,
        until: None,
        request,
    })
}

fn all_news() -> Vec<Reply> {
    let listening = Reply::NodesListen(PairingNews {
        event: PairingEvent::Listening,
        address: Some("192.0.2.1:7430".to_owned()),
        until: Some(TIME),
        request: None,
    });
    let about = |event| news(event, Some(request()));
    vec![
        listening,
        about(PairingEvent::Requested),
        about(PairingEvent::Withdrawn),
        about(PairingEvent::Expired),
        about(PairingEvent::Rejected),
        about(PairingEvent::Approved),
        news(PairingEvent::Closed, None),
    ]
}

#[test]
fn listen_tells_of_each_machine_with_what_to_do_and_ends_with_its_window() {
    let fake = Fake::streaming(all_news());
    assert_snapshot!(with(&fake, "nodes listen"), @"
    exit 0
    --- stdout
    machines may ask until 2026-11-30 21:05:03 UTC: tidings-node join 192.0.2.1:7430
    ada-laptop (192.0.2.7:50000) asks, and shows:
        acorn window tulip canyon sparrow napkin
      if the machine shows the same:  tidings nodes approve acorn window tulip canyon sparrow napkin
      if not:                         tidings nodes reject 0123456789abcdef0123456789abcdef
    ada-laptop (192.0.2.7:50000) has gone, or asks anew
    ada-laptop (192.0.2.7:50000) was not approved in time
    ada-laptop (192.0.2.7:50000) was rejected
    ada-laptop (192.0.2.7:50000) is a node now
    no machine may ask any more
    --- stderr
    Ctrl-C ends it; who waits by then can still be approved
    --- asked
    NodesListen
    ");
}

#[test]
fn listen_as_json_is_one_object_a_line() {
    let replies = vec![
        news(PairingEvent::Requested, Some(request())),
        news(PairingEvent::Closed, None),
    ];
    assert_snapshot!(with(&Fake::streaming(replies), "nodes listen --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"event":"requested","request":{"id":"0123456789abcdef0123456789abcdef","machineName":"ada-laptop","version":"0.1.0","address":"192.0.2.7:50000","words":"acorn window tulip canyon sparrow napkin","expiresAt":1796073303123}}
    {"schemaVersion":1,"event":"closed"}
    --- stderr
    --- asked
    NodesListen
    "#);
}

#[test]
fn a_gateway_that_goes_while_somebody_listens_is_an_error() {
    let fake = Fake::streaming(vec![news(PairingEvent::Requested, Some(request()))]);
    assert_snapshot!(with(&fake, "nodes listen"), @"
    exit 69
    --- stdout
    ada-laptop (192.0.2.7:50000) asks, and shows:
        acorn window tulip canyon sparrow napkin
      if the machine shows the same:  tidings nodes approve acorn window tulip canyon sparrow napkin
      if not:                         tidings nodes reject 0123456789abcdef0123456789abcdef
    --- stderr
    error: the gateway has gone
    hint: machines that waited must ask again, once it runs and listens
    --- asked
    NodesListen
    ");
}

#[test]
fn approve_takes_the_words_as_words() {
    let fake = Fake::answering(Reply::Node(Box::new(laptop())));
    let line = format!("nodes approve {} --name laptop", words());
    assert_snapshot!(with(&fake, &line), @r#"
    exit 0
    --- stdout
    laptop is a node now
    --- stderr
    warning: laptop: its certificate expires within a day
    --- asked
    NodesApprove(NodesApprove { request: "acorn window tulip canyon sparrow napkin", name: Some("laptop") })
    "#);
    let dashed = format!("nodes approve {}", words().to_string().replace(' ', "-"));
    assert_snapshot!(with(&fake, &dashed), @r#"
    exit 0
    --- stdout
    laptop is a node now
    --- stderr
    warning: laptop: its certificate expires within a day
    --- asked
    NodesApprove(NodesApprove { request: "acorn-window-tulip-canyon-sparrow-napkin", name: None })
    "#);
    let nobody = ApiError::new(
        ErrorType::NotFound,
        "no machine that waits shows these words",
    )
    .with_hint("compare once more");
    let fake = Fake::answering(Reply::Error(nobody));
    let line = format!("nodes approve {} --json", laptop_id());
    assert_snapshot!(with(&fake, &line), @r#"
    exit 1
    --- stdout
    {"schemaVersion":1,"ok":false,"error":{"type":"not_found","message":"no machine that waits shows these words","hint":"compare once more"}}
    --- stderr
    --- asked
    NodesApprove(NodesApprove { request: "0123456789abcdef0123456789abcdef", name: None })
    "#);
}

#[test]
fn reject_says_whom() {
    let fake = Fake::answering(Reply::NodesReject(PairingRejected {
        rejected: true,
        id: laptop_id().to_string(),
        machine_name: "ada-laptop".to_owned(),
    }));
    let line = format!("nodes reject {}", laptop_id());
    assert_snapshot!(with(&fake, &line), @r#"
    exit 0
    --- stdout
    ada-laptop is rejected
    --- stderr
    --- asked
    NodesReject(PairingRef { request: "0123456789abcdef0123456789abcdef" })
    "#);
    assert_snapshot!(with(&fake, &format!("{line} --json")), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"rejected":true,"id":"0123456789abcdef0123456789abcdef","machineName":"ada-laptop"}
    --- stderr
    --- asked
    NodesReject(PairingRef { request: "0123456789abcdef0123456789abcdef" })
    "#);
}

#[test]
fn a_machine_that_asks_stands_in_the_list_with_its_words() {
    let nodes = vec![waiting()];
    let fake = Fake::answering(Reply::NodesList(Nodes {
        nodes,
        invitations: vec![],
    }));
    assert_snapshot!(with(&fake, "nodes list"), @"
    exit 0
    --- stdout
    NODE    CALLED      STATUS   LAST SEEN (UTC)  VERSION  CERTIFICATE UNTIL (UTC)  ID
    laptop  ada-laptop  pending  -                -        -                        0123456789abcdef0123456789abcdef
    --- stderr
    hint: ada-laptop waits for approval: tidings nodes approve acorn window tulip canyon sparrow napkin
    --- asked
    NodesList
    ");
    assert_snapshot!(with(&fake, "nodes list --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"nodes":[{"id":"0123456789abcdef0123456789abcdef","name":"ada-laptop","hostName":"laptop","host":"node:0123456789abcdef0123456789abcdef","status":"pending","request":{"id":"0123456789abcdef0123456789abcdef","machineName":"ada-laptop","version":"0.1.0","address":"192.0.2.7:50000","words":"acorn window tulip canyon sparrow napkin","expiresAt":1796073303123}}],"invitations":[]}
    --- stderr
    --- asked
    NodesList
    "#);
    let fake = Fake::answering(Reply::Node(Box::new(waiting())));
    assert_snapshot!(with(&fake, &format!("nodes show {}", laptop_id())), @r#"
    exit 0
    --- stdout
    node         laptop
    called       ada-laptop
    status       pending
    last seen    never
    version      unknown
    certificate  none
    id           0123456789abcdef0123456789abcdef

    asks from    192.0.2.7:50000
    words        acorn window tulip canyon sparrow napkin
    waits        until 2026-11-30 21:15:03 UTC
    --- stderr
    --- asked
    NodesShow(NodeRef { node: "0123456789abcdef0123456789abcdef" })
    "#);
}

#[test]
fn show_has_what_operators_did() {
    let line = |action: &str, outcome: &str| AuditEntry {
        at: TIME,
        actor: "operator".to_owned(),
        action: action.to_owned(),
        outcome: outcome.to_owned(),
    };
    let node = Node {
        audit: vec![line("nodes.rename", "done"), line("nodes.approve", "done")],
        warnings: Vec::new(),
        ..laptop()
    };
    let fake = Fake::answering(Reply::Node(Box::new(node)));
    assert_snapshot!(with(&fake, "nodes show laptop"), @r#"
    exit 0
    --- stdout
    node         laptop
    called       Ada's laptop
    status       offline
    last seen    never
    version      unknown
    certificate  until 2026-12-01 21:05:03 UTC
    id           0123456789abcdef0123456789abcdef

    WHEN (UTC)           WHO       WHAT           OUTCOME
    2026-11-30 21:05:03  operator  nodes.rename   done
    2026-11-30 21:05:03  operator  nodes.approve  done
    --- stderr
    --- asked
    NodesShow(NodeRef { node: "laptop" })
    "#);
}
