//! The store over real files and a real database.

mod crashes;
mod endings;
mod store;
mod stories;
mod transcripts;
mod upkeep;
mod writers;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value};
use tempfile::TempDir;
use tidings_node::clock::Clock;
use tidings_protocol::{EpochMs, SessionKey};

use super::files::Files;
use super::names;
use super::projection::{Stores, Synced};
use crate::state::{AgentId, SessionAddress, SessionMark, State, StateOptions};

/// Where the tests' clock begins: long after any file of this machine was written.
const START: EpochMs = 4_000_000_000_000;

/// A clock that stands still until it is told to go on.
#[derive(Debug)]
struct StandingClock(Mutex<EpochMs>);

impl Clock for StandingClock {
    fn now(&self) -> EpochMs {
        *self.0.lock().expect("clock")
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// A store in a directory of its own.
struct Fixture {
    dir: TempDir,
    clock: Arc<StandingClock>,
    stores: Stores,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let clock = Arc::new(StandingClock(Mutex::new(START)));
        let stores = open(dir.path(), &clock);
        Self { dir, clock, stores }
    }

    /// The same after the process has ended, and another has begun.
    async fn reopened(self) -> Self {
        let Self { dir, clock, stores } = self;
        stores.state.close().await;
        let stores = open(dir.path(), &clock);
        Self { dir, clock, stores }
    }

    fn state(&self) -> &State {
        &self.stores.state
    }

    fn pass(&self, ms: EpochMs) {
        *self.clock.0.lock().expect("clock") += ms;
    }

    fn sessions_dir(&self) -> PathBuf {
        names::sessions_dir(self.dir.path(), &agent())
    }

    fn path(&self) -> PathBuf {
        self.sessions_dir().join(names::STORE)
    }

    async fn sync(&self) -> Synced {
        self.stores.sync(&agent()).await.expect("in step")
    }

    /// Brings file and entries together in a process that ends after so many operations.
    /// True where it came to its end before.
    async fn sync_ending_after(&self, operations: usize) -> bool {
        let stores = Stores {
            files: Files::ending_after(operations),
            ..self.stores.clone()
        };
        stores.sync(&agent()).await.is_ok()
    }

    async fn make(&self, name: &str) {
        let made = self.state().ensure_session(session(name)).await;
        made.expect("an entry");
    }

    async fn mark(&self, name: &str, mark: SessionMark) {
        // So that each change is another.
        self.pass(1);
        let marked = self.state().mark_session(session(name), mark).await;
        marked.expect("marked");
    }

    /// The entry of a session in the database.
    async fn entry(&self, name: &str) -> Option<Value> {
        let entry = self.state().session_entry(session(name)).await.ok()?;
        Some(serde_json::from_str(&entry.entry).expect("JSON"))
    }

    /// What the file shows.
    fn file(&self) -> Map<String, Value> {
        let content = std::fs::read(self.path()).expect("a file");
        serde_json::from_slice(&content).expect("a JSON object")
    }

    /// Edits the file as a person does.
    fn edit(&self, edit: impl FnOnce(&mut Map<String, Value>)) {
        let mut entries = self.file();
        edit(&mut entries);
        let content = serde_json::to_vec(&entries).expect("JSON");
        std::fs::write(self.path(), content).expect("written");
    }

    /// What was set aside, each with its content.
    fn rejected(&self) -> Vec<Vec<u8>> {
        let files = Files::default().list(&self.sessions_dir()).expect("listed");
        files
            .iter()
            .filter(|file| file.name.starts_with(names::REJECTED))
            .map(|file| std::fs::read(self.sessions_dir().join(&file.name)).expect("read"))
            .collect()
    }

    /// The names of the files in the session directory.
    fn names(&self) -> Vec<String> {
        let files = Files::default().list(&self.sessions_dir()).expect("listed");
        files.into_iter().map(|file| file.name).collect()
    }

    fn put(&self, name: &str, content: &str) {
        std::fs::create_dir_all(self.sessions_dir()).expect("directory");
        std::fs::write(self.sessions_dir().join(name), content).expect("written");
    }

    async fn session_id(&self, name: &str) -> String {
        let entry = self.entry(name).await.expect("an entry");
        entry["sessionId"].as_str().expect("an id").to_owned()
    }

    /// The rows of a query, as one text each.
    fn query(&self, sql: &str) -> Vec<String> {
        let database = rusqlite::Connection::open(self.state().path()).expect("open");
        let mut query = database.prepare(sql).expect(sql);
        let rows = query.query_map([], |row| row.get(0)).expect(sql);
        rows.collect::<Result<_, _>>().expect(sql)
    }

    /// What the record of operators says.
    fn audited(&self) -> Vec<String> {
        self.query(
            "SELECT actor || ' ' || action || ' ' || target || ': ' || outcome FROM audit_log
             WHERE action LIKE 'sessions.cleanup' ORDER BY id",
        )
    }

    /// Checks that the file shows the entries of the database.
    async fn assert_in_step(&self) {
        let projection = self.state().projection(agent()).await.expect("entries");
        let entries: Map<String, Value> = serde_json::from_str(&projection.json).expect("JSON");
        // Of nothing at all there is no file.
        if self.path().exists() || !entries.is_empty() {
            assert_eq!(self.file(), entries);
        }
    }
}

fn open(dir: &Path, clock: &Arc<StandingClock>) -> Stores {
    let clock: Arc<dyn Clock> = clock.clone();
    let options = StateOptions {
        directory: dir.to_owned(),
        clock: clock.clone(),
    };
    Stores {
        state: State::open(&options).expect("state"),
        state_dir: dir.to_owned(),
        files: Files::default(),
        clock,
    }
}

fn agent() -> AgentId {
    AgentId::parse("main").expect("an agent")
}

fn key(name: &str) -> String {
    format!("agent:main:{name}")
}

fn session(name: &str) -> SessionAddress {
    let key = SessionKey::parse(&key(name)).expect("a key");
    SessionAddress::qualified(key).expect("an address")
}
