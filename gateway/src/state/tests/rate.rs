//! How many signals become durable per second, beside the plainest thing that could be done
//! in their place: one text-keyed row and one cursor per request, by the same writer, in the
//! same groups, with the same pragmas, in the same run.
//!
//! A measurement, so no test of the usual run: `cargo bench -p tidings-tests -- log` runs it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidings_node::clock::SystemClock;
use tokio::task::JoinSet;

use super::*;
use crate::state::engine::Priority;

/// Producers that each wait for an answer before they ask again.
const PRODUCERS: usize = 64;
/// Rounds of each side, in turn.
const ROUNDS: usize = 7;
/// Requests of each producer in a round.
const EACH: usize = 400;

/// The rows that the plain side writes.
const PLAIN_TABLES: &str = "
    CREATE TABLE plain_rows (
        row_key TEXT PRIMARY KEY,
        kind TEXT NOT NULL,
        recorded_at INTEGER NOT NULL,
        summary TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE plain_cursors (
        cursor_key TEXT PRIMARY KEY,
        last_row TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;";

/// A database on a disk, with a clock that goes.
struct Bench {
    state: State,
    _dir: TempDir,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let options = StateOptions {
            directory: dir.path().to_owned(),
            clock: Arc::new(SystemClock::new()),
        };
        let state = State::open(&options).expect("open");
        Self { state, _dir: dir }
    }

    /// One whose sessions are watched, each by one watcher.
    async fn watched(sessions: usize) -> Self {
        let bench = Self::new();
        for session in 0..sessions {
            record_one(&bench.state, session).await;
            let watched = bench.state.watch_add(
                key(&format!("agent:w:watcher-{session}")),
                address(&session_key(session)),
            );
            assert!(watched.await.expect("an answer").watched);
        }
        bench
    }

    fn plain() -> Self {
        let bench = Self::new();
        let outside = rusqlite::Connection::open(bench.state.path()).expect("open");
        outside.execute_batch(PLAIN_TABLES).expect("plain tables");
        bench
    }
}

fn session_key(session: usize) -> String {
    format!("agent:bench:session-{session}")
}

/// A signal that moves a cursor.
async fn record_one(state: &State, session: usize) {
    let session = address(&session_key(session));
    let signal = NewSignal::new(session, SignalKind::GoalChanged, Actor::Human);
    let recorded = state.record(signal).await.expect("recorded");
    assert!(recorded.recorded);
}

/// A row and a cursor, both by text.
async fn write_plain(state: &State, producer: usize, number: usize) {
    let session = session_key(producer);
    let row_key = format!("{session}/{number:09}");
    let written = state.write(Priority::Interactive, move |tx| {
        tx.execute(
            "INSERT INTO plain_rows (row_key, kind, recorded_at, summary)
             VALUES (?1, 'goal_changed', ?2, 'goal updated')",
            (&row_key, tx.now()),
        )?;
        tx.execute(
            "INSERT INTO plain_cursors (cursor_key, last_row) VALUES (?1, ?2)
             ON CONFLICT (cursor_key) DO UPDATE SET last_row = excluded.last_row",
            (&session, &row_key),
        )?;
        Ok(())
    });
    written.await.expect("written");
}

/// What one round gave.
struct Round {
    per_second: f64,
    waits: Vec<Duration>,
}

/// Has all producers ask, each so often, and waits for the last answer.
async fn round<F, R>(request: F) -> Round
where
    F: Fn(usize, usize) -> R + Clone + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let began = Instant::now();
    let mut producers = JoinSet::new();
    for producer in 0..PRODUCERS {
        let request = request.clone();
        producers.spawn(async move {
            let mut waits = Vec::with_capacity(EACH);
            for number in 0..EACH {
                let asked = Instant::now();
                request(producer, number).await;
                waits.push(asked.elapsed());
            }
            waits
        });
    }
    let waits: Vec<Duration> = producers.join_all().await.concat();
    let count = u32::try_from(waits.len()).expect("a small number");
    Round {
        per_second: f64::from(count) / began.elapsed().as_secs_f64(),
        waits,
    }
}

/// Signals of 64 producers on so many sessions.
async fn signals(bench: &Bench, sessions: usize) -> Round {
    let state = bench.state.clone();
    round(move |producer, number| {
        let state = state.clone();
        let session = (producer + number * PRODUCERS) % sessions;
        async move { record_one(&state, session).await }
    })
    .await
}

async fn plain(bench: &Bench, nth: usize) -> Round {
    let state = bench.state.clone();
    round(move |producer, number| {
        let state = state.clone();
        async move { write_plain(&state, producer, nth * EACH + number).await }
    })
    .await
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One figure for whoever runs this: a line of three columns, told apart by tabs.
fn say(name: &str, value: &str, target: &str) {
    println!("figure\t{name}\t{value}\t{target}");
}

fn say_waits(name: &str, rounds: &[Round], target: &str) {
    let mut waits: Vec<Duration> = rounds
        .iter()
        .flat_map(|round| round.waits.clone())
        .collect();
    waits.sort_unstable();
    let at = |percent: usize| waits[waits.len() * percent / 100].as_secs_f64() * 1_000.0;
    say(
        name,
        &format!("p50 {:.2} p99 {:.2} ms", at(50), at(99)),
        target,
    );
}

#[test]
#[ignore = "a measurement: cargo bench -p tidings-tests -- log"]
fn durable_signals_beside_plain_rows_in_the_same_groups() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (few, many) = (Bench::watched(PRODUCERS).await, Bench::watched(1_000).await);
        let plain_rows = Bench::plain();
        let (mut of_few, mut of_many, mut of_plain) = (Vec::new(), Vec::new(), Vec::new());
        for nth in 0..ROUNDS {
            of_few.push(signals(&few, PRODUCERS).await);
            of_plain.push(plain(&plain_rows, nth).await);
            of_many.push(signals(&many, 1_000).await);
        }
        let rates = |rounds: &[Round]| rounds.iter().map(|round| round.per_second).collect();
        let pairs = of_few.iter().zip(&of_plain);
        let ratios: Vec<f64> = pairs
            .map(|(ours, plain)| ours.per_second / plain.per_second)
            .collect();
        let (lowest, highest) = ratios
            .iter()
            .fold((f64::MAX, 0.0_f64), |(low, high), ratio| {
                (low.min(*ratio), high.max(*ratio))
            });
        say(
            "durable signals per second, 64 producers, 64 sessions",
            &format!("{:.0} per s", median(rates(&of_few))),
            "see the ratio",
        );
        say(
            "a text-keyed row and a cursor each, in the same groups",
            &format!("{:.0} per s", median(rates(&of_plain))),
            "-",
        );
        say(
            "the first as a part of the second",
            &format!("{:.2} ({lowest:.2} to {highest:.2})", median(ratios)),
            ">= 0.4",
        );
        say_waits(
            "acknowledgement, 64 producers, 64 sessions",
            &of_few,
            "p99 <= 4 ms",
        );
        say_waits(
            "acknowledgement, 64 producers, 1 000 sessions",
            &of_many,
            "p99 <= 8 ms",
        );
        say_waits(
            "a text-keyed row and a cursor each, in the same groups",
            &of_plain,
            "-",
        );
        for bench in [few, many, plain_rows] {
            bench.state.close().await;
        }
    });
}
