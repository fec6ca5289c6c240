//! `tidings nodes`

use insta::assert_snapshot;
use tidings_protocol::session_api::{
    Invitation, Node, NodeRemoved, NodeState, Nodes, OpenInvitation, Reply, RootStatus,
};
use tidings_protocol::{Catalog, HostName};

use crate::fake::Fake;
use crate::run::with;
use crate::values::{TIME, laptop, laptop_id, local};

fn inviting() -> Fake {
    Fake::answering(Reply::NodesInvite(Invitation {
        link: "tidings://join/0707@gw.example.org:7430?ca=0909".to_owned(),
        name: Some("laptop".to_owned()),
        expires_at: TIME,
    }))
}

#[test]
fn invite_prints_the_link_alone_on_stdout() {
    let line = "nodes invite --name laptop --address gw.example.org:7430";
    assert_snapshot!(with(&inviting(), line), @r#"
    exit 0
    --- stdout
    tidings://join/0707@gw.example.org:7430?ca=0909
    --- stderr
    this link pairs laptop, once and until 2026-11-30 21:05:03 UTC; till then it is a secret
    hint: on that machine: tidings-node join LINK
    --- asked
    NodesInvite(NodesInvite { name: Some("laptop"), address: Some("gw.example.org:7430") })
    "#);
}

#[test]
fn invite_as_json() {
    assert_snapshot!(with(&inviting(), "nodes invite --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"link":"tidings://join/0707@gw.example.org:7430?ca=0909","name":"laptop","expiresAt":1796072703123}
    --- stderr
    --- asked
    NodesInvite(NodesInvite { name: None, address: None })
    "#);
}

#[test]
fn list_shows_each_node_and_what_it_warns_of() {
    let nodes = vec![local(), laptop()];
    let fake = Fake::answering(Reply::NodesList(Nodes {
        nodes,
        invitations: vec![],
    }));
    assert_snapshot!(with(&fake, "nodes list"), @"
    exit 0
    --- stdout
    NODE    CALLED        STATUS     LAST SEEN (UTC)      VERSION  CERTIFICATE UNTIL (UTC)  ID
    local   -             connected  2026-11-30 21:05:03  0.1.0    2026-12-30 21:05:03      ffffffffffffffffffffffffffffffff
    laptop  Ada's laptop  offline    -                    -        2026-12-01 21:05:03      0123456789abcdef0123456789abcdef
    --- stderr
    warning: laptop: its certificate expires within a day
    --- asked
    NodesList
    ");
    assert_snapshot!(with(&fake, "nodes list --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"nodes":[{"id":"ffffffffffffffffffffffffffffffff","name":"local","hostName":"local","host":"gateway:local","status":"connected","lastSeenAt":1796072703123,"version":"0.1.0","certificateNotAfter":1798664703123},{"id":"0123456789abcdef0123456789abcdef","name":"Ada's laptop","hostName":"laptop","host":"node:0123456789abcdef0123456789abcdef","status":"offline","certificateNotAfter":1796159103123,"warnings":["its certificate expires within a day"]}],"invitations":[]}
    --- stderr
    --- asked
    NodesList
    "#);
}

#[test]
fn list_shows_join_links_that_nobody_has_used_and_how_to_withdraw_one() {
    let invitation = |name: Option<&str>| OpenInvitation {
        id: "0011223344556677".to_owned(),
        name: name.map(|name| HostName::parse(name).expect("a name")),
        created_at: TIME,
        expires_at: TIME + 600_000,
    };
    let fake = Fake::answering(Reply::NodesList(Nodes {
        nodes: vec![local()],
        invitations: vec![invitation(Some("desk")), invitation(None)],
    }));
    let said = with(&fake, "nodes list");
    for line in [
        "a join link for desk works until 2026-11-30 21:15:03 UTC; tidings nodes reject desk withdraws it\n",
        "a join link for 0011223344556677 works until 2026-11-30 21:15:03 UTC; tidings nodes reject 0011223344556677 withdraws it\n",
    ] {
        assert!(said.contains(line), "{said}");
    }
    let json = with(&fake, "nodes list --json");
    let invitations = r#""invitations":[{"id":"0011223344556677","name":"desk","createdAt":1796072703123,"expiresAt":1796073303123},{"id":"0011223344556677","createdAt":1796072703123,"expiresAt":1796073303123}]}"#;
    assert!(json.contains(invitations), "{json}");
}

#[test]
fn an_empty_list_says_so_and_what_comes_next() {
    let fake = Fake::answering(Reply::NodesList(Nodes {
        nodes: vec![],
        invitations: vec![],
    }));
    assert_snapshot!(with(&fake, "nodes list"), @"
    exit 0
    --- stdout
    --- stderr
    no nodes
    hint: tidings nodes invite --name laptop
    --- asked
    NodesList
    ");
    assert_snapshot!(with(&fake, "--json nodes list"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"nodes":[],"invitations":[]}
    --- stderr
    --- asked
    NodesList
    "#);
}

fn answering(node: Node) -> Fake {
    Fake::answering(Reply::Node(Box::new(node)))
}

#[test]
fn show_has_all_of_one_node_with_where_it_looks() {
    let root = |catalog, path: &str, state: &str| RootStatus {
        catalog,
        path: path.to_owned(),
        state: state.to_owned(),
    };
    let node = Node {
        roots: vec![
            root(Catalog::Claude, "/home/ada/.claude/projects", "watched"),
            root(Catalog::Codex, "/home/ada/.codex/sessions", "unavailable"),
        ],
        ..laptop()
    };
    let fake = answering(node);
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

    CATALOG  STATE        ROOT
    claude   watched      /home/ada/.claude/projects
    codex    unavailable  /home/ada/.codex/sessions
    --- stderr
    warning: laptop: its certificate expires within a day
    --- asked
    NodesShow(NodeRef { node: "laptop" })
    "#);
    assert_snapshot!(with(&fake, "nodes show laptop --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"id":"0123456789abcdef0123456789abcdef","name":"Ada's laptop","hostName":"laptop","host":"node:0123456789abcdef0123456789abcdef","status":"offline","certificateNotAfter":1796159103123,"warnings":["its certificate expires within a day"],"roots":[{"catalog":"claude","path":"/home/ada/.claude/projects","state":"watched"},{"catalog":"codex","path":"/home/ada/.codex/sessions","state":"unavailable"}]}
    --- stderr
    --- asked
    NodesShow(NodeRef { node: "laptop" })
    "#);
    assert_snapshot!(with(&answering(local()), "nodes show gateway:local"), @r#"
    exit 0
    --- stdout
    node         local
    called       local
    status       connected
    last seen    2026-11-30 21:05:03 UTC
    version      0.1.0
    certificate  until 2026-12-30 21:05:03 UTC
    id           ffffffffffffffffffffffffffffffff
    --- stderr
    --- asked
    NodesShow(NodeRef { node: "local" })
    "#);
}

#[test]
fn rename_says_what_it_is_called_now() {
    let fake = answering(laptop());
    assert_snapshot!(with(&fake, "nodes rename laptop Ada's"), @r#"
    exit 0
    --- stdout
    laptop is called Ada's laptop now
    --- stderr
    --- asked
    NodesRename(NodesRename { node: "laptop", name: "Ada's" })
    "#);
    assert_snapshot!(with(&fake, "nodes rename laptop Ada's --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"id":"0123456789abcdef0123456789abcdef","name":"Ada's laptop","hostName":"laptop","host":"node:0123456789abcdef0123456789abcdef","status":"offline","certificateNotAfter":1796159103123,"warnings":["its certificate expires within a day"]}
    --- stderr
    --- asked
    NodesRename(NodesRename { node: "laptop", name: "Ada's" })
    "#);
}

#[test]
fn revoke_says_what_that_means() {
    let fake = answering(Node {
        status: NodeState::Revoked,
        ..laptop()
    });
    let line = format!("nodes revoke node:{}", laptop_id());
    assert_snapshot!(with(&fake, &line), @r#"
    exit 0
    --- stdout
    laptop is revoked
    --- stderr
    its connection has ended, and its key is turned away from now on
    --- asked
    NodesRevoke(NodeRef { node: "0123456789abcdef0123456789abcdef" })
    "#);
    assert_snapshot!(with(&fake, "nodes revoke laptop --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"id":"0123456789abcdef0123456789abcdef","name":"Ada's laptop","hostName":"laptop","host":"node:0123456789abcdef0123456789abcdef","status":"revoked","certificateNotAfter":1796159103123,"warnings":["its certificate expires within a day"]}
    --- stderr
    --- asked
    NodesRevoke(NodeRef { node: "laptop" })
    "#);
}

#[test]
fn remove_says_how_its_machine_comes_back() {
    let fake = Fake::answering(Reply::NodesRemove(NodeRemoved {
        removed: true,
        id: laptop_id(),
        host_name: laptop().host_name,
    }));
    assert_snapshot!(with(&fake, "nodes remove laptop"), @r#"
    exit 0
    --- stdout
    laptop is removed
    --- stderr
    hint: its machine may pair again, and is laptop again then: tidings nodes invite
    --- asked
    NodesRemove(NodeRef { node: "laptop" })
    "#);
    assert_snapshot!(with(&fake, "nodes remove laptop --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"removed":true,"id":"0123456789abcdef0123456789abcdef","hostName":"laptop"}
    --- stderr
    --- asked
    NodesRemove(NodeRef { node: "laptop" })
    "#);
}
