//! Stories over a real database file.

mod audit;
mod children;
mod crashes;
mod cron;
mod deliveries;
mod endings;
mod engine;
mod erasing;
mod exchange;
mod goals;
mod hooks;
mod inputs;
mod links;
mod log;
mod messages;
mod notices;
mod opening;
mod pairing;
mod rate;
mod replaced;
mod retention;
mod runner;
mod sessions;
mod tokens;
mod turns;
mod watches;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tidings_node::clock::Clock;
use tidings_protocol::marker::Marker;
use tidings_protocol::report::{Activity, Evidence, LinkId, Outcome, Report, ReportVerdict};
use tidings_protocol::session_api::{Adopted, Notice, Recorded};
use tidings_protocol::wire::messages::{Thread, ThreadOpened};
use tidings_protocol::{Actor, Catalog, EpochMs, Host, NodeId, SessionKey, SignalKind, ThreadId};
use tokio::sync::broadcast;

use super::{
    AgentId, Effect, NewAdoption, NewCertificate, NewMessage, NewSignal, SessionAddress,
    SignalsPage, State, StateOptions, StatusRead, Wake, Watching,
};

/// Where the tests' clock begins.
const START: EpochMs = 1_800_000_000_000;

/// A clock that stands still until it is told to go on.
#[derive(Debug)]
struct TestClock(Mutex<(EpochMs, Duration)>);

impl Clock for TestClock {
    fn now(&self) -> EpochMs {
        self.0.lock().expect("clock").0
    }

    fn monotonic(&self) -> Duration {
        self.0.lock().expect("clock").1
    }
}

impl TestClock {
    /// Sets the wall clock, as somebody does who finds it wrong.
    fn set_wall(&self, ms: EpochMs) {
        self.0.lock().expect("clock").0 = ms;
    }

    fn turn_back(&self, ms: EpochMs) {
        self.0.lock().expect("clock").0 -= ms;
    }

    fn pass(&self, ms: EpochMs) {
        let mut clocks = self.0.lock().expect("clock");
        clocks.0 += ms;
        clocks.1 += Duration::from_millis(ms.try_into().expect("forwards"));
    }
}

/// A database in a directory of its own.
struct Fixture {
    dir: TempDir,
    clock: Arc<TestClock>,
    state: State,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let clock = Arc::new(TestClock(Mutex::new((START, Duration::ZERO))));
        let state = open(dir.path(), &clock);
        Self { dir, clock, state }
    }

    /// Closes the database and opens it again.
    async fn reopened(self) -> Self {
        let Self { dir, clock, state } = self;
        state.close().await;
        let state = open(dir.path(), &clock);
        Self { dir, clock, state }
    }

    /// A connection of somebody who looks in from outside.
    fn outside(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.state.path()).expect("open")
    }

    fn number(&self, sql: &str) -> i64 {
        self.outside()
            .query_row(sql, [], |row| row.get(0))
            .expect(sql)
    }

    async fn local_node(&self) -> NodeId {
        let node = NodeId::of_public_key(b"local");
        self.state
            .ensure_local_node(node.clone(), "1.0".to_owned(), certificate(1))
            .await
            .expect("local node");
        node
    }

    async fn record(&self, session: &str, kind: SignalKind, actor: Actor) -> Recorded {
        let signal = NewSignal::new(address(session), kind, actor);
        self.state.record(signal).await.expect("recorded")
    }

    /// Records somebody else's change of a session's goal; answers its sequence.
    async fn change(&self, session: &str) -> u64 {
        let recorded = self
            .record(session, SignalKind::GoalChanged, Actor::Human)
            .await;
        recorded.sequence.expect("a sequence")
    }

    async fn watch(&self, watcher: &str, target: &str) {
        let added = self.state.watch_add(key(watcher), address(target)).await;
        assert!(added.expect("an answer").watched);
    }

    /// Sends a session, which exists from then on, a message; answers its id.
    async fn queue(&self, target: &str, sender: Option<&str>, body: &str) -> u64 {
        let ensured = self.state.ensure_session(address(target)).await;
        ensured.expect("a session");
        let message = NewMessage {
            sender: sender.map(address),
            ..message(target, body)
        };
        self.state.send(message).await.expect("queued").message
    }

    /// A session's entry, as JSON has it.
    async fn entry(&self, session: &str) -> serde_json::Value {
        let entry = self.state.session_entry(address(session)).await;
        serde_json::from_str(&entry.expect("an entry").entry).expect("json")
    }

    /// The signals of a session, as kind and summary.
    async fn log(&self, session: &str) -> Vec<(SignalKind, String)> {
        let page = SignalsPage {
            session: Some(key(session)),
            limit: 1_000,
            ..SignalsPage::default()
        };
        let signals = self.state.signals(page).await.expect("signals");
        signals.into_iter().map(|s| (s.kind, s.summary)).collect()
    }

    async fn drain(&self, watcher: &str) -> Vec<Notice> {
        let drained = self.state.drain(key(watcher)).await;
        drained.expect("drained").notices
    }

    async fn pending(&self, watcher: &str) -> Vec<Notice> {
        let pending = self.state.notices(key(watcher)).await;
        pending.expect("notices").notices
    }

    async fn adopt(&self, thread: &str) -> Adopted {
        let adoption = NewAdoption {
            agent: agent("main"),
            host: Host::GatewayLocal,
            opened: opened(thread),
            watch_by: None,
        };
        self.state.adopt(adoption).await.expect("adopted")
    }

    async fn report(&self, report: Report) -> ReportVerdict {
        let answer = self.state.apply_report(Host::GatewayLocal, report).await;
        answer.expect("answered").verdict
    }
}

fn open(directory: &Path, clock: &Arc<TestClock>) -> State {
    State::open(&options(directory, clock)).expect("open")
}

fn options(directory: &Path, clock: &Arc<TestClock>) -> StateOptions {
    StateOptions {
        directory: directory.to_owned(),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
    }
}

fn key(text: &str) -> SessionKey {
    SessionKey::parse(text).expect("a key")
}

fn agent(text: &str) -> AgentId {
    AgentId::parse(text).expect("an agent")
}

/// The session of a key; bare ones belong to `main`.
fn address(text: &str) -> SessionAddress {
    SessionAddress::resolve(key(text), &agent("main")).expect("an address")
}

/// A message from an operator.
fn message(target: &str, body: &str) -> NewMessage {
    NewMessage {
        target: address(target),
        sender: None,
        body: body.to_owned(),
        watch: Watching::Unchanged,
        expected_session_id: None,
    }
}

fn certificate(serial: u8) -> NewCertificate {
    NewCertificate {
        serial: format!("{serial:02x}"),
        der: vec![serial; 3],
        not_before: START,
        not_after: START + 1_000 * EpochMs::from(serial),
    }
}

fn opened(thread: &str) -> ThreadOpened {
    let mut marker = Marker::at_start(START);
    marker.offset = 100;
    ThreadOpened {
        thread: Thread {
            catalog: Catalog::Claude,
            thread_id: ThreadId::parse(thread).expect("a thread"),
            path: format!("/home/u/.claude/projects/p/{thread}.jsonl"),
            cwd: None,
            title: None,
            updated_at: START - 5_000,
            size_bytes: 100,
        },
        marker,
    }
}

/// A report on a link, read from this revision.
fn report(link: LinkId, revision: u64, outcome: Outcome) -> Report {
    let mut marker = Marker::at_start(START);
    marker.offset = 100 + revision * 10;
    Report {
        link,
        revision,
        marker,
        path: "/home/u/.claude/projects/p/t.jsonl".to_owned(),
        size: 500,
        unclassified: 1,
        outcome,
    }
}

/// Human turns at these times.
fn spoken(times: &[EpochMs]) -> Outcome {
    let turn = |&at| Evidence {
        byte_start: 100,
        byte_end: 110,
        record_id: Some("r1".to_owned()),
        rule: "typed-prompt".to_owned(),
        at,
    };
    Outcome::Activity(Activity {
        turns: times.iter().map(turn).collect(),
        echoed: Vec::new(),
    })
}

/// Asks what changed in a session.
fn since(session: &str, version: i64, reader: Option<&str>) -> StatusRead {
    StatusRead {
        session: address(session),
        changes_since: Some(version),
        reader: reader.map(key),
    }
}

/// The wakes that have gone out, as watcher and target.
fn woken(effects: &mut broadcast::Receiver<Effect>) -> Vec<(String, String)> {
    let mut wakes = Vec::new();
    while let Ok(effect) = effects.try_recv() {
        if let Effect::Wake(Wake { watcher, target }) = effect {
            wakes.push((watcher.to_string(), target.to_string()));
        }
    }
    wakes
}

/// The versions that notices ask changes since.
fn sequences(notices: &[Notice]) -> Vec<u64> {
    notices.iter().map(|notice| notice.changes_since).collect()
}
