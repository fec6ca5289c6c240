//! Where the kernel tells of no file event: the limits are real, and nothing is lost.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use tidings_tests::transcripts::{Claude, Codex, Transcript, Turn};
use tidings_tests::{
    Adopted, Gateway, Namespace, Node, Scratch, TwoMachines, counted_turns, until,
};

/// Where nobody tells of a line, a look at everything finds it: one a minute.
const A_SWEEP: Duration = Duration::from_secs(90);
/// How many threads a storm of events comes from: the kernel makes one of two equal events in
/// a row.
const STORMY: usize = 20;
/// The longest queue of file events that a test fills.
const MAX_QUEUE: usize = 200_000;

#[test]
fn a_root_without_enough_file_watches_is_polled_and_says_so() {
    let gateway = Gateway::start(&Scratch::new());
    // Two roots and five projects want seven.
    let Some(namespace) = Namespace::with_watches(gateway.scratch(), 4) else {
        eprintln!("skipped: this machine lets us make no user namespace");
        return;
    };
    let mut node = Node::join(&gateway, "laptop");
    let mut claudes: Vec<Claude> = (0..5)
        .map(|n| Claude::create_in(&node.claude().join(format!("-home-ada-{n}"))))
        .collect();
    node.run_in(namespace);
    let machines = TwoMachines { gateway, node };
    let sessions: Vec<Adopted> = claudes
        .iter()
        .map(|claude| machines.adopt(claude))
        .collect();
    let turns: Vec<Turn> = claudes
        .iter_mut()
        .map(|claude| claude.human("Stop the mill."))
        .collect();
    for (session, turn) in sessions.iter().zip(turns) {
        told_by_a_sweep(&machines, session, &[turn]);
    }
    warned(&machines, "raise fs.inotify.max_user_watches");
}

#[test]
fn a_root_without_a_file_watcher_is_polled_and_says_so() {
    let gateway = Gateway::start(&Scratch::new());
    // Each of two roots wants one.
    let Some(namespace) = Namespace::with_watchers(gateway.scratch(), 1) else {
        eprintln!("skipped: this machine lets us make no user namespace");
        return;
    };
    let mut node = Node::join(&gateway, "laptop");
    let mut claude = Claude::create(&node.claude());
    let mut codex = Codex::create(&node.codex());
    node.run_in(namespace);
    let machines = TwoMachines { gateway, node };
    let sessions = [machines.adopt(&claude), machines.adopt(&codex)];
    let turns = [
        claude.human("Stop the mill."),
        codex.human("Stop the mill."),
    ];
    for (session, turn) in sessions.iter().zip(turns) {
        told_by_a_sweep(&machines, session, &[turn]);
    }
    warned(&machines, "raise fs.inotify.max_user_instances");
}

#[test]
fn file_events_that_were_lost_cost_nothing_and_are_told() {
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events");
    let limit: Option<usize> = limit.ok().and_then(|text| text.trim().parse().ok());
    let Some(limit) = limit.filter(|limit| *limit <= MAX_QUEUE) else {
        eprintln!("skipped: the kernel's queue of file events is too long to be filled");
        return;
    };
    let machines = TwoMachines::start();
    let mut claudes: Vec<Claude> = (0..STORMY)
        .map(|_| Claude::create(&machines.node.claude()))
        .collect();
    let sessions: Vec<Adopted> = claudes
        .iter()
        .map(|claude| machines.adopt(claude))
        .collect();

    machines.node.pause();
    for at in 0..=limit {
        claudes[at % STORMY].append("{}\n");
    }
    // From here on the kernel tells of nothing.
    let turns: Vec<Turn> = claudes
        .iter_mut()
        .map(|claude| claude.human("Stop the mill."))
        .collect();
    let new_project = machines.node.claude().join("-home-ada-new");
    let mut new = Claude::create_in(&new_project);
    machines.node.go_on();

    for (session, turn) in sessions.iter().zip(turns) {
        let mut follow = machines.gateway.follow(session.version);
        follow.wait_for_at_least(&session.key, 1);
        assert_eq!(counted_turns(&machines.gateway, &session.key), [turn]);
    }
    let session = machines.adopt(&new);
    let turn = new.human("And this one.");
    let mut follow = machines.gateway.follow(session.version);
    follow.wait_for_turns(&session.key, 1);
    assert_eq!(counted_turns(&machines.gateway, &session.key), [turn]);
    warned(&machines, "raise fs.inotify.max_queued_events");
}

#[track_caller]
fn told_by_a_sweep(machines: &TwoMachines, session: &Adopted, turns: &[Turn]) {
    let mut follow = machines.gateway.follow(session.version);
    let told = follow.signal_within(A_SWEEP);
    assert!(told.is_some(), "nothing is told of {}", session.key);
    follow.wait_for_turns(&session.key, turns.len());
    assert_eq!(counted_turns(&machines.gateway, &session.key), turns);
}

/// The agent's own status and log, and the gateway's status, list of nodes and doctor say
/// these words.
#[track_caller]
fn warned(machines: &TwoMachines, words: &str) {
    let says = |document: &Value| document.to_string().contains(words);
    let own = machines.node.command(&["status"]).done();
    assert!(says(&own["warnings"]), "{own}");
    let log = fs::read_to_string(machines.node.log()).expect("a log");
    let line = log.lines().find(|line| line.contains(words));
    assert!(line.is_some_and(|line| line.contains("WARN")), "{line:?}");
    // With the next sign of life the gateway knows it too.
    for command in ["nodes list", "status"] {
        let words: Vec<&str> = command.split(' ').collect();
        until(command, || {
            let answer = machines.gateway.ask(&words);
            says(&answer["nodes"]).then_some(())
        });
    }
    let doctor = machines.gateway.run(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor}");
    assert!(says(&doctor.json()["findings"]), "{doctor}");
}
