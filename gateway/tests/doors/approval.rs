//! Pairing by approval: who may ask, what both sides show, and what an attacker gets.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tidings_gateway::Gateway;
use tidings_node::cli::Connection;
use tidings_node::clock::{Clock, SystemClock};
use tidings_node::connection::{
    Agent, AgentOptions, Asking, ConnectionState, JoinError, NodeIdentity, NodeKey, signing_request,
};
use tidings_protocol::pairing::NodeSide;
use tidings_protocol::session_api::{
    ErrorType, Node, NodeState, NodesApprove, PairingEvent, PairingNews, PairingRef, Reply, Request,
};
use tidings_protocol::wire::Message;
use tidings_protocol::wire::messages::{Ask, NonceOf, RefusalCode};
use tokio::time::timeout;

use crate::clock::{DAY_MS, Shifted};
use crate::quic::{Line, impostor};
use crate::served::{PATIENCE, ask, body, connect, gateway_by, refused, roots};

/// How long machines may ask, and how long each waits.
const TEN_MINUTES_MS: i64 = 10 * 60 * 1_000;

/// A gateway, and room for machines that want to be its nodes.
struct House {
    gateway: Gateway,
    clock: Arc<Shifted>,
    scratch: TempDir,
}

impl House {
    async fn build() -> Self {
        let scratch = tempfile::tempdir().expect("scratch");
        let clock = Arc::new(Shifted::default());
        let gateway = gateway_by(&scratch.path().join("gateway"), clock.clone()).await;
        Self {
            gateway,
            clock,
            scratch,
        }
    }

    async fn door(&self) -> Connection {
        connect(self.gateway.state_dir()).await
    }

    fn dir(&self, machine: &str) -> PathBuf {
        self.scratch.path().join(machine)
    }

    async fn ask(&self, machine: &str) -> Result<Asking, JoinError> {
        ask_at(
            &self.gateway.listen().to_string(),
            machine,
            &self.dir(machine),
        )
        .await
    }

    async fn approve(&self, request: &str) -> Node {
        let mut door = self.door().await;
        *body!(ask(&mut door, approving(request, None)).await, Node)
    }

    async fn listed(&self) -> Vec<Node> {
        let mut door = self.door().await;
        body!(ask(&mut door, Request::NodesList {}).await, NodesList).nodes
    }
}

async fn ask_at(address: &str, machine: &str, dir: &Path) -> Result<Asking, JoinError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    Asking::ask(address, machine, dir, &clock).await
}

fn approving(request: &str, name: Option<&str>) -> Request {
    Request::NodesApprove(NodesApprove {
        request: request.to_owned(),
        name: name.map(str::to_owned),
    })
}

/// Somebody who runs `tidings nodes listen`.
struct Listener(Connection);

impl Listener {
    async fn begin(house: &House) -> Self {
        let mut door = house.door().await;
        door.send(&Request::NodesListen {}).await.expect("asked");
        let mut listener = Self(door);
        let listening = listener.next().await;
        assert_eq!(listening.event, PairingEvent::Listening);
        assert_eq!(
            listening.address,
            Some(house.gateway.listen().to_string()),
            "what machines are to dial"
        );
        listener
    }

    async fn next(&mut self) -> PairingNews {
        let next = timeout(PATIENCE, self.0.next()).await.expect("in time");
        match next.expect("an answer") {
            Some(Reply::NodesListen(news)) => news,
            other => panic!("{other:?}"),
        }
    }

    /// The next news must be this, of a machine of this name.
    async fn hears(&mut self, event: PairingEvent, machine: &str) -> PairingNews {
        let news = self.next().await;
        let request = news.request.as_ref().expect("about a machine");
        assert_eq!(
            (news.event, request.machine_name.as_str()),
            (event, machine)
        );
        news
    }
}

fn code(result: Result<NodeIdentity, JoinError>) -> RefusalCode {
    match result {
        Err(JoinError::Refused(refused)) => refused.code,
        other => panic!("{other:?}"),
    }
}

fn code_asked(result: Result<Asking, JoinError>) -> RefusalCode {
    code(result.map(|asking| panic!("{asking:?}")))
}

async fn approved(asking: Asking) -> Result<NodeIdentity, JoinError> {
    timeout(PATIENCE, asking.approved()).await.expect("in time")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_whose_words_are_approved_is_a_node_and_connects() {
    let house = House::build().await;
    let mut listener = Listener::begin(&house).await;

    let asking = house.ask("laptop").await.expect("asked");
    let words = asking.words().to_string();
    let news = listener.hears(PairingEvent::Requested, "laptop").await;
    let request = news.request.expect("a request");
    assert_eq!(request.words.to_string(), words, "the same on both sides");
    assert_eq!(request.id, asking.node_id());

    let listed = house.listed().await;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].status, NodeState::Pending);
    assert_eq!(listed[0].certificate_not_after, None);

    let node = house.approve(&words.to_uppercase()).await;
    assert_eq!((node.host_name.as_str(), &node.id), ("laptop", &request.id));
    let identity = approved(asking).await.expect("approved");
    listener.hears(PairingEvent::Approved, "laptop").await;
    assert_eq!(identity.host_name.as_str(), "laptop");
    identity.save(&house.dir("laptop")).expect("kept");

    let (agent, _) = Agent::start(AgentOptions {
        identity,
        identity_dir: None,
        roots: roots(house.scratch.path()),
        seen_file: None,
        clock: Arc::new(SystemClock::new()),
    })
    .expect("agent");
    let mut state = agent.connection();
    let connected = state.wait_for(|(state, _)| *state == ConnectionState::Connected);
    timeout(PATIENCE, connected)
        .await
        .expect("in time")
        .expect("runs");
    agent.stop();
    let again = house.ask("laptop").await.expect_err("paired already");
    assert!(matches!(again, JoinError::AlreadyPaired { .. }), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_may_ask_unless_somebody_listens() {
    let house = House::build().await;
    assert_eq!(
        code_asked(house.ask("laptop").await),
        RefusalCode::NotListening
    );
    let listener = Listener::begin(&house).await;
    let waiting = house.ask("laptop").await.expect("asked");
    drop(listener);
    // The gateway notices that the listener has gone a moment later than we do.
    let turned_away = async {
        loop {
            match house.ask("desktop").await {
                Ok(asking) => drop(asking),
                refused => match code_asked(refused) {
                    // Whoever asks that often is slowed down, and asks again.
                    RefusalCode::TooMany => {}
                    code => return code,
                },
            }
        }
    };
    let turned_away = timeout(PATIENCE, turned_away).await.expect("in time");
    assert_eq!(turned_away, RefusalCode::NotListening);
    // Who waits already can still be approved.
    house.approve(&waiting.words().to_string()).await;
    approved(waiting).await.expect("approved");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_rejected_is_told_so_and_may_ask_again() {
    let house = House::build().await;
    let mut listener = Listener::begin(&house).await;
    let asking = house.ask("laptop").await.expect("asked");
    listener.hears(PairingEvent::Requested, "laptop").await;
    let mut door = house.door().await;
    let reject = Request::NodesReject(PairingRef {
        request: asking.node_id().to_string(),
    });
    let rejected = body!(ask(&mut door, reject.clone()).await, NodesReject);
    assert!(rejected.rejected);
    assert_eq!(code(approved(asking).await), RefusalCode::Rejected);
    listener.hears(PairingEvent::Rejected, "laptop").await;
    assert_eq!(house.listed().await, []);
    let error = refused(&mut door, reject).await;
    assert_eq!(error.error_type, ErrorType::NotFound, "{error}");
    house.ask("laptop").await.expect("asked again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_asks_again_has_one_request_under_new_words() {
    let house = House::build().await;
    let mut listener = Listener::begin(&house).await;
    let first = house.ask("laptop").await.expect("asked");
    listener.hears(PairingEvent::Requested, "laptop").await;
    let second = house.ask("laptop").await.expect("asked again");
    listener.hears(PairingEvent::Withdrawn, "laptop").await;
    listener.hears(PairingEvent::Requested, "laptop").await;
    assert_eq!(first.node_id(), second.node_id());
    assert_ne!(first.words(), second.words());
    assert_eq!(house.listed().await.len(), 1);
    let mut door = house.door().await;
    let old = approving(&first.words().to_string(), None);
    assert_eq!(
        refused(&mut door, old).await.error_type,
        ErrorType::NotFound
    );
    assert_eq!(code(approved(first).await), RefusalCode::Other);
    house.approve(&second.words().to_string()).await;
    approved(second).await.expect("approved");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_machines_of_one_address_wait_at_once() {
    let house = House::build().await;
    let _listener = Listener::begin(&house).await;
    let mut waiting = Vec::new();
    for machine in ["one", "two", "three"] {
        waiting.push(house.ask(machine).await.expect("asked"));
    }
    assert_eq!(code_asked(house.ask("four").await), RefusalCode::TooMany);
    // One that goes makes room.
    waiting.pop();
    let room = async { while house.ask("four").await.is_err() {} };
    timeout(PATIENCE, room).await.expect("in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_requests_of_an_address_within_a_minute_are_enough() {
    let house = House::build().await;
    let _listener = Listener::begin(&house).await;
    for _ in 0..10 {
        // Asks, sees its words, and breaks off: what an attacker would do all day.
        drop(house.ask("eve").await.expect("asked"));
    }
    assert_eq!(code_asked(house.ask("eve").await), RefusalCode::TooMany);
    house.clock.pass(Duration::from_mins(1));
    house.ask("eve").await.expect("asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_ten_minutes_nobody_may_ask_and_who_waited_is_told() {
    let house = House::build().await;
    let mut listener = Listener::begin(&house).await;
    let asking = house.ask("laptop").await.expect("asked");
    listener.hears(PairingEvent::Requested, "laptop").await;
    house.clock.set_on(TEN_MINUTES_MS);
    assert_eq!(code(approved(asking).await), RefusalCode::TimedOut);
    let closed = async {
        // The two deadlines are the same to the second: either may be heard first.
        while listener.next().await.event != PairingEvent::Closed {}
    };
    timeout(PATIENCE, closed).await.expect("in time");
    assert_eq!(
        code_asked(house.ask("laptop").await),
        RefusalCode::NotListening
    );
    assert_eq!(house.listed().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_taken_and_a_key_that_was_revoked_are_not_approved() {
    let house = House::build().await;
    let _listener = Listener::begin(&house).await;
    let first = house.ask("laptop").await.expect("asked");
    house.approve(&first.words().to_string()).await;
    approved(first).await.expect("approved");
    // Of the same name, by itself: the next that is free. Asked for: refused, with a hint.
    let second = house.ask("Laptop!").await.expect("asked");
    let mut door = house.door().await;
    let words = second.words().to_string();
    let error = refused(&mut door, approving(&words, Some("laptop"))).await;
    assert_eq!(error.error_type, ErrorType::Conflict, "{error}");
    assert_eq!(error.hint.as_deref(), Some("laptop-2 is free"));
    let node = house.approve(&words).await;
    assert_eq!(node.host_name.as_str(), "laptop-2");
    let identity = approved(second).await.expect("approved");
    let revoke = Request::NodesRevoke(tidings_protocol::session_api::NodeRef {
        node: identity.node_id.to_string(),
    });
    ask(&mut door, revoke).await;
    // Its identity was never kept: the machine has its key, and asks anew.
    let third = house.ask("Laptop!").await;
    assert_eq!(
        code_asked(third),
        RefusalCode::Revoked,
        "nobody is bothered"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_stands_between_makes_each_side_show_other_words() {
    let house = House::build().await;
    let mut listener = Listener::begin(&house).await;
    let eve = impostor(&house.dir("eve"));
    let eves_address = eve.local_addr().expect("address").to_string();
    let gateway = house.gateway.listen();
    // Eve passes every word on as it is. All she has of her own is her key.
    let relay = tokio::spawn(async move {
        let mut node = Line::accept(&eve).await;
        let mut real = Line::dial(gateway).await;
        real.say(&node.hear().await).await;
        node.say(&real.hear().await).await;
        real.say(&node.hear().await).await;
        for _ in ["shown", "joined"] {
            node.say(&real.hear().await).await;
        }
        // She holds the line until the node has read.
        let _ = node.send.stopped().await;
    });

    let asking = ask_at(&eves_address, "laptop", &house.dir("laptop"))
        .await
        .expect("asked");
    let news = listener.hears(PairingEvent::Requested, "laptop").await;
    let on_gateway = news.request.expect("a request").words;
    assert_ne!(on_gateway, asking.words());

    // What the node shows finds nobody at the gateway.
    let mut door = house.door().await;
    let shown = approving(&asking.words().to_string(), None);
    let error = refused(&mut door, shown).await;
    assert_eq!(error.error_type, ErrorType::NotFound, "{error}");
    // Even an operator who does not compare gives Eve nothing: the certificate is for the
    // node's key, and the node does not take an authority that it was not shown.
    house.approve(&asking.node_id().to_string()).await;
    let given = approved(asking).await.expect_err("not taken");
    assert!(matches!(given, JoinError::Answer(_)), "{given}");
    assert!(NodeIdentity::load(&house.dir("laptop")).is_err());
    relay.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nonce_that_was_not_committed_to_is_refused_and_nobody_sees_the_request() {
    let house = House::build().await;
    let mut listener = Listener::begin(&house).await;
    let key = NodeKey::generate().expect("key");
    let side = NodeSide::new(key.public_key(), [1; 32]);
    let mut line = Line::dial(house.gateway.listen()).await;
    line.say(&Message::Ask(Ask {
        signing_request: signing_request(&key).expect("request"),
        commitment: side.commitment(),
        machine_name: "eve".to_owned(),
        agent_version: "0".to_owned(),
    }))
    .await;
    assert!(matches!(line.hear().await, Message::Nonce(_)));
    line.say(&Message::Reveal(NonceOf { nonce: [2; 32] })).await;
    let Message::Refused(refused) = line.hear().await else {
        panic!("not refused");
    };
    assert!(refused.reason.contains("committed"), "{refused:?}");
    assert_eq!(house.listed().await, []);
    // The next that is heard of is somebody else.
    let _asking = house.ask("laptop").await.expect("asked");
    listener.hears(PairingEvent::Requested, "laptop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_whose_clock_is_two_days_behind_is_told_that_its_clock_is_wrong() {
    let house = House::build().await;
    let _listener = Listener::begin(&house).await;
    let behind = Arc::new(Shifted::default());
    behind.set_on(-2 * DAY_MS);
    let clock: Arc<dyn Clock> = behind;
    let address = house.gateway.listen().to_string();
    let error = Asking::ask(&address, "laptop", &house.dir("laptop"), &clock)
        .await
        .expect_err("no certificate is valid yet");
    assert!(matches!(error, JoinError::Clock(_)), "{error}");
    assert!(error.to_string().contains("clock"), "{error}");
    assert!(
        !house.dir("laptop").exists(),
        "nothing was sent, no key made"
    );
}
