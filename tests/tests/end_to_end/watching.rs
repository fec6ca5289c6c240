//! Watching: who is told, and who is not.

use tidings_tests::transcripts::{Claude, Transcript};
use tidings_tests::{DEADLINE, TwoMachines, WATCHER, notice};

#[test]
fn twenty_watchers_of_one_session_are_each_told_once() {
    let machines = TwoMachines::start();
    let gateway = &machines.gateway;
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt_unwatched(&claude);
    let watchers: Vec<String> = (0..20).map(|n| format!("agent:a{n}:main")).collect();
    for watcher in &watchers {
        let watch = gateway.ask(&["watch", "add", watcher, &session.key]);
        assert_eq!(watch["watched"], true, "{watch}");
        assert_eq!(watch["fromVersion"], session.version, "{watch}");
    }
    let mut follow = gateway.follow(session.version);
    claude.human("Stop the mill.");
    follow.signal_within(DEADLINE).expect("a signal");
    let expected = notice(&session.key, session.version);
    for watcher in &watchers {
        let told = gateway.ask(&["notices", "drain", watcher]);
        assert_eq!(told["notices"][0]["text"], expected, "{told}");
        assert_eq!(told["notices"].as_array().map(Vec::len), Some(1), "{told}");
        let told = gateway.ask(&["notices", "drain", watcher]);
        assert_eq!(told["notices"].as_array().map(Vec::len), Some(0), "{told}");
    }
}

#[test]
fn a_watch_that_makes_no_sense_is_refused_with_a_reason() {
    let machines = TwoMachines::start();
    let gateway = &machines.gateway;
    let claude = Claude::create(&machines.node.claude());
    let session = machines.adopt_unwatched(&claude);
    for (watcher, target) in [
        (&*session.key, &*session.key),
        ("cron:nightly", &session.key),
        (WATCHER, "agent:main:nobody"),
    ] {
        let watch = gateway.ask(&["watch", "add", watcher, target]);
        assert_eq!(watch["watched"], false, "{watcher} {target}: {watch}");
        let reason = watch["reason"].as_str();
        assert!(reason.is_some_and(|reason| !reason.is_empty()), "{watch}");
    }
    let list = gateway.ask(&["watch", "list"]);
    assert_eq!(list["watches"].as_array().map(Vec::len), Some(0), "{list}");
}

#[test]
fn who_watches_no_more_is_told_no_more() {
    let machines = TwoMachines::start();
    let gateway = &machines.gateway;
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);
    let other = "agent:other:main";
    gateway.ask(&["watch", "add", other, &session.key]);
    let pair = ["watch", "remove", WATCHER, &*session.key];
    assert_eq!(gateway.ask(&pair)["removed"], true);
    assert_eq!(gateway.ask(&pair)["removed"], false);

    let mut follow = gateway.follow(session.version);
    claude.human("Stop the mill.");
    follow.signal_within(DEADLINE).expect("a signal");
    for (watcher, notices) in [(WATCHER, 0), (other, 1)] {
        let told = gateway.ask(&["notices", "drain", watcher]);
        assert_eq!(
            told["notices"].as_array().map(Vec::len),
            Some(notices),
            "{watcher}: {told}"
        );
    }
}

#[test]
fn a_session_is_not_told_of_what_it_did_itself() {
    let machines = TwoMachines::start();
    let gateway = &machines.gateway;
    let claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);
    let record = |actor: &str| {
        let recorded = gateway.ask(&[
            "signals",
            "record",
            "--session",
            &session.key,
            "--kind",
            "goal_changed",
            "--actor",
            actor,
        ]);
        assert_eq!(recorded["recorded"], true, "{recorded}");
    };
    let pending = || {
        let told = gateway.ask(&["notices", "list", WATCHER]);
        told["notices"].as_array().map(Vec::len)
    };
    record(WATCHER);
    assert_eq!(pending(), Some(0));
    record("agent:other:main");
    assert_eq!(pending(), Some(1));
}
