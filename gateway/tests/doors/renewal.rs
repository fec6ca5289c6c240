//! Certificates in the course of time, and two machines with one key.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use tidings_gateway::config::Config;
use tidings_gateway::{Gateway, GatewayOptions};
use tidings_node::clock::{Clock, SystemClock};
use tidings_node::connection::{self, Agent, AgentOptions, ConnectionState, NodeIdentity};
use tidings_protocol::session_api::{NodeRef, NodesInvite, Request};
use tidings_protocol::{EpochMs, JoinLink};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::served::{PATIENCE, ask, body, connect, roots};

const DAY_MS: EpochMs = 24 * 60 * 60 * 1_000;

/// The machine's clock, with the wall time moved on at will.
#[derive(Debug, Default)]
struct Shifted {
    system: SystemClock,
    by: AtomicI64,
}

impl Shifted {
    fn pass_days(&self, days: EpochMs) {
        self.by.fetch_add(days * DAY_MS, Ordering::Relaxed);
    }
}

impl Clock for Shifted {
    fn now(&self) -> EpochMs {
        self.system.now() + self.by.load(Ordering::Relaxed)
    }

    fn monotonic(&self) -> Duration {
        self.system.monotonic()
    }
}

/// A gateway and a machine that has joined it, on one clock.
struct Pair {
    gateway: Gateway,
    clock: Arc<Shifted>,
    scratch: tempfile::TempDir,
}

impl Pair {
    async fn start() -> Self {
        let scratch = tempfile::tempdir().expect("scratch");
        let clock = Arc::new(Shifted::default());
        let options = GatewayOptions {
            state_dir: scratch.path().join("gateway"),
            listen: "127.0.0.1:0".parse().expect("address"),
            local_roots: None,
            config: watch::channel(Arc::new(Config::default())).1,
            clock: clock.clone(),
        };
        let gateway = Gateway::start(options).await.expect("gateway");
        let pair = Self {
            gateway,
            clock,
            scratch,
        };
        let invite = Request::NodesInvite(NodesInvite {
            name: Some("laptop".to_owned()),
            address: None,
        });
        let mut door = connect(pair.gateway.state_dir()).await;
        let link = body!(ask(&mut door, invite).await, NodesInvite).link;
        let link = JoinLink::parse(&link).expect("a link");
        let clock: Arc<dyn Clock> = pair.clock.clone();
        connection::join(&link, "machine", &pair.node_dir(), &clock)
            .await
            .expect("joined");
        pair
    }

    fn node_dir(&self) -> std::path::PathBuf {
        self.scratch.path().join("node")
    }

    /// Starts an agent on the identity in `dir`.
    fn agent(&self, dir: &Path) -> Agent {
        self.agent_and_task(dir).0
    }

    /// The same, with the task that ends after the agent was stopped.
    fn agent_and_task(&self, dir: &Path) -> (Agent, JoinHandle<()>) {
        let options = AgentOptions {
            identity: NodeIdentity::load(dir).expect("a paired node"),
            identity_dir: Some(dir.to_owned()),
            roots: roots(self.scratch.path()),
            clock: self.clock.clone(),
        };
        Agent::start(options).expect("agent")
    }

    fn kept_until(&self) -> EpochMs {
        let identity = NodeIdentity::load(&self.node_dir()).expect("a paired node");
        identity.certificate_not_after().expect("a certificate")
    }

    /// Waits until the node keeps a certificate that is good for more than `days`.
    async fn wait_for_days(&self, days: EpochMs) {
        let mut door = connect(self.gateway.state_dir()).await;
        let began = Instant::now();
        let node = || {
            Request::NodesShow(NodeRef {
                node: "laptop".to_owned(),
            })
        };
        while self.kept_until() < self.clock.now() + days * DAY_MS {
            assert!(began.elapsed() < PATIENCE, "no renewal");
            // Each look costs a round trip: nothing spins.
            ask(&mut door, node()).await;
        }
        let known = body!(ask(&mut door, node()).await, Node).certificate_not_after;
        assert_eq!(
            known,
            self.kept_until(),
            "both sides know the same certificate"
        );
    }
}

async fn wait_for(agent: &Agent, is_meant: impl Fn(&ConnectionState) -> bool) {
    let mut state = agent.connection();
    let waiting = state.wait_for(|(state, _)| is_meant(state));
    timeout(PATIENCE, waiting)
        .await
        .expect("in time")
        .expect("runs");
}

fn is_connected(state: &ConnectionState) -> bool {
    *state == ConnectionState::Connected
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_renewed_over_the_connection_when_a_third_of_its_life_is_left() {
    let pair = Pair::start().await;
    pair.clock.pass_days(19);
    let before = pair.kept_until();
    let (agent, ended) = pair.agent_and_task(&pair.node_dir());
    wait_for(&agent, is_connected).await;
    assert_eq!(pair.kept_until(), before, "it is not due yet");
    agent.stop();
    // While the first one answers, a second one with its key is refused.
    ended.await.expect("the first agent ends");
    pair.clock.pass_days(2);
    let agent = pair.agent(&pair.node_dir());
    wait_for(&agent, is_connected).await;
    pair.wait_for_days(29).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_slept_past_its_expiry_comes_back_with_a_new_certificate() {
    let pair = Pair::start().await;
    pair.clock.pass_days(45);
    let agent = pair.agent(&pair.node_dir());
    wait_for(&agent, is_connected).await;
    pair.wait_for_days(29).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_node_is_refused_while_the_first_one_answers() {
    let pair = Pair::start().await;
    let copy = pair.scratch.path().join("copy");
    std::fs::create_dir(&copy).expect("folder");
    for file in ["node.key", "node.json"] {
        std::fs::copy(pair.node_dir().join(file), copy.join(file)).expect("copied");
    }
    let first = pair.agent(&pair.node_dir());
    wait_for(&first, is_connected).await;
    let second = pair.agent(&copy);
    let refused = |state: &ConnectionState| {
        matches!(state, ConnectionState::Refused(reason)
            if reason.contains("another machine with this node's key is connected"))
    };
    wait_for(&second, refused).await;
    assert!(is_connected(&first.connection().borrow().0));
}
