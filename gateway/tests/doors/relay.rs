//! The third door: what programs on a node's machine may ask over its connection, and what
//! not, whatever the node says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidings_gateway::Gateway;
use tidings_node::cli::{Connection, Door};
use tidings_node::clock::SystemClock;
use tidings_node::connection::{Agent, AgentOptions, ConnectionState};
use tidings_node::local::NodeResponder;
use tidings_node::local::socket::{self, NODE_SOCKET};
use tidings_protocol::Catalog;
use tidings_protocol::session_api::{
    Adopt, AgentRef, ApiError, Backup, CleanupAgents, CleanupDoing, CronRunsList, ErrorType,
    LeaseRef, NodeRef, NodesInvite, NodesRename, Request, SessionsCleanup, SessionsList,
    SignalsQuery, SignalsRecord, SpeakerRef, StatusQuery, WatchFilter, WatchPair,
};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::nodes::join;
use crate::raw::{Papers, RawNode, caller};
use crate::served::{self, PATIENCE, ask, body, gateway, key, refused, session, speak, speaker};

const TARGET: &str = "agent:ops:main";

/// A machine with an agent whose socket answers, and one Claude thread.
pub(crate) struct Machine {
    pub(crate) agent: Agent,
    dir: PathBuf,
    _stop: watch::Sender<bool>,
}

impl Machine {
    pub(crate) async fn start(gateway: &Gateway, scratch: &Path, name: &str, thread: &str) -> Self {
        let dir = scratch.join(name);
        let identity = join(gateway, &dir, name).await;
        let project = scratch.join(format!("{name}-root/project"));
        std::fs::create_dir_all(&project).expect("a folder");
        std::fs::write(project.join(format!("{thread}.jsonl")), "").expect("a transcript");
        let options = AgentOptions {
            identity,
            identity_dir: None,
            roots: served::roots(&scratch.join(format!("{name}-root"))),
            seen_file: None,
            clock: Arc::new(SystemClock::new()),
        };
        let (agent, _) = Agent::start(options).expect("agent");
        let door = socket::bind(dir.join(NODE_SOCKET)).expect("socket");
        let (stop, stopped) = watch::channel(false);
        let responder = Arc::new(NodeResponder::new(agent.clone()));
        tokio::spawn(socket::serve(door, responder, stopped));
        let machine = Self {
            agent,
            dir,
            _stop: stop,
        };
        machine
            .wait_for(|state| *state == ConnectionState::Connected)
            .await;
        machine
    }

    async fn wait_for(&self, is_meant: impl Fn(&ConnectionState) -> bool) {
        let mut state = self.agent.connection();
        let waiting = state.wait_for(|(state, _)| is_meant(state));
        timeout(PATIENCE, waiting)
            .await
            .expect("in time")
            .expect("runs");
    }

    /// A connection to the agent's socket, of a program that runs `thread`.
    pub(crate) async fn door(&self, thread: Option<&str>) -> Connection {
        let door = Door {
            socket: self.dir.join(NODE_SOCKET),
            service: "node agent",
            start: String::new(),
            deadline: PATIENCE,
        };
        let mut connection = door.connect().await.expect("connected");
        if let Some(thread) = thread {
            connection
                .introduce(&caller(thread))
                .await
                .expect("introduced");
        }
        connection
    }
}

fn watch_by_caller(target: &str) -> Request {
    Request::WatchAdd(WatchPair {
        watcher: None,
        target: key(target),
        target_agent: None,
    })
}

fn turn_of_caller() -> Request {
    Request::TurnBegin(SpeakerRef::default())
}

async fn target_exists(operator: &mut Connection) {
    ask(operator, Request::TurnBegin(speaker(TARGET))).await;
    ask(operator, Request::TurnEnd(speaker(TARGET))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_on_a_node_watches_is_woken_and_takes_its_turn_over_the_nodes_connection() {
    let scratch = tempfile::tempdir().expect("scratch");
    let gateway = gateway(&scratch.path().join("state")).await;
    let machine = Machine::start(&gateway, scratch.path(), "laptop", "mine").await;
    let mut operator = served::connect(gateway.state_dir()).await;
    target_exists(&mut operator).await;
    let mut door = machine.door(Some("mine")).await;

    // By watching, its thread becomes a session.
    let watched = body!(ask(&mut door, watch_by_caller(TARGET)).await, WatchAdd);
    assert!(watched.watched, "{watched:?}");
    let own = key("agent:main:adopted:claude:laptop:mine");
    let list = ask(&mut door, Request::WatchList(WatchFilter::default())).await;
    let list = body!(list, WatchList).watches;
    assert_eq!(
        list.iter().map(|watch| &watch.watcher).collect::<Vec<_>>(),
        [&own]
    );

    // It hears its own wakes and nobody else's.
    served::watch(&mut operator, "agent:main:other", TARGET).await;
    let mut wakes = machine.door(Some("mine")).await;
    wakes.send(&Request::WakesFollow {}).await.expect("sent");
    let mut next = async || {
        let reply = timeout(PATIENCE, wakes.next()).await.expect("in time");
        body!(reply.expect("no error").expect("goes on"), Wakes).wakes
    };
    assert_eq!(next().await, []);
    speak(&mut operator, TARGET).await;
    let woken = next().await;
    assert_eq!(woken.len(), 1);
    assert_eq!((&woken[0].watcher, &woken[0].target), (&own, &key(TARGET)));

    // Its turn takes the notice; reading what changed confirms it.
    let begun = body!(ask(&mut door, turn_of_caller()).await, TurnBegin);
    assert_eq!(begun.notices.len(), 1);
    let query = StatusQuery {
        session_key: key(TARGET),
        agent: None,
        changes_since: Some(i64::try_from(begun.notices[0].changes_since).expect("small")),
        reader: None,
    };
    let status = ask(&mut door, Request::SessionStatus(query)).await;
    let changes = body!(status, SessionStatus).state_changes.expect("changes");
    assert_eq!(changes.events.len(), 1);
    let lease = LeaseRef {
        token: begun.token.expect("a token"),
    };
    let settled = ask(&mut door, Request::TurnConfirm(lease)).await;
    assert_eq!(body!(settled, TurnSettled).notices, 0, "read already");
    let ended = ask(&mut door, Request::TurnEnd(SpeakerRef::default())).await;
    assert!(body!(ended, TurnEnd).ended);

    machine.agent.stop();
    drop((door, wakes, operator));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nodes_socket_answers_for_itself_and_relays_reads_without_a_caller() {
    let scratch = tempfile::tempdir().expect("scratch");
    let gateway = gateway(&scratch.path().join("state")).await;
    let machine = Machine::start(&gateway, scratch.path(), "laptop", "mine").await;
    let mut door = machine.door(None).await;
    let status = body!(ask(&mut door, Request::NodeStatus {}).await, NodeStatus);
    assert_eq!(status.connection, "connected");
    let list = Request::SessionsList(SessionsList::default());
    assert_eq!(body!(ask(&mut door, list).await, SessionsList).count, 0);
    let adopted = Request::Adopt(Adopt {
        catalog: Catalog::Claude,
        host: "laptop".to_owned(),
        thread_id: caller("mine").thread_id,
        agent: None,
        watch_by: None,
    });
    let adopted = body!(ask(&mut door, adopted).await, Adopt);
    assert_eq!(
        adopted.session_key,
        key("agent:main:adopted:claude:laptop:mine")
    );
    // What speaks needs to be somebody.
    let error = refused(&mut door, turn_of_caller()).await;
    assert_eq!(error.error_type, ErrorType::NotPermitted, "{error}");
    machine.agent.stop();
    drop(door);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_gateway_out_of_reach_a_request_says_since_when_and_what_to_do() {
    let scratch = tempfile::tempdir().expect("scratch");
    let gateway = gateway(&scratch.path().join("state")).await;
    let machine = Machine::start(&gateway, scratch.path(), "laptop", "mine").await;
    gateway.stop().await;
    machine
        .wait_for(|state| matches!(state, ConnectionState::Connecting(Some(_))))
        .await;
    let mut door = machine.door(Some("mine")).await;
    let error = refused(&mut door, turn_of_caller()).await;
    assert_eq!(error.error_type, ErrorType::Unavailable);
    assert_eq!(error.error_type.exit_code(), 69);
    assert!(
        error.message.contains("is out of reach since 20"),
        "{error}"
    );
    let hint = error.hint.expect("what to do");
    assert!(hint.contains("tidings-node status"), "{hint}");
    // The socket itself goes on.
    let status = body!(ask(&mut door, Request::NodeStatus {}).await, NodeStatus);
    assert_eq!(status.connection, "connecting");
    machine.agent.stop();
}

/// Every request that only the operator may make.
fn operator_requests() -> Vec<Request> {
    let node = || NodeRef {
        node: "laptop".to_owned(),
    };
    vec![
        Request::Status {},
        Request::NodesInvite(NodesInvite::default()),
        Request::NodesList {},
        Request::NodesShow(node()),
        Request::NodesRename(NodesRename {
            node: "laptop".to_owned(),
            name: "mine".to_owned(),
        }),
        Request::NodesRevoke(node()),
        Request::NodesRemove(node()),
        Request::NoticesList(session(TARGET)),
        Request::NoticesDrain(session(TARGET)),
        Request::SignalsList(SignalsQuery::default()),
        Request::SignalsFollow(SignalsQuery::default()),
        Request::SignalsWhy { sequence: 1 },
        Request::SignalsRecord(SignalsRecord {
            session: key(TARGET),
            kind: tidings_protocol::SignalKind::HumanDirectMessage,
            actor: "human".to_owned(),
            parent: None,
            channel: None,
            outcome: None,
            run_id: None,
            summary: None,
            dedupe_key: None,
        }),
        Request::Backup(Backup {
            file: "/tmp/stolen".to_owned(),
        }),
        Request::SessionDelete(session(TARGET)),
        Request::SessionArchive(session(TARGET)),
        Request::AgentsList {},
        Request::AgentsDelete(AgentRef {
            agent: "ops".to_owned(),
        }),
        Request::SessionsCleanup(SessionsCleanup {
            agents: CleanupAgents::All {},
            doing: CleanupDoing::Enforce,
        }),
        Request::CronRunsList(CronRunsList::default()),
        Request::Check {},
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operators_request_is_refused_by_the_node_and_by_the_gateway() {
    let scratch = tempfile::tempdir().expect("scratch");
    let gateway = gateway(&scratch.path().join("state")).await;
    let machine = Machine::start(&gateway, scratch.path(), "desk", "mine").await;
    let papers = Papers::joined(&gateway, scratch.path(), "hostile").await;
    let hostile = RawNode::welcomed(&papers, &gateway).await;
    let mut at_gateway = served::connect(gateway.state_dir()).await;
    at_gateway
        .introduce(&caller("mine"))
        .await
        .expect("introduced");
    let listed = ask(
        &mut served::connect(gateway.state_dir()).await,
        Request::NodesList {},
    )
    .await;

    for request in operator_requests() {
        let mut door = machine.door(Some("mine")).await;
        door.send(&request).await.expect("sent");
        let at_node = door.next().await.expect_err("refused by the node");
        let relayed = hostile.relay(None, &request).await;
        let relayed_for = hostile.relay(Some(caller("mine")), &request).await;
        for refused in [Err(at_node), relayed, relayed_for] {
            let error = refused.expect_err("refused");
            assert_eq!(error.error_type, ErrorType::NotPermitted, "{request:?}");
        }
        if !request.is_stream() {
            // Who says who it is speaks as that, also on the gateway's own socket.
            let error = refused(&mut at_gateway, request).await;
            assert_eq!(error.error_type, ErrorType::NotPermitted);
        }
    }
    let mut operator = served::connect(gateway.state_dir()).await;
    assert_eq!(ask(&mut operator, Request::NodesList {}).await, listed);
    machine.agent.stop();
    drop((operator, at_gateway));
    gateway.stop().await;
}

/// A hostile node, and a session of another host that it is after.
struct Break {
    gateway: Gateway,
    hostile: RawNode,
    victim: RawNode,
    victims_key: tidings_protocol::SessionKey,
    papers: (Papers, Papers),
    scratch: tempfile::TempDir,
}

impl Break {
    async fn start() -> Self {
        let scratch = tempfile::tempdir().expect("scratch");
        let gateway = gateway(&scratch.path().join("state")).await;
        let victims = Papers::joined(&gateway, scratch.path(), "victim").await;
        let victim = RawNode::welcomed(&victims, &gateway).await;
        let hostiles = Papers::joined(&gateway, scratch.path(), "hostile").await;
        let hostile = RawNode::welcomed(&hostiles, &gateway).await;
        let mut operator = served::connect(gateway.state_dir()).await;
        target_exists(&mut operator).await;
        let watched = victim
            .relay(Some(caller("theirs")), &watch_by_caller(TARGET))
            .await;
        assert!(body!(watched.expect("an answer"), WatchAdd).watched);
        speak(&mut operator, TARGET).await;
        Self {
            gateway,
            hostile,
            victim,
            victims_key: key("agent:main:adopted:claude:victim:theirs"),
            papers: (victims, hostiles),
            scratch,
        }
    }

    /// The victim's turn still takes its notice: nobody has taken it before.
    async fn nothing_was_taken(&self) {
        let begun = self
            .victim
            .relay(Some(caller("theirs")), &turn_of_caller())
            .await
            .expect("a turn");
        assert_eq!(body!(begun, TurnBegin).notices.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_speaks_for_no_session_of_another_host() {
    let broken = Break::start().await;
    let thread = || Some(caller("theirs"));
    // The same thread id on another host is another conversation.
    for request in [
        turn_of_caller(),
        Request::TurnEnd(SpeakerRef::default()),
        Request::WatchList(WatchFilter::default()),
        Request::WatchRemove(WatchPair {
            watcher: None,
            target: key(TARGET),
            target_agent: None,
        }),
        Request::WakesFollow {},
    ] {
        let error = broken.hostile.relay(thread(), &request).await;
        let error = error.expect_err("not its own");
        assert_eq!(error.error_type, ErrorType::NotFound, "{request:?}");
    }
    broken.nothing_was_taken().await;
    // What it watches, it watches as its own session.
    let watched = broken
        .hostile
        .relay(thread(), &watch_by_caller(TARGET))
        .await;
    assert!(body!(watched.expect("an answer"), WatchAdd).watched);
    let list = Request::WatchList(WatchFilter::default());
    let own = broken.hostile.relay(thread(), &list).await;
    let own = body!(own.expect("an answer"), WatchList).watches;
    let watchers: Vec<_> = own.iter().map(|watch| watch.watcher.as_str()).collect();
    assert_eq!(watchers, ["agent:main:adopted:claude:hostile:theirs"]);
    assert_ne!(broken.papers.0.host(), broken.papers.1.host());
    broken.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_key_as_caller_is_refused_even_ones_own() {
    let broken = Break::start().await;
    let named = Some(broken.victims_key.clone());
    let speaker = SpeakerRef {
        session_key: named.clone(),
        agent: None,
    };
    let pair = WatchPair {
        watcher: named.clone(),
        target: key(TARGET),
        target_agent: None,
    };
    for request in [
        Request::TurnBegin(speaker.clone()),
        Request::TurnEnd(speaker),
        Request::WatchAdd(pair.clone()),
        Request::WatchRemove(pair),
        Request::WatchList(WatchFilter {
            watcher: named.clone(),
            target: None,
        }),
        Request::SessionStatus(StatusQuery {
            session_key: key(TARGET),
            agent: None,
            changes_since: Some(0),
            reader: named.clone(),
        }),
        Request::Adopt(Adopt {
            catalog: Catalog::Claude,
            host: "hostile".to_owned(),
            thread_id: caller("t").thread_id,
            agent: None,
            watch_by: named.clone(),
        }),
    ] {
        for (node, who) in [
            (&broken.hostile, None),
            (&broken.hostile, Some(caller("theirs"))),
            (&broken.victim, Some(caller("theirs"))),
        ] {
            let error = node.relay(who, &request).await.expect_err("refused");
            assert_eq!(error.error_type, ErrorType::NotPermitted, "{request:?}");
        }
    }
    broken.nothing_was_taken().await;
    broken.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_is_no_session_says_so_and_no_lease_is_guessed() {
    let broken = Break::start().await;
    let stranger = Some(caller("unknown"));
    let error = broken.hostile.relay(stranger, &turn_of_caller()).await;
    let error: ApiError = error.expect_err("no session");
    assert_eq!(error.error_type, ErrorType::NotFound);
    assert_eq!(
        error.message,
        "the claude thread unknown is no session of this gateway"
    );
    let lease = LeaseRef {
        token: "07".repeat(16),
    };
    let settled = broken
        .hostile
        .relay(None, &Request::TurnRelease(lease))
        .await;
    let settled = body!(settled.expect("an answer"), TurnSettled);
    assert_eq!((settled.notices, settled.messages), (0, 0));
    broken.nothing_was_taken().await;
    broken.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_a_later_version_is_unsupported_and_a_malformed_one_ends_the_connection() {
    let broken = Break::start().await;
    let relay = tidings_protocol::wire::frame::encode(&tidings_protocol::wire::Message::Relay(
        tidings_protocol::wire::messages::Relay::default(),
    ))
    .expect("a frame");
    let later = [&relay[..], b"\0\0\0\x06\x81\xa3abc\xc0"].concat();
    let mut receive = broken.hostile.write_raw(&later).await.expect("written");
    let reply = tidings_node::framed::read(&mut receive, 1024).await;
    let reply = reply.expect("a frame").expect("a reply");
    let tidings_protocol::session_api::Reply::Error(error) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(error.error_type, ErrorType::Unsupported, "{error}");

    // Cut short, it is a request that somebody gave up.
    let cut = [&relay[..], b"\0\0\0\x06\x81\xa3"].concat();
    broken.hostile.write_raw(&cut).await.expect("written");
    broken.nothing_was_taken().await;
    let list = Request::SessionsList(SessionsList::default());
    broken.hostile.relay(None, &list).await.expect("it goes on");

    let malformed = [&relay[..], b"\0\0\0\x01\xc1"].concat();
    broken.hostile.write_raw(&malformed).await.expect("written");
    let why = broken.hostile.sent_away().await;
    assert!(why.contains("cannot be decoded as a request"), "{why}");
    broken.gateway.stop().await;
    drop(broken.scratch);
}
