//! A session store of many entries, and a transcript that is far too large.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tidings_gateway::config::WriteLock;
use tidings_gateway::sessions::files::Files;
use tidings_gateway::sessions::transcript::cache::Indexes;
use tidings_gateway::sessions::transcript::lock::{LockTimes, Locker};
use tidings_gateway::sessions::transcript::tail::{self, Wanted};
use tidings_node::clock::SystemClock;
use tidings_protocol::session_api::{Reply, Request, SessionsList};
use tidings_tests::{DoorClient, Gateway, Scratch, Setup, resident_kib, until};

use crate::table::{Figures, millis, percentiles};

/// The size of a transcript that somebody really had.
const TRANSCRIPT_BYTES: u64 = 444 * 1024 * 1024;
/// The entries of the store.
const ENTRIES: usize = 10_000;
const PAGE: Wanted = Wanted {
    entries: 50,
    bytes: 4 * 1024 * 1024,
};
const RUNS: usize = 50;

pub(crate) fn transcript(figures: &mut Figures) {
    let scratch = Scratch::new();
    let path = scratch.path().join("large.jsonl");
    write_transcript(&path);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let before = resident_megabytes(std::process::id());
    let tails: Vec<_> = (0..RUNS).map(|_| time(|| read_tail(&path))).collect();
    let after_tails = resident_megabytes(std::process::id());
    figures.add(
        "444 MB transcript: the last 50 entries",
        percentiles(&tails),
        "",
    );
    figures.add(
        "the same: memory for it",
        format!("{:.1} MB", after_tails - before),
        "<= 16 MB",
    );
    let indexes = Indexes::new(Files::default());
    let read = || {
        runtime
            .block_on(indexes.of(&path))
            .expect("read")
            .expect("there")
    };
    let first = time(|| assert!(read().counts().broken == 0));
    let entries = read().counts().entries;
    figures.add(
        "the same: a whole index",
        format!("{:.0} ms, {entries} entries", millis(first)),
        "",
    );
    let memory = resident_megabytes(std::process::id()) - after_tails;
    figures.add(
        "the same: memory of the index",
        format!("{memory:.1} MB"),
        "bounded by entries",
    );
    let locker = Locker::new(
        Files::default(),
        Arc::new(SystemClock::new()),
        LockTimes::resolve(&WriteLock::default(), |_| None),
    );
    let mut appends = Vec::new();
    let mut continued = Vec::new();
    for number in 0..RUNS {
        let line =
            json!({"type": "message", "id": format!("n{number}"), "message": {"role": "user"}});
        appends.push(time(|| {
            runtime.block_on(async {
                let lock = locker.acquire(&path).await.expect("free");
                lock.append(&[line]).await.expect("appended");
            });
        }));
        continued.push(time(|| {
            read();
        }));
    }
    assert_eq!(read().counts().entries, entries + RUNS as u64);
    figures.add(
        "the same: lock, append, make durable",
        percentiles(&appends),
        "",
    );
    figures.add("the same: the index continued", percentiles(&continued), "");
}

fn read_tail(path: &Path) {
    let file = File::open(path).expect("open");
    let size = file.metadata().expect("metadata").len();
    let tail = tail::read(&file, size, PAGE).expect("read");
    assert_eq!((tail.entries.len(), tail.has_more), (PAGE.entries, true));
}

/// Turns of a person and a model that calls tools, some with large results.
fn write_transcript(path: &Path) {
    let mut file = BufWriter::new(File::create(path).expect("a transcript"));
    let header = json!({"type": "session", "id": "large", "timestamp": "2026-12-01T04:00:00Z"});
    let mut written = 0;
    let mut parent = Value::Null;
    let mut write = |line: &Value| {
        let line = format!("{line}\n");
        file.write_all(line.as_bytes()).expect("written");
        line.len() as u64
    };
    written += write(&header);
    for number in 0_u64.. {
        if written >= TRANSCRIPT_BYTES {
            break;
        }
        let id = format!("e{number}");
        let (role, text) = match number % 4 {
            0 => ("user", 120),
            1 | 3 => ("assistant", 700),
            _ => (
                "toolResult",
                if number % 400 == 2 { 300_000 } else { 4_000 },
            ),
        };
        let content = "x".repeat(text);
        let line = json!({
            "type": "message", "id": id, "parentId": parent,
            "message": {"role": role, "content": content},
        });
        written += write(&line);
        parent = id.into();
    }
    file.flush().expect("written");
}

pub(crate) fn entries(figures: &mut Figures) {
    let scratch = Scratch::new();
    let state_dir = scratch.folder("gateway");
    let sessions = state_dir.join("agents/main/sessions");
    fs::create_dir_all(&sessions).expect("a directory");
    // Beyond the usual limit, so that upkeep leaves them alone.
    let config = "[session.maintenance]\nmaxEntries = 20000\n";
    fs::write(state_dir.join("config.toml"), config).expect("configuration");
    let entry = |number: usize| {
        let id = format!("0a1b2c3d-0000-4000-8000-{number:012}");
        let entry = json!({
            "sessionId": id, "updatedAt": 1_800_000_000_000_u64 + number as u64,
            "label": "a label of some length", "displayName": "a name to show",
            "chatType": "direct", "provider": "telegram", "totalTokens": 12_345,
        });
        (format!("agent:main:telegram:direct:{number}"), entry)
    };
    let store: Map<String, Value> = (0..ENTRIES).map(entry).collect();
    let path = sessions.join("sessions.json");
    fs::write(&path, Value::Object(store).to_string()).expect("a store");
    let began = Instant::now();
    let gateway = Gateway::start_as(
        &scratch,
        Setup::without_local_node()
            .quiet()
            .with_state_dir(&state_dir),
    );
    let mut door = DoorClient::connect(gateway.state_dir());
    until("every entry is taken in", || {
        (count(&mut door) == ENTRIES as u64).then_some(())
    });
    figures.add(
        "10 000 entries by hand: start, to all taken in",
        format!("{:.0} ms", millis(began.elapsed())),
        "",
    );
    let lists: Vec<_> = (0..RUNS).map(|_| time(|| list(&mut door))).collect();
    figures.add(
        "10 000 entries: a page of 200 at the socket",
        percentiles(&lists),
        "",
    );
    let began = Instant::now();
    let pin = Request::SessionPin(tidings_protocol::session_api::SessionRef {
        session_key: "agent:main:telegram:direct:7".parse().expect("a key"),
        agent: None,
    });
    door.ask(&pin);
    until("the pin stands in the file", || {
        let text = fs::read_to_string(&path).ok()?;
        text.contains("pinnedAt").then_some(())
    });
    figures.add(
        "10 000 entries: a change, to its line in sessions.json",
        format!("{:.0} ms", millis(began.elapsed())),
        "<= 2 000 ms",
    );
    figures.add(
        "10 000 entries: memory of the gateway",
        format!("{:.1} MB", resident_megabytes(gateway.id())),
        "bounded",
    );
}

fn list(door: &mut DoorClient) {
    let reply = door.ask(&Request::SessionsList(SessionsList::default()));
    let Reply::SessionsList(page) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(page.sessions.len(), 200);
}

fn count(door: &mut DoorClient) -> u64 {
    match door.ask(&Request::SessionsList(SessionsList::default())) {
        Reply::SessionsList(page) => page.count,
        other => panic!("{other:?}"),
    }
}

fn resident_megabytes(process: u32) -> f64 {
    resident_kib(process) / 1024.0
}

fn time(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}
