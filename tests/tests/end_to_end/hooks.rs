//! The hooks of agent programs on two machines: what they hand to a program, when that counts
//! as read, and what they never do.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidings_tests::transcripts::{Claude, Codex, Transcript};
use tidings_tests::{Gateway, Hooks, Scratch, Setup, counted_turns, notice, run, until};

use crate::two_machines::Machines;

fn of_prompt(prompt: &str) -> Value {
    json!({"prompt_id": prompt, "turn_id": prompt, "prompt": "Go on.", "tool_name": "Bash"})
}

/// A person speaks in the target, whose program fires its hooks as it writes. The watcher's
/// program is told at its next prompt: once, and until something shows that it was read.
fn is_told_once(
    machines: &Machines,
    (watcher, watching): (&Hooks, &str),
    (target, spoken_in): (&Hooks, &str),
    transcript: &mut dyn Transcript,
) {
    let version = machines.watch(watching, spoken_in);
    let mut follow = machines.gateway.follow(version);
    assert_eq!(watcher.prompt(&of_prompt("w-1")), None, "nothing happened");
    watcher.fire("Stop", &of_prompt("w-1"));

    assert_eq!(target.prompt(&of_prompt("t-1")), None);
    let turn = transcript.human("Stop the mill.");
    target.fire("PreToolUse", &of_prompt("t-1"));
    target.fire("PostToolUse", &of_prompt("t-1"));
    target.fire("Stop", &of_prompt("t-1"));
    follow.wait_for_turns(spoken_in, 1);

    let told = Some(notice(spoken_in, version));
    assert_eq!(watcher.prompt(&of_prompt("w-2")), told);
    // Its answer was lost, and the program asks anew: the same bytes.
    assert_eq!(watcher.prompt(&of_prompt("w-3")), told);
    watcher.fire("PreToolUse", &of_prompt("w-2"));
    watcher.fire(
        "PreToolUse",
        &json!({"agent_id": "a1", "agent_type": "Explore"}),
    );
    assert_eq!(
        machines.pending(watching),
        1,
        "another prompt, and a sub-agent"
    );
    watcher.fire("PostToolUse", &of_prompt("w-3"));
    assert_eq!(machines.pending(watching), 0);
    assert_eq!(watcher.prompt(&of_prompt("w-4")), None);
    watcher.fire("Stop", &of_prompt("w-4"));

    // Hook and tailer saw the same turn: it is one.
    assert_eq!(counted_turns(&machines.gateway, spoken_in), [turn]);
}

#[test]
fn a_watcher_at_the_gateway_is_told_once_of_a_session_on_a_laptop_and_the_other_way_round() {
    let machines = Machines::start();
    let mut here = machines.claude_here();
    let mut there = Claude::create(&machines.laptop.claude());
    let keys = [
        machines.adopt("local", &here),
        machines.adopt("laptop", &there),
    ];
    let hooks = [
        Hooks::on_gateway(&machines.gateway, &here),
        Hooks::on_node(&machines.laptop, &there),
    ];
    for side in &hooks {
        side.fire("SessionStart", &json!({"source": "startup"}));
    }
    let (here_side, there_side) = ((&hooks[0], &*keys[0]), (&hooks[1], &*keys[1]));
    is_told_once(&machines, here_side, there_side, &mut there);
    machines
        .gateway
        .ask(&["watch", "remove", &keys[0], &keys[1]]);
    is_told_once(&machines, there_side, here_side, &mut here);
}

#[test]
fn codex_is_told_in_the_same_way_and_gets_no_member_that_it_does_not_know() {
    let machines = Machines::start();
    let here = machines.codex_here();
    let mut there = Codex::create(&machines.laptop.codex());
    let keys = [
        machines.adopt("local", &here),
        machines.adopt("laptop", &there),
    ];
    let watcher = Hooks::on_gateway(&machines.gateway, &here).gone_on_in(here.thread());
    let target = Hooks::on_node(&machines.laptop, &there);
    is_told_once(
        &machines,
        (&watcher, &keys[0]),
        (&target, &keys[1]),
        &mut there,
    );
}

#[test]
fn what_a_conversation_lost_it_is_told_again_and_the_end_of_a_turn_shows_that_it_was_read() {
    let machines = Machines::start();
    let claude = machines.claude_here();
    let key = machines.adopt("local", &claude);
    let hooks = Hooks::on_gateway(&machines.gateway, &claude);
    machines
        .gateway
        .ask(&["sessions", "send", &key, "Please rebase.\n\"Now\"."]);
    let told = hooks.prompt(&json!({})).expect("a message");
    assert!(told.starts_with("Message "), "{told}");
    assert!(
        told.ends_with(" from the operator:\nPlease rebase.\n\"Now\"."),
        "{told}"
    );
    hooks.fire("SessionStart", &json!({"source": "resume"}));
    hooks.fire("PreToolUse", &json!({}));
    assert_eq!(hooks.prompt(&json!({})), Some(told));
    hooks.fire("Stop", &json!({"stop_hook_active": false}));
    assert_eq!(hooks.prompt(&json!({})), None);
}

#[test]
fn hooks_alone_make_no_session_of_a_conversation() {
    let machines = Machines::start();
    let claude = machines.claude_here();
    let codex = Codex::create(&machines.laptop.codex());
    for hooks in [
        Hooks::on_gateway(&machines.gateway, &claude),
        Hooks::on_node(&machines.laptop, &codex),
    ] {
        for (event, more) in [
            ("SessionStart", json!({"source": "startup"})),
            ("UserPromptSubmit", json!({"prompt": "Go on."})),
            ("PreToolUse", json!({"tool_name": "Bash", "tool_input": {}})),
            (
                "SubagentStart",
                json!({"agent_id": "a1", "agent_type": "Explore"}),
            ),
            (
                "SubagentStop",
                json!({"agent_id": "a1", "agent_type": "Explore"}),
            ),
            ("PostCompact", json!({"trigger": "auto"})),
            ("StopFailure", json!({"error": "rate_limit"})),
            ("Stop", json!({})),
            ("SessionEnd", json!({"reason": "clear"})),
            ("OfTomorrow", json!({})),
        ] {
            assert_eq!(hooks.fire(event, &more).stdout, "", "{event}");
        }
    }
    let sessions = machines.gateway.ask(&["sessions", "list"]);
    assert_eq!(sessions["sessions"], json!([]));
    let signals = machines.gateway.ask(&["signals", "list"]);
    assert_eq!(signals["signals"], json!([]));
    let status = machines.gateway.ask(&["status"]);
    assert_eq!(status["links"], json!([]));
}

#[test]
fn sub_agents_failures_and_compactions_are_recorded_as_what_they_are() {
    let machines = Machines::start();
    let claude = Claude::create(&machines.laptop.claude());
    let key = machines.adopt("laptop", &claude);
    let hooks = Hooks::on_node(&machines.laptop, &claude);
    let subagent = json!({"agent_id": "A1b2", "agent_type": "Explore"});
    hooks.fire("SubagentStart", &subagent);
    hooks.fire("SubagentStop", &subagent);
    hooks.fire("PostCompact", &json!({"trigger": "manual"}));
    hooks.fire("StopFailure", &json!({"error": "rate_limit"}));

    let sessions = machines.gateway.ask(&["sessions", "list"]);
    let children: Vec<&str> = sessions["sessions"]
        .as_array()
        .expect("sessions")
        .iter()
        .filter_map(|session| session["sessionKey"].as_str())
        .filter(|key| key.starts_with("agent:main:subagent:"))
        .collect();
    assert_eq!(children.len(), 1, "{sessions}");
    let kinds = |session: &str| -> Vec<String> {
        machines
            .log(session)
            .into_iter()
            .map(|(kind, _)| kind)
            .collect()
    };
    assert_eq!(kinds(children[0]), ["child_spawned", "run_completed"]);
    // Nobody spawned the session itself: that its turn failed is nobody's news.
    assert_eq!(kinds(&key), ["adopted", "compacted"]);
    let watches = machines.gateway.ask(&["watch", "list", "--watcher", &key]);
    assert_eq!(watches["watches"][0]["target"], children[0], "{watches}");
}

#[test]
fn clear_ends_the_watches_of_the_conversation_that_ended_and_of_no_other() {
    let machines = Machines::start();
    let claude = machines.claude_here();
    let beside = machines.claude_here();
    let target = Claude::create(&machines.laptop.claude());
    let keys = [&claude, &beside].map(|thread| machines.adopt("local", thread));
    let target = machines.adopt("laptop", &target);
    for key in &keys {
        machines.watch(key, &target);
    }
    let hooks = Hooks::on_gateway(&machines.gateway, &claude);
    hooks.fire("SessionStart", &json!({"source": "startup"}));
    hooks
        .gone_on_in("7e57da7a-0000-4000-8000-00000000c1ea")
        .fire("SessionStart", &json!({"source": "clear"}));
    let watches = |key: &str| {
        let list = machines.gateway.ask(&["watch", "list", "--watcher", key]);
        list["watches"].as_array().expect("watches").len()
    };
    assert_eq!(keys.each_ref().map(|key| watches(key)), [0, 1]);
    // Of two conversations in one program nobody can tell which was cleared away for a third,
    // until the end of one says which it was.
    let beside = Hooks::on_gateway(&machines.gateway, &beside);
    beside.fire("SessionStart", &json!({"source": "startup"}));
    hooks
        .gone_on_in("7e57da7a-0000-4000-8000-00000000c1eb")
        .fire("SessionStart", &json!({"source": "clear"}));
    assert_eq!(watches(&keys[1]), 1);
    beside.fire("SessionEnd", &json!({"reason": "clear"}));
    assert_eq!(watches(&keys[1]), 0);
}

#[test]
fn a_hook_ends_well_and_in_time_whatever_it_meets() {
    let scratch = Scratch::new();
    let mut gateway = Gateway::stopped(&scratch, Setup::without_local_node());
    let claude = Claude::create(&scratch.folder("claude"));
    let hooks = Hooks::on_gateway(&gateway, &claude);
    let silent = |what: &str, hooks: &Hooks| {
        let answer = hooks.fire("UserPromptSubmit", &json!({}));
        assert_eq!(answer.stdout, "", "{what}");
    };
    silent("no state directory", &hooks);
    assert!(!gateway.state_dir().exists(), "a hook makes none");
    gateway.restart();
    for (what, bytes) in [
        ("nothing", b"".to_vec()),
        ("no JSON", b"Stop the mill.".to_vec()),
        ("no object", b"[1, 2]".to_vec()),
        ("no UTF-8", b"{\"session_id\":\"\xff\"}".to_vec()),
        (
            "no conversation",
            b"{\"hook_event_name\":\"Stop\"}".to_vec(),
        ),
        (
            "torn",
            b"{\"hook_event_name\":\"Stop\",\"session_id\":\"a".to_vec(),
        ),
        ("deep", [b"{\"a\":".repeat(50_000), b"1".to_vec()].concat()),
        ("huge", vec![b' '; 20 * 1024 * 1024]),
    ] {
        let answer = hooks.hand(&bytes);
        let said = (answer.code, answer.stdout.as_str(), answer.stderr.as_str());
        assert_eq!(said, (0, "", ""), "{what}");
    }
    let log = fs::read_to_string(gateway.state_dir().join("hook.log")).expect("a log");
    assert!(log.contains("claude-code: standard input"), "{log}");
    assert!(!log.contains("mill"), "{log}");
    gateway.kill();
    silent("a gateway that was killed", &hooks);

    let socket = gateway.state_dir().join("gateway.sock");
    fs::remove_file(&socket).expect("what is left of a socket");
    let hung = UnixListener::bind(&socket).expect("a socket that nobody serves");
    let began = Instant::now();
    silent("a socket that does not answer", &hooks);
    let took = began.elapsed();
    // A bound for a loaded machine; the budget itself is a quarter of a second.
    assert!(took < Duration::from_secs(10), "{took:?}");
    drop(hung);

    let mut waiting = hooks.command();
    let mut child = waiting.stdin(Stdio::piped()).spawn().expect("a hook");
    let open = child.stdin.take();
    until("a hook whose input has no end ends by itself", || {
        child.try_wait().expect("a child")
    });
    drop(open);
}

#[test]
fn what_came_after_its_hook_had_given_up_is_told_at_the_next_prompt() {
    let machines = Machines::start();
    let (target, watcher) = (machines.claude_here(), machines.codex_here());
    let target_key = machines.adopt("local", &target);
    let watcher_key = machines.adopt("local", &watcher);
    machines.watch(&watcher_key, &target_key);
    let gateway = &machines.gateway;
    gateway.ask(&["sessions", "send", &watcher_key, "Stop the mill."]);
    let hooks = Hooks::on_gateway(gateway, &watcher);
    gateway.suspend();
    assert_eq!(hooks.prompt(&of_prompt("p1")), None);
    gateway.resume();
    // What is pending is shown, whatever the gateway has made of the hook that has ended.
    hooks.fire("PreToolUse", &of_prompt("p1"));
    hooks.fire("Stop", &of_prompt("p1"));
    let told = hooks.prompt(&of_prompt("p2")).expect("a message");
    assert!(told.contains("Stop the mill."), "{told}");
    hooks.fire("PreToolUse", &of_prompt("p2"));
    assert_eq!(hooks.prompt(&of_prompt("p3")), None);
}

#[test]
fn a_hook_ends_well_whatever_else_stands_on_its_command_line_and_whoever_reads_it() {
    let machines = Machines::start();
    let watcher = machines.claude_here();
    let key = machines.adopt("local", &watcher);
    let hooks = Hooks::on_gateway(&machines.gateway, &watcher);
    for more in ["--of-tomorrow", "tomorrow"] {
        let answer = run(hooks.command().arg(more));
        assert_eq!((answer.code, answer.stdout.as_str()), (0, ""), "{answer}");
    }
    // An answer that does not fit a pipe which nobody reads.
    let long = "m".repeat(100 * 1024);
    machines.gateway.ask(&["sessions", "send", &key, &long]);
    let mut child = hooks
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a hook");
    let event = json!({"session_id": watcher.thread(), "hook_event_name": "UserPromptSubmit"});
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(event.to_string().as_bytes())
        .expect("an event");
    drop(stdin);
    let end = until("a hook that nobody reads ends", || {
        child.try_wait().expect("a child")
    });
    assert_eq!(end.code(), Some(0));
    hooks.fire("PreToolUse", &json!({}));
    let told = hooks.prompt(&json!({})).expect("the message, once more");
    assert!(told.contains(&long));
}

#[test]
fn a_hook_of_a_program_that_is_not_known_says_which_there_are() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&tidings_tests::binaries().node);
    let answer = run(command.args(["hook", "claude", "--json"]));
    let error = answer.refused();
    assert_eq!(answer.code, 2, "{answer}");
    let said = format!("{} {}", error["message"], error["hint"]);
    assert!(
        said.contains("claude-code") && said.contains("codex"),
        "{answer}"
    );
}
