//! Readers that are slow, or do not read at all: nobody else notices.

use std::fs;
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use tidings_tests::audit::{DATABASE, open};
use tidings_tests::{DEADLINE, DoorClient, Gateway, Scratch, Setup};

use crate::record;

/// Signals that a follower is behind by.
const SIGNALS: u64 = 20_000;
/// So many producers: they share commits.
const PRODUCERS: u64 = 50;
/// The log of the database is cut above this size, give or take what is written meanwhile.
const MAX_LOG_BYTES: u64 = 80 * 1024 * 1024;

fn produce(gateway: &Gateway, signals: u64) {
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let mut door = DoorClient::connect(gateway.state_dir());
            thread::spawn(move || {
                for _ in 0..signals / PRODUCERS {
                    let recorded = record(&mut door, &format!("agent:a:session-{producer}"));
                    recorded.expect("an answer").expect("a sequence");
                }
            })
        })
        .collect();
    for producer in producers {
        producer.join().expect("a producer");
    }
}

#[test]
fn a_follower_that_is_stopped_holds_up_nothing_and_gets_everything_in_the_end() {
    let scratch = Scratch::new();
    let gateway = Gateway::start_as(&scratch, Setup::without_local_node().quiet());
    produce(&gateway, PRODUCERS);
    let mut follow = gateway.follow(0);
    follow.signal_within(DEADLINE).expect("the first signal");
    follow.pause();
    produce(&gateway, SIGNALS);
    let log = fs::metadata(gateway.state_dir().join("state.sqlite-wal"));
    let log = log.expect("a log").len();
    assert!(log < MAX_LOG_BYTES, "the log has {log} bytes");
    assert_eq!(left_to_move(&gateway), 0, "a stopped reader holds the log");

    follow.go_on();
    for sequence in 2..=SIGNALS + PRODUCERS {
        let signal = follow.signal_within(DEADLINE).expect("one more signal");
        assert_eq!(signal["sequence"], sequence);
    }
}

/// How many pages of the log cannot be moved into the database, because somebody reads an
/// older state.
fn left_to_move(gateway: &Gateway) -> i64 {
    let conn = Connection::open(gateway.state_dir().join(DATABASE)).expect("the database");
    conn.busy_timeout(Duration::from_secs(10))
        .expect("patience");
    let moved = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        let (pages, moved): (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok(pages - moved)
    });
    moved.expect("a checkpoint")
}

#[test]
fn somebody_who_reads_an_old_state_for_long_keeps_nobody_from_writing() {
    let scratch = Scratch::new();
    let gateway = Gateway::start_as(&scratch, Setup::without_local_node().quiet());
    produce(&gateway, PRODUCERS);
    let reader = open(gateway.state_dir());
    let count = || -> i64 {
        reader
            .query_row("SELECT count(*) FROM session_state_events", [], |row| {
                row.get(0)
            })
            .expect("a count")
    };
    reader.execute_batch("BEGIN").expect("a long look");
    let before = count();
    produce(&gateway, 10 * PRODUCERS);
    assert_eq!(count(), before);
    assert!(left_to_move(&gateway) > 0, "nobody reads an old state");
    reader.execute_batch("COMMIT").expect("the end of it");
    assert_eq!(left_to_move(&gateway), 0);
    let all = i64::try_from(11 * PRODUCERS).expect("a small number");
    assert_eq!(count(), all);
}
