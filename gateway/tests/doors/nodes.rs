//! What an operator changes about a node, and what the node notices.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidings_gateway::Gateway;
use tidings_node::cli::Connection;
use tidings_node::clock::{Clock, SystemClock};
use tidings_node::connection::{self, Agent, AgentOptions, ConnectionState, NodeIdentity};
use tidings_protocol::JoinLink;
use tidings_protocol::session_api::{
    ErrorType, NodeRef, NodeState, NodesInvite, NodesRename, Request,
};
use tokio::time::timeout;

use crate::served::{
    PATIENCE, ask, body, connect, gateway, gateway_with_local_node, refused, roots,
};

/// A revoked node's connection ends within this time.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Pairs a machine, whose agent does not run yet.
pub(crate) async fn join(gateway: &Gateway, dir: &Path, name: &str) -> NodeIdentity {
    let mut door = connect(gateway.state_dir()).await;
    let invite = Request::NodesInvite(NodesInvite {
        name: Some(name.to_owned()),
        address: None,
    });
    let link = body!(ask(&mut door, invite).await, NodesInvite).link;
    let link = JoinLink::parse(&link).expect("a link");
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    connection::join(&link, "machine", dir, &clock)
        .await
        .expect("joined")
}

async fn run(identity: NodeIdentity, root: &Path) -> Agent {
    let options = AgentOptions {
        identity,
        identity_dir: None,
        seen_file: None,
        roots: roots(root),
        clock: Arc::new(SystemClock::new()),
    };
    let (agent, _) = Agent::start(options).expect("agent");
    wait_for(&agent, |state| *state == ConnectionState::Connected).await;
    agent
}

async fn wait_for(agent: &Agent, is_meant: impl Fn(&ConnectionState) -> bool) {
    let mut state = agent.connection();
    let waiting = state.wait_for(|(state, _)| is_meant(state));
    timeout(PATIENCE, waiting)
        .await
        .expect("in time")
        .expect("runs");
}

fn node(name: &str) -> NodeRef {
    NodeRef {
        node: name.to_owned(),
    }
}

async fn names(door: &mut Connection) -> Vec<String> {
    let nodes = body!(ask(door, Request::NodesList {}).await, NodesList).nodes;
    let names = nodes.iter().map(|node| node.host_name.to_string());
    names.collect()
}

#[tokio::test]
async fn a_node_is_shown_with_the_roots_that_its_presence_named() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let gateway = gateway_with_local_node(&scratch.path().join("state"), scratch.path()).await;
    let mut door = connect(gateway.state_dir()).await;
    let shown = async {
        loop {
            let request = Request::NodesShow(node("local"));
            let shown = body!(ask(&mut door, request).await, Node);
            if !shown.roots.is_empty() {
                return shown;
            }
        }
    };
    let shown = timeout(PATIENCE, shown).await.expect("in time");
    let path = scratch.path().canonicalize().expect("path");
    for root in &shown.roots {
        assert_eq!(root.path, path.display().to_string());
    }
    // The list is the same without them.
    let listed = body!(ask(&mut door, Request::NodesList {}).await, NodesList).nodes;
    assert_eq!(listed[0].id, shown.id);
    assert!(listed[0].roots.is_empty());
    drop(door);
    gateway.stop().await;
}

#[tokio::test]
async fn revoking_a_node_ends_its_connection_at_once_and_for_good() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let gateway = gateway(&scratch.path().join("state")).await;
    let identity = join(&gateway, &scratch.path().join("node"), "laptop").await;
    let id = identity.node_id.clone();
    let agent = run(identity, scratch.path()).await;
    let mut door = connect(gateway.state_dir()).await;
    let shown = body!(
        ask(&mut door, Request::NodesShow(node("laptop"))).await,
        Node
    );
    assert_eq!((&shown.id, shown.status), (&id, NodeState::Connected));

    let asked = Instant::now();
    let revoke = Request::NodesRevoke(node("laptop"));
    let revoked = body!(ask(&mut door, revoke).await, Node);
    wait_for(&agent, |state| *state != ConnectionState::Connected).await;
    let took = asked.elapsed();

    assert!(took < AT_ONCE, "{took:?}");
    assert_eq!((&revoked.id, revoked.status), (&id, NodeState::Revoked));
    wait_for(&agent, |state| matches!(state, ConnectionState::Refused(_))).await;
    let again = Request::NodesRevoke(node(id.as_str()));
    assert_eq!(
        body!(ask(&mut door, again).await, Node).status,
        NodeState::Revoked
    );
    let error = refused(&mut door, Request::NodesRemove(node("laptop"))).await;
    assert_eq!(error.error_type, ErrorType::Conflict, "{error}");
    assert_eq!(names(&mut door).await, ["laptop"]);
    agent.stop();
    drop(door);
    gateway.stop().await;
}

#[tokio::test]
async fn a_removed_node_is_sent_away_and_may_come_back_under_its_name() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let gateway = gateway(&scratch.path().join("state")).await;
    let dir = scratch.path().join("node");
    let agent = run(join(&gateway, &dir, "laptop").await, scratch.path()).await;
    let mut door = connect(gateway.state_dir()).await;

    let removed = Request::NodesRemove(node("laptop"));
    let removed = body!(ask(&mut door, removed).await, NodesRemove);

    assert!(removed.removed);
    assert_eq!(removed.host_name.as_str(), "laptop");
    wait_for(&agent, |state| matches!(state, ConnectionState::Refused(_))).await;
    agent.stop();
    assert!(names(&mut door).await.is_empty());
    let error = refused(&mut door, Request::NodesShow(node("laptop"))).await;
    assert_eq!(error.error_type, ErrorType::NotFound);
    // The same machine keeps its key: of what pairing wrote only the certificate goes.
    std::fs::remove_file(dir.join("node.json")).expect("paired before");
    let identity = join(&gateway, &dir, "another").await;
    assert_eq!(
        (identity.node_id, identity.host_name.as_str()),
        (removed.id, "laptop")
    );
    drop(door);
    gateway.stop().await;
}

#[tokio::test]
async fn a_renamed_node_keeps_its_host_name_and_its_connection() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let gateway = gateway(&scratch.path().join("state")).await;
    let identity = join(&gateway, &scratch.path().join("node"), "laptop").await;
    let agent = run(identity, scratch.path()).await;
    let mut connection = agent.connection();
    connection.mark_unchanged();
    let mut door = connect(gateway.state_dir()).await;
    let rename = |name: &str| {
        Request::NodesRename(NodesRename {
            node: "laptop".to_owned(),
            name: name.to_owned(),
        })
    };

    let renamed = body!(ask(&mut door, rename(" Ada's laptop ")).await, Node);

    assert_eq!(renamed.name, "Ada's laptop");
    assert_eq!(renamed.host_name.as_str(), "laptop");
    for name in ["", "two\nlines", &"x".repeat(129)] {
        let error = refused(&mut door, rename(name)).await;
        assert_eq!(error.error_type, ErrorType::InvalidRequest, "{name:?}");
    }
    for name in ["laptop", "Ada's laptop"] {
        let shown = body!(ask(&mut door, Request::NodesShow(node(name))).await, Node);
        assert_eq!(shown.host_name.as_str(), "laptop", "{name}");
    }
    let shown = Request::NodesShow(node("laptop"));
    let shown = body!(ask(&mut door, shown).await, Node);
    assert_eq!(
        (shown.name.as_str(), shown.status),
        ("Ada's laptop", NodeState::Connected)
    );
    assert!(!connection.has_changed().expect("runs"));
    agent.stop();
    drop(door);
    gateway.stop().await;
}

#[tokio::test]
async fn the_gateways_own_node_stays_and_an_unknown_one_is_named_with_those_there_are() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let gateway = gateway_with_local_node(&scratch.path().join("state"), scratch.path()).await;
    let mut door = connect(gateway.state_dir()).await;
    for request in [
        Request::NodesRevoke(node("local")),
        Request::NodesRemove(node("gateway:local")),
    ] {
        let error = refused(&mut door, request).await;
        assert_eq!(error.error_type, ErrorType::InvalidRequest, "{error}");
    }
    let shown = Request::NodesShow(node("local"));
    let shown = body!(ask(&mut door, shown).await, Node);
    assert_eq!(shown.status, NodeState::Connected);
    for request in [
        Request::NodesShow(node("latpop")),
        Request::NodesRevoke(node("latpop")),
        Request::NodesRemove(node("latpop")),
    ] {
        let error = refused(&mut door, request).await;
        assert_eq!(error.error_type, ErrorType::NotFound);
        assert_eq!(error.message, "no node latpop");
        assert_eq!(error.hint.as_deref(), Some("there is local"));
    }
    drop(door);
    gateway.stop().await;
}
