//! The hook that waits in the background while Claude Code is idle: what it wakes Claude with,
//! that nothing is told twice for it, and that none of it stays behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};
use tidings_tests::transcripts::{Claude, Codex, Transcript};
use tidings_tests::{Hooks, Waiter, counted_turns, notice, until};

use crate::two_machines::Machines;

/// What an idle Claude is woken with.
fn news(target: &str, version: u64) -> String {
    format!("News by tidings, no error: {}\n", notice(target, version))
}

/// What Claude Code hands to the hooks of a prompt when that is what woke it.
fn as_prompt(news: &str) -> Value {
    let prompt = format!(
        "<task-notification>\n<summary>Stop hook</summary>\nStop hook blocking error from \
         command \"tidings hook claude-code --rewake\": {news}</task-notification>"
    );
    json!({"prompt_id": "woken", "prompt": prompt})
}

/// An idle session, and one that it watches, into which a person can speak.
struct Idle<'a> {
    machines: &'a Machines,
    hooks: Hooks,
    key: String,
    target: Claude,
    target_key: String,
    version: u64,
}

impl<'a> Idle<'a> {
    fn new(machines: &'a Machines, (hooks, key): (Hooks, String)) -> Self {
        let target = machines.claude_here();
        let target_key = machines.adopt("local", &target);
        Self {
            version: machines.watch(&key, &target_key),
            machines,
            hooks,
            key,
            target,
            target_key,
        }
    }

    fn here(machines: &'a Machines) -> Self {
        let claude = machines.claude_here();
        let key = machines.adopt("local", &claude);
        Self::new(
            machines,
            (Hooks::on_gateway(&machines.gateway, &claude), key),
        )
    }

    fn on_the_laptop(machines: &'a Machines) -> Self {
        let claude = Claude::create(&machines.laptop.claude());
        let key = machines.adopt("laptop", &claude);
        Self::new(machines, (Hooks::on_node(&machines.laptop, &claude), key))
    }

    /// The turn ends, and a hook waits.
    fn rests(&self) -> Waiter {
        self.hooks.fire("Stop", &json!({"prompt_id": "before"}));
        let waiter = self.hooks.wait();
        until("the hook waits", || {
            (self.hooks.waiter() == Some(waiter.pid())).then_some(())
        });
        waiter
    }

    fn a_person_speaks(&mut self) {
        self.target.human("Stop the mill.");
    }

    /// The version from which the next notice tells.
    fn version_now(&self) -> u64 {
        let show = ["sessions", "show", &self.target_key];
        let shown = self.machines.gateway.ask(&show);
        shown["stateVersion"].as_u64().expect("a version")
    }

    fn pending(&self) -> usize {
        self.machines.pending(&self.key)
    }
}

/// Whichever way Claude Code goes on after it was woken, it is told once.
fn is_woken_and_told_once(mut idle: Idle<'_>) {
    let waiter = idle.rests();
    idle.a_person_speaks();
    let (code, said) = waiter.ended();
    assert_eq!(
        (code, &*said),
        (Some(2), &*news(&idle.target_key, idle.version))
    );
    assert_eq!(idle.hooks.waiter(), None);
    // What woke it is its prompt, which its hooks are told of: there is nothing to add.
    assert_eq!(idle.pending(), 1, "nothing shows yet that it was read");
    assert_eq!(idle.hooks.prompt(&as_prompt(&said)), None);
    assert_eq!(idle.pending(), 1);
    idle.hooks
        .fire("PreToolUse", &json!({"prompt_id": "woken"}));
    assert_eq!(idle.pending(), 0);

    // Or no hook is told of a prompt, as in the middle of a turn.
    let waiter = idle.rests();
    let version = idle.version_now();
    idle.a_person_speaks();
    assert_eq!(waiter.ended(), (Some(2), news(&idle.target_key, version)));
    idle.hooks
        .fire("PostToolUse", &json!({"prompt_id": "other"}));
    assert_eq!(idle.pending(), 0);

    // Or what woke it was lost: the next prompt has the same words.
    let waiter = idle.rests();
    let version = idle.version_now();
    idle.a_person_speaks();
    assert_eq!(waiter.ended(), (Some(2), news(&idle.target_key, version)));
    let told = idle
        .hooks
        .prompt(&json!({"prompt_id": "typed", "prompt": "Go on."}));
    assert_eq!(told, Some(notice(&idle.target_key, version)));
    idle.hooks.fire("Stop", &json!({"prompt_id": "typed"}));
    assert_eq!(idle.pending(), 0);

    // Nothing wakes it for what it was told.
    let waiter = idle.rests();
    idle.hooks.fire("SessionEnd", &json!({"reason": "logout"}));
    assert_eq!(waiter.ended(), (Some(0), String::new()));
}

#[test]
fn an_idle_session_at_the_gateway_is_woken_for_news_and_told_once() {
    let machines = Machines::start();
    is_woken_and_told_once(Idle::here(&machines));
}

#[test]
fn an_idle_session_on_a_laptop_is_woken_for_news_and_told_once() {
    let machines = Machines::start();
    is_woken_and_told_once(Idle::on_the_laptop(&machines));
}

#[test]
fn news_that_came_during_the_turn_wake_at_its_end_and_messages_wait_for_a_prompt() {
    let machines = Machines::start();
    let mut idle = Idle::here(&machines);
    let gateway = &machines.gateway;
    idle.hooks.prompt(&json!({"prompt_id": "p"}));
    gateway.ask(&["sessions", "send", &idle.key, "Please rebase."]);
    let waiter = idle.rests();
    let mut follow = gateway.follow(idle.version);
    idle.a_person_speaks();
    follow.wait_for_turns(&idle.target_key, 1);
    let (code, said) = waiter.ended();
    assert_eq!(
        (code, &*said),
        (Some(2), &*news(&idle.target_key, idle.version))
    );
    let told = idle.hooks.prompt(&as_prompt(&said)).expect("the message");
    assert!(
        told.starts_with("Message ") && told.ends_with("Please rebase."),
        "{told}"
    );
    idle.hooks
        .fire("PreToolUse", &json!({"prompt_id": "woken"}));
    assert_eq!(idle.pending(), 0);

    idle.a_person_speaks();
    follow.wait_for_turns(&idle.target_key, 2);
    let (code, _) = idle.rests().ended();
    assert_eq!(code, Some(2), "it was there before the hook waited");
}

#[test]
fn one_hook_waits_for_a_conversation_and_none_once_that_goes_on() {
    let machines = Machines::start();
    let mut idle = Idle::here(&machines);
    let quiet = (Some(0), String::new());
    let first = idle.rests();
    let second = idle.rests();
    assert_eq!(first.ended(), quiet, "another has taken its place");
    assert_eq!(idle.hooks.waiter(), Some(second.pid()));
    assert_eq!(idle.hooks.prompt(&json!({"prompt_id": "typed"})), None);
    assert_eq!(second.ended(), quiet, "the conversation goes on");
    let third = idle.rests();
    // The program goes on in another conversation.
    idle.hooks
        .fire("SessionStart", &json!({"source": "startup"}));
    let other = idle
        .hooks
        .gone_on_in("7e57da7a-0000-4000-8000-00000000c1ec");
    other.fire("SessionStart", &json!({"source": "resume"}));
    assert_eq!(third.ended(), quiet, "nobody is in this conversation");
    idle.a_person_speaks();
    let turns = || counted_turns(&machines.gateway, &idle.target_key);
    until("it is recorded", || (turns().len() == 1).then_some(()));
    assert_eq!(idle.pending(), 1, "it waits for the next prompt");
}

#[test]
fn a_hook_that_waits_ends_with_the_program_that_it_waits_for() {
    let machines = Machines::start();
    let idle = Idle::here(&machines);
    let scratch = machines.gateway.scratch();
    // A program that is no shell by its name, and what it starts its hooks by.
    let claude = scratch.folder("bin").join("claude");
    fs::copy("/bin/sh", &claude).expect("a program");
    fs::set_permissions(&claude, fs::Permissions::from_mode(0o755)).expect("a program");
    let input = scratch.path().join("stop.json");
    let event = json!({"session_id": idle.hooks.session(), "hook_event_name": "Stop"});
    fs::write(&input, event.to_string()).expect("an event");
    let hook = idle.hooks.command();
    let words = std::iter::once(hook.get_program()).chain(hook.get_args());
    let words: Vec<&str> = words.filter_map(|word| word.to_str()).collect();
    let line = format!("{} --rewake < {} & wait", words.join(" "), input.display());
    let mut program = scratch.command(&claude);
    let program = program.args(["-c", &line]).stderr(Stdio::null());
    let mut program = program.spawn().expect("a program");
    let waiter = until("the hook waits", || idle.hooks.waiter());
    program.kill().expect("it runs");
    program.wait().expect("it has ended");
    let runs = || fs::exists(format!("/proc/{waiter}")).expect("a process list");
    until("the hook ends", || (!runs()).then_some(()));
    assert_eq!(idle.hooks.waiter(), None);
}

#[test]
fn a_hook_that_waits_outlives_its_gateway_and_tells_what_came_after() {
    let mut machines = Machines::start();
    let idle = Idle::on_the_laptop(&machines);
    let waiter = idle.rests();
    let Idle {
        mut target,
        target_key,
        version,
        ..
    } = idle;
    machines.gateway.kill();
    machines.gateway.restart();
    target.human("Stop the mill.");
    assert_eq!(waiter.ended(), (Some(2), news(&target_key, version)));
}

#[test]
fn nobody_waits_for_a_conversation_that_is_no_session_or_that_a_program_leads() {
    let machines = Machines::start();
    let quiet = (Some(0), String::new());
    let claude = machines.claude_here();
    let hooks = Hooks::on_gateway(&machines.gateway, &claude);
    assert_eq!(hooks.wait().ended(), quiet);
    assert_eq!(hooks.waiter(), None);
    let there = Claude::create(&machines.laptop.claude());
    let there = Hooks::on_node(&machines.laptop, &there);
    assert_eq!(there.wait().ended(), quiet);
    let sessions = machines.gateway.ask(&["sessions", "list"]);
    assert_eq!(sessions["sessions"], json!([]));

    let idle = Idle::here(&machines);
    let mut led = idle.hooks.command();
    led.arg("--rewake").env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli");
    assert_eq!(idle.hooks.wait_by(&mut led).ended(), quiet);
    // Codex has no such hooks.
    let codex = Codex::create(&machines.laptop.codex());
    machines.adopt("laptop", &codex);
    let codex = Hooks::on_node(&machines.laptop, &codex);
    assert_eq!(codex.wait().ended(), quiet);
}
