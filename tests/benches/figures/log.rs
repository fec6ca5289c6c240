//! Writing the log and reading deltas of it, at the socket.

use std::thread;
use std::time::{Duration, Instant};

use tidings_protocol::session_api::{Request, SignalsRecord, StatusQuery, WatchPair};
use tidings_protocol::{SessionKey, SignalKind};
use tidings_tests::{DoorClient, Gateway};

use crate::noise::Noise;
use crate::spec::{Comparison, Figure};
use crate::table::{Figures, millis, percentile, percentiles};

/// Producers, each with a session of its own.
const PRODUCERS: usize = 64;
/// Signals per producer: all together fill the log up to its default limit.
const EACH: usize = 800;
/// Deltas read.
const READS: usize = 10_000;

fn session(producer: usize) -> SessionKey {
    SessionKey::parse(&format!("agent:bench:session-{producer}")).expect("a key")
}

fn produce(mut door: DoorClient, producer: usize) -> Vec<Duration> {
    let request = goal_changed(producer);
    let one = |_| {
        let began = Instant::now();
        door.ask(&request);
        began.elapsed()
    };
    (0..EACH).map(one).collect()
}

fn goal_changed(producer: usize) -> Request {
    Request::SignalsRecord(SignalsRecord {
        session: session(producer),
        kind: SignalKind::GoalChanged,
        actor: "human".to_owned(),
        parent: None,
        channel: None,
        outcome: None,
        run_id: None,
        summary: None,
        dedupe_key: None,
    })
}

/// Has each session watched, so that each signal moves a cursor.
fn watch_all(gateway: &Gateway) {
    let mut door = DoorClient::connect(gateway.state_dir());
    for producer in 0..PRODUCERS {
        door.ask(&goal_changed(producer));
        let watcher = format!("agent:bench:watcher-{producer}");
        door.ask(&Request::WatchAdd(WatchPair {
            watcher: Some(SessionKey::parse(&watcher).expect("a key")),
            target: session(producer),
            target_agent: None,
        }));
    }
}

/// Fills the log to its default limit.
pub(crate) fn fill(gateway: &Gateway) {
    let _ = produce_all(gateway);
}

/// Durable signals per second, with 64 producers on 64 sessions.
pub(crate) fn record(gateway: &Gateway, figures: &mut Figures) {
    watch_all(gateway);
    let began = Instant::now();
    let times = produce_all(gateway);
    let count = u32::try_from(times.len()).expect("a small number");
    let rate = f64::from(count) / began.elapsed().as_secs_f64();
    figures.add(
        "durable signals per second, 64 producers, at the socket",
        format!("{rate:.0} per s"),
        "-",
    );
    figures.add(
        "acknowledgement of a signal, 64 producers, at the socket",
        percentiles(&times),
        "p99 <= 4 ms",
    );
}

fn produce_all(gateway: &Gateway) -> Vec<Duration> {
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let door = DoorClient::connect(gateway.state_dir());
            thread::spawn(move || produce(door, producer))
        })
        .collect();
    producers
        .into_iter()
        .flat_map(|producer| producer.join().expect("a producer"))
        .collect()
}

/// `session_status` with `changesSince` over a full log.
pub(crate) fn read(gateway: &Gateway, noise: &Noise, figures: &mut Figures) {
    let mut door = DoorClient::connect(gateway.state_dir());
    let highest = i64::try_from(PRODUCERS * EACH).expect("a small number");
    let one = |at: usize| {
        // Spread over sessions and over the whole log; the same in each run.
        let since = i64::try_from(at).expect("a small number") * 7_919 % highest;
        let request = Request::SessionStatus(StatusQuery {
            session_key: session(at % PRODUCERS),
            agent: None,
            changes_since: Some(since),
            reader: None,
        });
        let began = Instant::now();
        door.ask(&request);
        began.elapsed()
    };
    let times: Vec<Duration> = (0..READS).map(one).collect();
    figures.add(
        "session_status with changesSince, 50 000 rows, at the socket",
        percentiles(&times),
        "p99 <= 1 ms",
    );
    figures.result(
        Figure::ChangesSince,
        millis(percentile(&times, 99)),
        Comparison::with_slow_end("a byte to another thread and back", &noise.echoes),
    );
}
