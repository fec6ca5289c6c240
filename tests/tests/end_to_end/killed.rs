//! `kill -9` at any moment: what was appended is counted, and counted once.

use std::time::Duration;

use serde_json::json;
use tidings_tests::transcripts::{Claude, Transcript, Turn};
use tidings_tests::{
    Adopted, DEADLINE, Dice, Follow, TwoMachines, WATCHER, counted_turns, notice, seed,
};

/// How often a process is killed under load.
const KILLS: u64 = 20;
/// How many lines are appended for each kill.
const LINES_PER_KILL: u64 = 10;
/// A kill comes within this time after a line: reading it, reporting it and committing it
/// all lie within.
const KILL_WITHIN_US: u64 = 20_000;

#[test]
fn a_line_appended_while_the_gateway_is_dead_is_told_of_when_it_is_back() {
    let mut machines = TwoMachines::start();
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);

    machines.gateway.kill();
    let turn = claude.human("Stop the mill.");
    machines.gateway.restart();
    told_once(&machines, &mut claude, &session, vec![turn]);
}

#[test]
fn a_line_appended_while_the_node_is_dead_is_told_of_when_it_is_back() {
    let mut machines = TwoMachines::start();
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);

    machines.node.kill();
    let turn = claude.human("Stop the mill.");
    machines.node.run();
    told_once(&machines, &mut claude, &session, vec![turn]);
}

#[test]
fn a_line_appended_while_both_are_dead_is_told_of_when_they_are_back() {
    let mut machines = TwoMachines::start();
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);

    machines.gateway.kill();
    machines.node.kill();
    let turn = claude.human("Stop the mill.");
    machines.gateway.restart();
    machines.node.run();
    told_once(&machines, &mut claude, &session, vec![turn]);
}

#[test]
fn a_graceful_stop_of_both_loses_nothing_either() {
    let mut machines = TwoMachines::start();
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);

    let before = claude.human("Stop the mill.");
    assert_eq!(machines.node.stop(), 0);
    assert_eq!(machines.gateway.stop(), 0);
    let while_away = claude.human("And start it again.");
    machines.gateway.restart();
    machines.node.run();
    let mut follow = machines.gateway.follow(session.version);
    follow.wait_for_turns(&session.key, 2);
    counted_exactly(
        &machines,
        &mut claude,
        &session,
        &mut follow,
        vec![before, while_away],
    );
}

#[test]
fn a_gateway_killed_at_twenty_random_points_under_load_loses_and_doubles_nothing() {
    survives(|machines, lines_while_dead| {
        machines.gateway.kill();
        lines_while_dead();
        machines.gateway.restart();
        machines.node.wait_for_welcome();
    });
}

#[test]
fn a_node_killed_at_twenty_random_points_under_load_loses_and_doubles_nothing() {
    survives(|machines, lines_while_dead| {
        machines.node.kill();
        lines_while_dead();
        machines.node.run();
    });
}

#[test]
fn both_killed_at_twenty_random_points_under_load_lose_and_double_nothing() {
    survives(|machines, lines_while_dead| {
        machines.gateway.kill();
        machines.node.kill();
        lines_while_dead();
        machines.gateway.restart();
        machines.node.run();
    });
}

/// Appends lines, and again and again has `kill` end and restart processes a random moment
/// after one of them; `kill` appends lines itself while they are dead.
fn survives(kill: impl Fn(&mut TwoMachines, &mut dyn FnMut())) {
    let mut dice = Dice::new(seed());
    let mut machines = TwoMachines::start();
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);
    let mut follow = machines.gateway.follow(session.version);
    let mut turns = Vec::new();

    for _ in 0..KILLS {
        let before = 1 + dice.below(LINES_PER_KILL);
        let while_dead = dice.below(LINES_PER_KILL - before + 1);
        append(&mut claude, &mut turns, before);
        follow.signal_within(Duration::from_micros(dice.below(KILL_WITHIN_US)));
        kill(&mut machines, &mut || {
            append(&mut claude, &mut turns, while_dead);
        });
        append(
            &mut claude,
            &mut turns,
            LINES_PER_KILL - before - while_dead,
        );
        follow.resume(&machines.gateway);
    }
    assert_eq!(turns.len() as u64, KILLS * LINES_PER_KILL);
    follow.wait_for_turns(&session.key, turns.len());
    counted_exactly(&machines, &mut claude, &session, &mut follow, turns);
}

fn append(claude: &mut Claude, turns: &mut Vec<Turn>, lines: u64) {
    turns.extend((0..lines).map(|_| claude.human("Stop the mill.")));
}

/// The turns so far are told of by one signal and one notice, and the delta is exact.
fn told_once(machines: &TwoMachines, claude: &mut Claude, session: &Adopted, turns: Vec<Turn>) {
    let gateway = &machines.gateway;
    let mut follow = gateway.follow(session.version);
    let signal = follow.signal_within(DEADLINE).expect("a signal");
    let told = gateway.ask(&["notices", "drain", WATCHER]);
    assert_eq!(
        told["notices"],
        json!([{
            "target": session.key,
            "text": notice(&session.key, session.version),
            "changesSince": session.version,
        }])
    );
    let since = session.version.to_string();
    let status = gateway.ask(&[
        "sessions",
        "status",
        &session.key,
        "--changes-since",
        &since,
    ]);
    assert_eq!(status["stateVersion"], signal["sequence"]);
    assert_eq!(status["stateChanges"]["historyGap"], false);
    let events = status["stateChanges"]["events"].as_array();
    assert_eq!(events.map(Vec::len), Some(1), "{status}");
    counted_exactly(machines, claude, session, &mut follow, turns);
}

/// Exactly `turns` are counted: a line appended now is read behind all of them, so whatever
/// would be counted twice is in the log before it.
fn counted_exactly(
    machines: &TwoMachines,
    claude: &mut Claude,
    session: &Adopted,
    follow: &mut Follow,
    mut turns: Vec<Turn>,
) {
    turns.push(claude.human("Is there an echo?"));
    follow.wait_for_turns(&session.key, turns.len());
    assert_eq!(counted_turns(&machines.gateway, &session.key), turns);
}
