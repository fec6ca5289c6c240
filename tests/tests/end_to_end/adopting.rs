//! Adopting: what was said before is history, and what was followed already goes on.

use tidings_tests::transcripts::{Claude, Codex, Transcript};
use tidings_tests::{TwoMachines, WATCHER, counted_turns, until};

#[test]
fn what_was_said_before_adoption_never_signals() {
    let machines = TwoMachines::start();
    let mut claude = Claude::create(&machines.node.claude());
    let mut codex = Codex::create(&machines.node.codex());
    for n in 0..60 {
        claude.human(&format!("before {n}"));
        codex.human(&format!("before {n}"));
    }
    let sessions = [machines.adopt(&claude), machines.adopt(&codex)];
    let mut follow = machines.gateway.follow(0);
    let after = [claude.human("after"), codex.human("after")];
    for (session, turn) in sessions.iter().zip(after) {
        follow.wait_for_turns(&session.key, 1);
        assert_eq!(counted_turns(&machines.gateway, &session.key), [turn]);
    }
}

#[test]
fn nothing_is_recorded_while_nobody_watches_and_a_later_watch_starts_clean() {
    let machines = TwoMachines::start();
    let gateway = &machines.gateway;
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt_unwatched(&claude);

    for n in 0..5 {
        claude.human(&format!("unwatched {n}"));
    }
    until("the marker at the end of the file", || {
        let recorded = machines.node.recorded(claude.thread());
        (recorded == Some(claude.len())).then_some(())
    });
    let status = gateway.ask(&["sessions", "status", &session.key]);
    assert_eq!(status["stateVersion"], session.version, "nothing recorded");

    let watch = gateway.ask(&["watch", "add", WATCHER, &session.key]);
    assert_eq!(watch["watched"], true, "{watch}");
    assert_eq!(watch["fromVersion"], session.version, "{watch}");
    let told = gateway.ask(&["notices", "list", WATCHER]);
    assert_eq!(told["notices"].as_array().map(Vec::len), Some(0), "{told}");

    let mut follow = gateway.follow(session.version);
    let turn = claude.human("watched");
    follow.wait_for_turns(&session.key, 1);
    assert_eq!(counted_turns(gateway, &session.key), [turn]);
}

#[test]
fn adopting_twice_keeps_the_key_and_the_marker() {
    let mut machines = TwoMachines::start();
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);
    assert_eq!(session.answer["link"]["created"], true);
    let mut follow = machines.gateway.follow(session.version);
    let mut turns = vec![claude.human("one")];
    follow.wait_for_turns(&session.key, 1);

    // A line that nobody has read yet: adopting again must not pass over it.
    machines.node.kill();
    turns.push(claude.human("two"));
    machines.node.run();
    let again = ["sessions", "adopt", "claude", "laptop", claude.thread()];
    let answer = machines.gateway.ask(&again);
    assert_eq!(answer["sessionKey"], *session.key, "{answer}");
    assert_eq!(
        answer["link"]["id"], session.answer["link"]["id"],
        "{answer}"
    );
    assert_eq!(answer["link"]["created"], false, "{answer}");
    turns.push(claude.human("three"));
    follow.wait_for_turns(&session.key, 3);
    turns.push(claude.human("four"));
    follow.wait_for_turns(&session.key, 4);
    assert_eq!(counted_turns(&machines.gateway, &session.key), turns);
}

#[test]
fn another_agent_may_adopt_the_same_thread_under_a_key_of_its_own() {
    let machines = TwoMachines::start();
    let gateway = &machines.gateway;
    let mut claude = Claude::create(&machines.node.claude());
    let first = machines.adopt(&claude);
    let second = gateway.ask(&[
        "sessions",
        "adopt",
        "claude",
        "laptop",
        claude.thread(),
        "--agent",
        "coder",
        "--watch-by",
        "agent:coder:main",
    ]);
    let second = second["sessionKey"].as_str().expect("a key").to_owned();
    assert_eq!(second, first.key.replace("agent:main:", "agent:coder:"));
    let mut follow = gateway.follow(first.version);
    let turn = claude.human("Stop the mill.");
    for key in [&first.key, &second] {
        follow.wait_for_turns(key, 1);
        assert_eq!(counted_turns(gateway, key), std::slice::from_ref(&turn));
    }
}

#[test]
fn a_thread_of_a_machine_out_of_reach_cannot_be_adopted_and_its_sessions_say_so() {
    let mut machines = TwoMachines::start();
    let claude = Claude::create(&machines.node.claude());
    let other = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);
    assert_eq!(machines.node.stop(), 0);
    until("a session that knows its node is away", || {
        let status = machines.gateway.ask(&["sessions", "status", &session.key]);
        (status["upstream"]["state"] == "offline").then_some(())
    });
    let arguments = ["sessions", "adopt", "claude", "laptop", other.thread()];
    let answer = machines.gateway.run(&arguments);
    assert_eq!(answer.code, 69, "{answer}");
    assert_eq!(answer.refused()["type"], "unavailable");
}

#[test]
fn a_thread_or_a_host_that_is_not_there_is_refused_with_what_there_is() {
    let machines = TwoMachines::start();
    let claude = Claude::create(&machines.node.claude());
    for (host, thread, names) in [
        ("laptop", "no-such-thread", claude.thread()),
        ("labtop", claude.thread(), "laptop"),
    ] {
        let answer = machines
            .gateway
            .run(&["sessions", "adopt", "claude", host, thread]);
        assert_eq!(answer.code, 1, "{answer}");
        let error = answer.refused();
        assert_eq!(error["type"], "not_found", "{answer}");
        let said = error.to_string();
        assert!(said.contains(names), "{host} {thread}: {said}");
    }
}
