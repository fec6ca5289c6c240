//! A program on a node's machine that is started for each wake of that machine's sessions.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tidings_tests::transcripts::{Claude, Transcript};
use tidings_tests::{Gateway, Node, Scratch, until};

#[test]
fn a_nodes_machine_starts_its_command_for_its_own_sessions_and_for_no_other() {
    let scratch = Scratch::new();
    let roots = ["claude", "codex"].map(|root| scratch.folder(root));
    let mut gateway = Gateway::start_with_local_node(&scratch, &roots[0], &roots[1]);
    let mut laptop = Node::join(&gateway, "laptop");
    let program = scratch.folder("bin").join("wake");
    let told = scratch.path().join("told");
    let script = format!(
        "#!/bin/sh\necho \"$# $1 $TIDINGS_STATE_DIR\" >> {}\n",
        told.display()
    );
    fs::write(&program, script).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
    laptop.set_wake_command(program);
    laptop.run();

    let here = Claude::create(&roots[0]);
    let there = Claude::create(&laptop.claude());
    let mut target = Claude::create(&roots[0]);
    let adopt = |host: &str, thread: &Claude| {
        let adopted = gateway.ask(&["sessions", "adopt", "claude", host, thread.thread()]);
        adopted["sessionKey"].as_str().expect("a key").to_owned()
    };
    let watchers = [adopt("local", &here), adopt("laptop", &there)];
    let target_key = adopt("local", &target);
    for watcher in &watchers {
        gateway.ask(&["watch", "add", watcher, &target_key]);
    }
    target.human("Stop the mill.");
    let line = format!("1 {} {}\n", watchers[1], laptop.state_dir().display());
    let lines = || fs::read_to_string(&told).unwrap_or_default();
    until("it is told", || (lines() == line).then_some(()));
    let pending = gateway.ask(&["notices", "list", &watchers[0]]);
    assert_eq!(pending["notices"].as_array().map(Vec::len), Some(1));

    // A new connection begins with what is there.
    gateway.kill();
    gateway.restart();
    until("it is told again", || {
        (lines() == line.repeat(2)).then_some(())
    });
    assert_eq!(laptop.stop(), 0);
}

#[test]
fn a_command_that_is_no_program_is_named_before_the_agent_starts() {
    let scratch = Scratch::new();
    let gateway = Gateway::start(&scratch);
    let laptop = Node::join(&gateway, "laptop");
    let answer = laptop.command(&["run", "--wake-command", "nowhere"]);
    let error = answer.refused();
    assert_eq!(answer.code, 78, "{answer}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("nowhere is no program"), "{message}");
}
