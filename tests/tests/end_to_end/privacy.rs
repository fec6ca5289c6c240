//! No text of a person or a program leaves its transcript.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{LeaseRef, Reply, Request, SpeakerRef};
use tidings_tests::transcripts::{Claude, Codex, Transcript};
use tidings_tests::{DoorClient, Hooks, TwoMachines, WATCHER, containing, files, until};

/// Nothing else on this machine spells it.
const CANARY: &str = "Quetzal7marmalade";

#[test]
fn no_message_text_is_in_a_database_a_state_directory_or_a_log() {
    let mut machines = TwoMachines::start();
    let mut claude = Claude::create(&machines.node.claude());
    let mut codex = Codex::create(&machines.node.codex());
    // In the history that adoption scans, in what follows, and in a line that is too long
    // to be read in one piece.
    claude.human(CANARY);
    codex.human(CANARY);
    let sessions = [machines.adopt(&claude), machines.adopt(&codex)];
    let mut follow = machines.gateway.follow(sessions[1].version);
    claude.everything_but_a_human(CANARY);
    codex.everything_but_a_human(CANARY);
    claude.human(&CANARY.repeat(100_000));
    codex.human(CANARY);
    claude.human(&format!("{CANARY} at the end"));
    follow.wait_for_turns(&sessions[0].key, 2);
    follow.wait_for_turns(&sessions[1].key, 1);
    fire_hooks(&machines, &claude);
    ask_everything(&machines, &sessions[0].key);

    // While both run, with what is only in the write-ahead log, and after both have stopped.
    nothing_leaked(&machines);
    assert_eq!(machines.node.stop(), 0);
    assert_eq!(machines.gateway.stop(), 0);
    nothing_leaked(&machines);
}

#[test]
fn a_message_leaves_nothing_behind_once_its_delivery_is_confirmed() {
    let mut machines = TwoMachines::start();
    let gateway = &machines.gateway;
    let spawned = gateway.ask(&["sessions", "spawn", WATCHER, CANARY]);
    let child = spawned["sessionKey"].as_str().expect("a key").to_owned();
    // One that fits a page of the database, and one that does not.
    let long = gateway.scratch().path().join("long.txt");
    fs::write(&long, CANARY.repeat(5_000)).expect("a text");
    let file = long.to_str().expect("a path");
    gateway.ask(&["sessions", "send", &child, CANARY]);
    gateway.ask(&["sessions", "send", &child, "--file", file]);
    let wal = gateway.state_dir().join("state.sqlite-wal");
    assert_eq!(containing(vec![wal.clone()], CANARY.as_bytes()), [wal]);

    let mut door = DoorClient::connect(gateway.state_dir());
    let begin = Request::TurnBegin(SpeakerRef {
        session_key: Some(SessionKey::parse(&child).expect("a key")),
        agent: None,
    });
    let Reply::TurnBegin(turn) = door.ask(&begin) else {
        panic!("no turn");
    };
    assert_eq!(turn.messages.len(), 3);
    let token = turn.token.expect("a lease");
    door.ask(&Request::TurnConfirm(LeaseRef { token }));
    drop(door);
    fs::remove_file(&long).expect("the text is gone");
    // While both run: neither in the database's free pages nor in its log.
    until("the text is nowhere", || {
        let left = containing(files(machines.gateway.state_dir()), CANARY.as_bytes());
        left.is_empty().then_some(())
    });
    assert_eq!(machines.node.stop(), 0);
    assert_eq!(machines.gateway.stop(), 0);
    nothing_leaked(&machines);
}

#[test]
fn a_trace_log_shows_the_reports_themselves() {
    let machines = TwoMachines::start();
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);
    let mut follow = machines.gateway.follow(session.version);
    let (_, record, _) = claude.human_with_id("Stop the mill.");
    follow.wait_for_turns(&session.key, 1);
    for log in [machines.gateway.log(), machines.node.log()] {
        let text = fs::read_to_string(&log).expect("a log");
        assert!(
            text.contains(&record),
            "no report in {}: it proves nothing that no message text is there",
            log.display()
        );
    }
}

/// Fires the hooks of a turn with all the text that a program hands to them, and some that no
/// hook can read.
fn fire_hooks(machines: &TwoMachines, claude: &Claude) {
    let hooks = Hooks::on_node(&machines.node, claude);
    for (event, more) in [
        ("SessionStart", json!({"source": "startup"})),
        ("UserPromptSubmit", json!({"prompt": CANARY})),
        ("PreToolUse", json!({"tool_input": {"command": CANARY}})),
        ("PostToolUse", json!({"tool_response": [CANARY]})),
        (
            "PostCompact",
            json!({"trigger": "auto", "compact_summary": CANARY}),
        ),
        ("Stop", json!({"last_assistant_message": CANARY})),
    ] {
        hooks.fire(event, &more);
    }
    hooks.hand(CANARY.as_bytes());
    let log = fs::read_to_string(machines.node.state_dir().join("hook.log"));
    assert!(!log.expect("a log").is_empty());
}

/// Asks for all that can be asked for without asking for text.
fn ask_everything(machines: &TwoMachines, key: &str) {
    let gateway = &machines.gateway;
    for question in [
        &["status"][..],
        &["nodes", "list"],
        &["catalog", "list"],
        &["sessions", "list"],
        &["sessions", "show", key],
        &["sessions", "status", key, "--changes-since", "0"],
        &["signals", "list"],
        &["watch", "list"],
        &["notices", "drain", WATCHER],
    ] {
        let answer = gateway.run(question);
        answer.done();
        let said = answer.stdout + &answer.stderr;
        assert!(!said.contains(CANARY), "{question:?}: {said}");
    }
}

fn nothing_leaked(machines: &TwoMachines) {
    let gateway = &machines.gateway;
    let logs = [gateway.log(), machines.node.log()];
    for state_dir in [gateway.state_dir(), &machines.node.state_dir()] {
        let files = files(state_dir);
        assert!(!files.is_empty(), "nothing in {}", state_dir.display());
        nowhere_in(files);
    }
    for folder in [gateway.scratch().home(), gateway.scratch().tmp()] {
        nowhere_in(files(&folder));
    }
    nowhere_in(logs.to_vec());
}

fn nowhere_in(files: Vec<PathBuf>) {
    assert_eq!(containing(files, CANARY.as_bytes()), Vec::<PathBuf>::new());
}
