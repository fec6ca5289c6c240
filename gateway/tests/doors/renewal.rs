//! Certificates in the course of time, and two machines with one key.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tidings_gateway::Gateway;
use tidings_gateway::doors::{GatewayInfo, Service};
use tidings_gateway::nodes::authority::Authority;
use tidings_gateway::nodes::{NodeContext, listener};
use tidings_gateway::state::{State, StateOptions};
use tidings_node::clock::Clock;
use tidings_node::connection::{self, Agent, AgentOptions, ConnectionState, NodeIdentity};
use tidings_protocol::session_api::{NodeRef, NodesInvite, Request};
use tidings_protocol::wire::Message;
use tidings_protocol::{EpochMs, JoinLink};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::clock::{DAY_MS, Shifted};
use crate::quic::Line;
use crate::served::{PATIENCE, ask, body, connect, gateway_by, options, roots};

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
        let gateway = gateway_by(&scratch.path().join("gateway"), clock.clone()).await;
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
        self.agent_by(dir, self.clock.clone())
    }

    /// The same, by another clock than the gateway's.
    fn agent_by(&self, dir: &Path, clock: Arc<dyn Clock>) -> (Agent, JoinHandle<()>) {
        let options = AgentOptions {
            identity: NodeIdentity::load(dir).expect("a paired node"),
            identity_dir: Some(dir.to_owned()),
            seen_file: None,
            roots: roots(self.scratch.path()),
            clock,
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
            Some(self.kept_until()),
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
        matches!(state, ConnectionState::Refused(refused)
            if refused.reason.contains("another machine with this node's key is connected"))
    };
    wait_for(&second, refused).await;
    assert!(is_connected(&first.connection().borrow().0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_clock_is_two_days_behind_says_so_until_it_is_set_right() {
    let pair = Pair::start().await;
    let clock = Arc::new(Shifted::default());
    clock.pass_days(-2);
    let (agent, _) = pair.agent_by(&pair.node_dir(), clock.clone());
    let blames_the_clock = |state: &ConnectionState| {
        matches!(state, ConnectionState::Connecting(Some(reason))
            if reason.contains("by this machine's clock"))
    };
    wait_for(&agent, blames_the_clock).await;
    clock.pass_days(2);
    wait_for(&agent, is_connected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_clock_is_two_days_ahead_is_connected_and_both_sides_warn() {
    let pair = Pair::start().await;
    let clock = Arc::new(Shifted::default());
    clock.pass_days(2);
    let (agent, _) = pair.agent_by(&pair.node_dir(), clock);
    wait_for(&agent, is_connected).await;
    let warnings = agent.status().await.warnings;
    let own = "this machine's clock is 2 d ahead of the gateway's";
    assert!(warnings.iter().any(|text| text == own), "{warnings:?}");
    let mut door = connect(pair.gateway.state_dir()).await;
    let warned = async {
        loop {
            let show = Request::NodesShow(NodeRef {
                node: "laptop".to_owned(),
            });
            let node = body!(ask(&mut door, show).await, Node);
            if node
                .warnings
                .iter()
                .any(|text| text.contains("its clock is"))
            {
                return;
            }
        }
    };
    timeout(PATIENCE, warned).await.expect("in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateways_own_certificate_is_swapped_in_time_and_no_connection_is_dropped() {
    let scratch = tempfile::tempdir().expect("scratch");
    let clock = Arc::new(Shifted::default());
    let options = StateOptions {
        directory: scratch.path().to_owned(),
        clock: clock.clone(),
    };
    let state = State::open(&options).expect("state");
    let authority = Authority::load_or_create(scratch.path(), clock.now()).expect("authority");
    let context = Arc::new(NodeContext::new(state, authority, clock.clone()));
    let endpoint =
        listener::listen(&context, "127.0.0.1:0".parse().expect("address")).expect("listens");
    let gateway = endpoint.local_addr().expect("address");
    let (_stop, stopped) = watch::channel(false);
    let info = GatewayInfo {
        state_dir: scratch.path().to_owned(),
        listen: gateway,
        started_at: clock.now(),
        http: None,
        config: watch::channel(Arc::default()).1,
        wake_commands: Arc::default(),
    };
    let sessions = Arc::new(Service::new(context.clone(), info));
    let accepting = listener::accept(endpoint.clone(), context.clone(), sessions, stopped);
    tokio::spawn(accepting);

    let mut early = Line::dial(gateway).await;
    clock.pass_days(59);
    listener::renew_leaf_if_due(&endpoint, &context);
    assert_eq!(
        Line::dial(gateway).await.leaf(),
        early.leaf(),
        "not due yet"
    );
    clock.pass_days(2);
    listener::renew_leaf_if_due(&endpoint, &context);
    let late = Line::dial(gateway).await;
    assert_ne!(late.leaf(), early.leaf());
    let (_, not_after) = connection::validity_of(&late.leaf()).expect("validity");
    assert!(not_after > clock.now() + 89 * DAY_MS);
    // The connection of before is served as ever.
    early.say(&Message::Ping {}).await;
    assert!(matches!(early.hear().await, Message::Refused(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_authority_is_not_made_anew_while_nodes_trust_it() {
    let Pair {
        gateway,
        clock,
        scratch,
    } = Pair::start().await;
    let state_dir = gateway.state_dir().to_owned();
    gateway.stop().await;
    let (authority, aside) = (state_dir.join("authority"), scratch.path().join("aside"));
    std::fs::rename(&authority, &aside).expect("lost");
    let refused = Gateway::start(options(clock.clone(), &state_dir, None)).await;
    let error = refused.expect_err("refused").to_string();
    assert!(error.contains(&*authority.to_string_lossy()), "{error}");
    assert!(!authority.exists(), "nothing was made in its place");
    std::fs::rename(&aside, &authority).expect("found again");
    let again = Gateway::start(options(clock, &state_dir, None)).await;
    again.expect("starts").stop().await;
}
