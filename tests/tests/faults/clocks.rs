//! Clocks that jump: no wrong clock erases the log, or holds for long what it should not.

use std::fs;
use std::time::Duration;

use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{Reply, Request, SpeakerRef, TurnBegun, WatchPair};
use tidings_tests::{Clocks, DoorClient, Gateway, Scratch, Setup, until};

use crate::{record, status};

const TARGET: &str = "agent:a:main";
const WATCHER: &str = "agent:b:main";
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// A little more than a gateway's round of upkeep.
const ROUND: Duration = Duration::from_mins(61);

fn key(text: &str) -> SessionKey {
    SessionKey::parse(text).expect("a key")
}

/// A gateway that goes by clocks of ours.
fn start() -> (Gateway, Clocks) {
    let scratch = Scratch::new();
    let clocks = Clocks::new(&scratch);
    let setup = clocks.under(Setup::without_local_node().quiet());
    (Gateway::start_as(&scratch, setup), clocks)
}

fn change(gateway: &Gateway) -> u64 {
    let mut door = DoorClient::connect(gateway.state_dir());
    let recorded = record(&mut door, TARGET).expect("an answer");
    recorded.expect("a sequence")
}

fn watch(gateway: &Gateway) {
    DoorClient::connect(gateway.state_dir()).ask(&Request::WatchAdd(WatchPair {
        watcher: Some(key(WATCHER)),
        target: key(TARGET),
        target_agent: None,
    }));
}

fn begin(gateway: &Gateway) -> TurnBegun {
    let request = Request::TurnBegin(SpeakerRef {
        session_key: Some(key(WATCHER)),
        agent: None,
    });
    match DoorClient::connect(gateway.state_dir()).ask(&request) {
        Reply::TurnBegin(begun) => begun,
        reply => panic!("{reply:?} to a turn"),
    }
}

/// How often the gateway has said that its clocks disagree.
fn disagreements(gateway: &Gateway) -> usize {
    let log = fs::read_to_string(gateway.log()).expect("a log");
    log.matches("wall clock and monotonic clock disagree")
        .count()
}

#[test]
fn a_wall_clock_that_jumps_a_month_ahead_erases_nothing_and_time_that_passes_does() {
    let (gateway, mut clocks) = start();
    let first = change(&gateway);
    let head = change(&gateway);

    clocks.set_wall_ahead(40 * DAY_MS);
    clocks.pass(ROUND);
    until("its clocks disagree", || {
        // It looks at its timers when something wakes it.
        status(&gateway);
        (disagreements(&gateway) > 0).then_some(())
    });
    assert_eq!(status(&gateway).counts.signals, 2);

    // Set right, the log is kept for as long as it should be, and no longer.
    clocks.set_wall_ahead(-40 * DAY_MS);
    clocks.pass(Duration::from_hours(29 * 24));
    let last = change(&gateway);
    assert!(last > head);
    clocks.pass(Duration::from_hours(2 * 24));
    until("what is older than 30 days has gone", || {
        (status(&gateway).counts.signals == 1).then_some(())
    });
    let since = first.to_string();
    let changes = gateway.ask(&["sessions", "status", TARGET, "--changes-since", &since]);
    let changes = &changes["stateChanges"];
    assert_eq!(changes["historyGap"], true, "{changes}");
    assert_eq!(changes["earliestAvailableSequence"], last, "{changes}");
}

#[test]
fn a_gateway_that_starts_with_a_clock_a_year_ahead_erases_nothing() {
    let (mut gateway, mut clocks) = start();
    change(&gateway);
    watch(&gateway);
    assert_eq!(gateway.stop(), 0);
    clocks.set_wall_ahead(365 * DAY_MS);
    gateway.restart();
    assert_eq!(status(&gateway).counts.signals, 1);
    assert_eq!(status(&gateway).counts.watches, 1);
    // And whoever sets the clock right finds the log in the order of its numbers.
    let ahead = change(&gateway);
    clocks.set_wall_ahead(-365 * DAY_MS);
    assert!(change(&gateway) > ahead);
}

#[test]
fn a_lease_taken_under_a_clock_that_was_ahead_ends_once_the_clock_is_right() {
    let (gateway, mut clocks) = start();
    change(&gateway);
    watch(&gateway);
    change(&gateway);
    clocks.set_wall_ahead(365 * DAY_MS);
    let held = begin(&gateway);
    assert_eq!(held.notices.len(), 1);
    assert_eq!(begin(&gateway).notices, Vec::new());

    clocks.set_wall_ahead(-365 * DAY_MS);
    // Leases are looked after once a minute.
    clocks.pass(Duration::from_mins(2));
    let again = until("what it held is available", || {
        let begun = begin(&gateway);
        begun.token.is_some().then_some(begun)
    });
    assert_eq!(again.notices, held.notices);
}

#[test]
fn a_clock_that_is_set_back_a_day_holds_up_nobody() {
    let (gateway, mut clocks) = start();
    change(&gateway);
    watch(&gateway);
    clocks.set_wall_ahead(-DAY_MS);
    let told = change(&gateway);
    let begun = begin(&gateway);
    assert_eq!(begun.notices.len(), 1);
    assert!(begun.notices[0].changes_since < told);
}
