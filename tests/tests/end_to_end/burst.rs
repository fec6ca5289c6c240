//! Ten thousand human lines in one write: all of them are counted, none twice, whoever is
//! killed in the middle.

use std::time::Duration;

use tidings_tests::transcripts::{Claude, Transcript};
use tidings_tests::{Dice, Follow, TwoMachines, counted_turns, seed};

/// How many lines are written at once: two hundred reports.
const LINES: usize = 10_000;
/// How often somebody is killed while they are worked off.
const KILLS: usize = 5;
/// A kill comes within this time after a signal: reading the next page, reporting it and
/// committing it all lie within.
const KILL_WITHIN_US: u64 = 20_000;

#[test]
fn a_burst_is_counted_to_the_last_line() {
    survives(|_, _| {});
}

#[test]
fn a_node_killed_in_the_middle_of_a_burst_loses_and_doubles_nothing() {
    survives(|machines, _| {
        machines.node.kill();
        machines.node.run();
    });
}

#[test]
fn a_gateway_killed_in_the_middle_of_a_burst_loses_and_doubles_nothing() {
    survives(|machines, follow| {
        machines.gateway.kill();
        machines.gateway.restart();
        follow.resume(&machines.gateway);
        machines.node.wait_for_welcome();
    });
}

#[test]
fn both_killed_in_the_middle_of_a_burst_lose_and_double_nothing() {
    survives(|machines, follow| {
        machines.gateway.kill();
        machines.node.kill();
        machines.gateway.restart();
        follow.resume(&machines.gateway);
        machines.node.run();
    });
}

/// Writes the burst, and has `kill` end and restart processes a random moment after random
/// parts of it were told.
fn survives(kill: impl Fn(&mut TwoMachines, &mut Follow)) {
    let mut dice = Dice::new(seed());
    let mut machines = TwoMachines::start();
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);
    let mut follow = machines.gateway.follow(session.version);

    let texts = vec!["Stop the mill.".to_owned(); LINES];
    let mut turns = claude.humans(&texts);
    let most = LINES as u64 * 9 / 10;
    let mut told: Vec<u64> = (0..KILLS).map(|_| dice.below(most)).collect();
    told.sort_unstable();
    for told in told {
        let told = usize::try_from(told).expect("a small number");
        follow.wait_for_at_least(&session.key, told);
        follow.signal_within(Duration::from_micros(dice.below(KILL_WITHIN_US)));
        kill(&mut machines, &mut follow);
    }
    follow.wait_for_at_least(&session.key, LINES);
    // Read behind the burst: whatever of it would be counted twice is told before.
    turns.push(claude.human("Is there an echo?"));
    follow.wait_for_turns(&session.key, turns.len());
    assert_eq!(counted_turns(&machines.gateway, &session.key), turns);
}
