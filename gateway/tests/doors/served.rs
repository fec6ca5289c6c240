//! What answers: a whole gateway, or its service alone with a hand on its state.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tidings_gateway::config::Config;
use tidings_gateway::doors::{GatewayInfo, Service};
use tidings_gateway::nodes::NodeContext;
use tidings_gateway::nodes::authority::Authority;
use tidings_gateway::state::{State, StateOptions};
use tidings_gateway::{Gateway, GatewayOptions};
use tidings_node::cli::{Connection, Door};
use tidings_node::clock::{Clock, SystemClock};
use tidings_node::discover::{RootArgument, RootSet, Surroundings};
use tidings_node::local::socket::{self, GATEWAY_SOCKET};
use tidings_protocol::session_api::{
    ApiError, Reply, Request, SessionRef, SessionsSend, SignalsRecord, SpeakerRef, WatchPair,
};
use tidings_protocol::{Catalog, SessionKey, SignalKind};
use tokio::sync::watch;

/// Longer than anything here takes, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The service behind a socket, with nothing else of a gateway.
pub(crate) struct Served {
    pub(crate) state: State,
    pub(crate) service: Service,
    pub(crate) dir: TempDir,
    _stop: watch::Sender<bool>,
}

impl Served {
    pub(crate) fn start() -> Self {
        Self::start_with(Config::default())
    }

    pub(crate) fn start_with(config: Config) -> Self {
        let dir = tempfile::tempdir().expect("scratch directory");
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let options = StateOptions {
            directory: dir.path().to_owned(),
            clock: clock.clone(),
        };
        let state = State::open(&options).expect("state");
        let authority = Authority::load_or_create(dir.path(), clock.now()).expect("authority");
        let context = NodeContext::new(state.clone(), authority, clock.clone());
        let info = GatewayInfo {
            state_dir: dir.path().to_owned(),
            listen: "127.0.0.1:7430".parse().expect("address"),
            started_at: clock.now(),
            http: None,
            config: watch::channel(Arc::new(config)).1,
            wake_commands: Arc::default(),
        };
        let service = Service::new(Arc::new(context), info);
        let served = service.clone();
        let door = socket::bind(dir.path().join(GATEWAY_SOCKET)).expect("socket");
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(socket::serve(door, Arc::new(service), stopped));
        Self {
            state,
            service: served,
            dir,
            _stop: stop,
        }
    }

    pub(crate) async fn connect(&self) -> Connection {
        connect(self.dir.path()).await
    }
}

/// Starts a whole gateway without a node of its own.
pub(crate) async fn gateway(state_dir: &Path) -> Gateway {
    start(state_dir, None).await
}

/// Starts a whole gateway whose own node follows nothing.
pub(crate) async fn gateway_with_local_node(state_dir: &Path, root: &Path) -> Gateway {
    let gateway = start(state_dir, Some(roots(root))).await;
    gateway.local_node_connected().await.expect("connected");
    gateway
}

async fn start(state_dir: &Path, local_roots: Option<RootSet>) -> Gateway {
    start_by(Arc::new(SystemClock::new()), state_dir, local_roots).await
}

/// Starts a whole gateway without a node of its own, that goes by this clock.
pub(crate) async fn gateway_by(state_dir: &Path, clock: Arc<dyn Clock>) -> Gateway {
    start_by(clock, state_dir, None).await
}

async fn start_by(
    clock: Arc<dyn Clock>,
    state_dir: &Path,
    local_roots: Option<RootSet>,
) -> Gateway {
    let options = options(clock, state_dir, local_roots);
    Gateway::start(options).await.expect("gateway")
}

/// What a gateway on a free port needs to run.
pub(crate) fn options(
    clock: Arc<dyn Clock>,
    state_dir: &Path,
    local_roots: Option<RootSet>,
) -> GatewayOptions {
    GatewayOptions {
        state_dir: state_dir.to_owned(),
        listen: "127.0.0.1:0".parse().expect("address"),
        http: None,
        local_roots,
        config: watch::channel(Arc::new(Config::default())).1,
        clock,
    }
}

/// One root for every catalog, so that nothing of this machine is read.
pub(crate) fn roots(root: &Path) -> RootSet {
    let given = Catalog::ALL.map(|catalog| RootArgument {
        catalog,
        directory: root.to_owned(),
    });
    RootSet::new(&Surroundings::default(), &given).expect("roots")
}

pub(crate) async fn connect(state_dir: &Path) -> Connection {
    let door = Door {
        socket: PathBuf::from(state_dir).join(GATEWAY_SOCKET),
        service: "gateway",
        start: String::new(),
        deadline: PATIENCE,
    };
    door.connect().await.expect("connected")
}

/// Asks what must be answered without an error.
pub(crate) async fn ask(connection: &mut Connection, request: Request) -> Reply {
    connection.ask(&request).await.expect("an answer")
}

/// Asks what must be refused.
pub(crate) async fn refused(connection: &mut Connection, request: Request) -> ApiError {
    connection.ask(&request).await.expect_err("an error")
}

/// The body of the one reply that answers.
macro_rules! body {
    ($reply:expr, $variant:ident) => {
        match $reply {
            tidings_protocol::session_api::Reply::$variant(body) => body,
            other => panic!("{other:?}"),
        }
    };
}
pub(crate) use body;

pub(crate) fn key(text: &str) -> SessionKey {
    SessionKey::parse(text).expect("key")
}

pub(crate) fn session(text: &str) -> SessionRef {
    SessionRef {
        session_key: key(text),
        agent: None,
    }
}

/// A message from an operator.
pub(crate) fn message(target: &str, text: &str) -> SessionsSend {
    SessionsSend {
        session_key: key(target),
        agent: None,
        message: text.into(),
        sender: None,
        watch: None,
        expected_session_id: None,
    }
}

pub(crate) fn speaker(text: &str) -> SpeakerRef {
    SpeakerRef {
        session_key: Some(key(text)),
        agent: None,
    }
}

/// Has `watcher` watch `target`; both exist from then on.
pub(crate) async fn watch(connection: &mut Connection, watcher: &str, target: &str) {
    for speaker in [watcher, target] {
        ask(connection, Request::TurnBegin(self::speaker(speaker))).await;
        ask(connection, Request::TurnEnd(self::speaker(speaker))).await;
    }
    let pair = WatchPair {
        watcher: Some(key(watcher)),
        target: key(target),
        target_agent: None,
    };
    let answer = body!(ask(connection, Request::WatchAdd(pair)).await, WatchAdd);
    assert!(answer.watched, "{answer:?}");
}

/// A human speaks to a session.
pub(crate) async fn speak(connection: &mut Connection, target: &str) {
    let record = SignalsRecord {
        session: key(target),
        kind: SignalKind::HumanDirectMessage,
        actor: "human".to_owned(),
        parent: None,
        channel: None,
        outcome: None,
        run_id: None,
        summary: None,
        dedupe_key: None,
    };
    let recorded = ask(connection, Request::SignalsRecord(record)).await;
    assert!(body!(recorded, SignalsRecord).recorded);
}
