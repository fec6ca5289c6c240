//! Another process holds the database: a shell that somebody has left open.

use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tidings_protocol::session_api::ErrorType;
use tidings_tests::audit::DATABASE;
use tidings_tests::{DoorClient, Gateway, Scratch, Setup};

use crate::record;

/// The gateway waits 5 s for another process; nobody waits for those who wait before it.
const PATIENCE: Duration = Duration::from_secs(9);

/// A process that is about to write and does not.
fn hold(gateway: &Gateway) -> Connection {
    let conn = Connection::open(gateway.state_dir().join(DATABASE)).expect("the database");
    conn.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    conn
}

#[test]
fn a_database_that_another_process_holds_is_named_and_served_again_when_it_lets_go() {
    let scratch = Scratch::new();
    let gateway = Gateway::start_as(&scratch, Setup::without_local_node().quiet());
    let connect = || DoorClient::connect(gateway.state_dir());
    let first = record(&mut connect(), "agent:a:main").expect("an answer");
    let first = first.expect("a sequence");

    let holder = hold(&gateway);
    let began = Instant::now();
    let askers: Vec<_> = (0..6)
        .map(|_| {
            let mut door = connect();
            thread::spawn(move || record(&mut door, "agent:a:main"))
        })
        .collect();
    // Whoever only reads does not notice.
    let listed = gateway.ask(&["signals", "list"]);
    assert_eq!(listed["signals"].as_array().map(Vec::len), Some(1));
    for asker in askers {
        let answer = asker.join().expect("an asker").expect("an answer");
        let error = answer.expect_err("nothing can be written");
        assert_eq!(error.error_type, ErrorType::TryLater, "{error:?}");
        assert!(error.message.contains("state.sqlite"), "{error:?}");
        assert!(error.message.contains("locked"), "{error:?}");
    }
    let took = began.elapsed();
    assert!(took < PATIENCE, "{took:?}");

    drop(holder);
    let second = record(&mut connect(), "agent:a:main").expect("an answer");
    assert!(second.expect("a sequence") > first);
}

#[test]
fn a_gateway_does_not_start_on_a_database_that_another_process_holds() {
    let scratch = Scratch::new();
    let mut gateway = Gateway::start_as(&scratch, Setup::without_local_node().quiet());
    record(
        &mut DoorClient::connect(gateway.state_dir()),
        "agent:a:main",
    )
    .expect("an answer")
    .expect("a sequence");
    assert_eq!(gateway.stop(), 0);
    let conn = Connection::open(gateway.state_dir().join(DATABASE)).expect("the database");
    conn.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
        .expect("a lock");
    let answer = gateway.run_refused();
    assert_eq!(answer.code, 75, "{answer}");
    let error = answer.refused();
    assert_eq!(error["type"], "try_later", "{answer}");
    let message = error["message"].as_str().expect("a message");
    assert!(
        message.contains("state.sqlite") && message.contains("locked"),
        "{answer}"
    );
    assert!(error["hint"].is_string(), "{answer}");
    drop(conn);
    gateway.restart();
}
