//! A file system that does not answer holds up nothing but what is on it.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use tidings_tests::transcripts::{Claude, Codex, Transcript, Turn};
use tidings_tests::{
    Gateway, Node, Scratch, ServedFile, TwoMachines, counted_turns, until, until_within,
};

/// A sweep notices at the latest after a minute, and 45 s later it has waited long enough;
/// the rest is for a busy machine.
const UNTIL_HUNG: Duration = Duration::from_mins(4);

#[test]
fn a_root_that_does_not_answer_is_shown_and_read_again_when_it_does() {
    let gateway = Gateway::start(&Scratch::new());
    let mut node = Node::join(&gateway, "laptop");
    // Written elsewhere: the root itself is served by this test.
    let mut claude = Claude::create(&gateway.scratch().folder("elsewhere"));
    let name = claude.path().file_name().expect("a name").to_owned();
    let name = name.to_str().expect("a name").to_owned();
    let content = fs::read(claude.path()).expect("a transcript");
    let served = ServedFile::mount(&node.claude(), "-home-ada-engine", &name, content);
    let Some(served) = served else {
        eprintln!("skipped: this machine lets us serve no file system");
        return;
    };
    let mut codex = Codex::create(&node.codex());
    node.run();
    let machines = TwoMachines { gateway, node };
    let on_served = machines.adopt(&claude);
    let beside = machines.adopt(&codex);

    served.hold();
    let line = claude.line("Stop the mill.");
    let turn = Turn {
        file: name,
        start: claude.len(),
        end: claude.len() + line.len() as u64,
    };
    served.append(format!("{line}\n").as_bytes());
    let mut turns = Vec::new();
    let mut follow = machines.gateway.follow(beside.version);
    let says = |document: &Value| document.to_string().contains("has not answered for");
    until_within(UNTIL_HUNG, "that the root hangs", || {
        // Whoever is beside it is told of as ever.
        turns.push(codex.human("And here?"));
        follow.wait_for_turns(&beside.key, turns.len());
        let own = machines.node.command(&["status"]).done();
        says(&own["warnings"]).then_some(())
    });
    let status = until("what is said of the thread", || {
        let status = machines.gateway.ask(&["status"]);
        let served = link_of(&status, &on_served.key);
        let is_told = says(&status["nodes"]) && served["lastOutcome"] == "inconclusive";
        is_told.then_some(status)
    });
    assert_eq!(link_of(&status, &beside.key)["lastOutcome"], "activity");
    let doctor = machines.gateway.run(&["doctor"]);
    assert!(says(&doctor.json()["findings"]), "{doctor}");

    served.let_go();
    let mut on_served_follow = machines.gateway.follow(on_served.version);
    on_served_follow.wait_for_turns(&on_served.key, 1);
    assert_eq!(counted_turns(&machines.gateway, &on_served.key), [turn]);
    assert_eq!(counted_turns(&machines.gateway, &beside.key), turns);
    until("the end of the warning", || {
        let own = machines.node.command(&["status"]).done();
        (!says(&own["warnings"])).then_some(())
    });
}

#[test]
fn an_agent_stops_though_a_root_does_not_answer() {
    let gateway = Gateway::start(&Scratch::new());
    let mut node = Node::join(&gateway, "laptop");
    let served = ServedFile::mount(&node.claude(), "-home-ada-engine", "a.jsonl", Vec::new());
    let Some(served) = served else {
        eprintln!("skipped: this machine lets us serve no file system");
        return;
    };
    served.hold();
    node.run();
    assert_eq!(node.stop(), 0);
}

fn link_of<'s>(status: &'s Value, session: &str) -> &'s Value {
    let links = status["links"].as_array().expect("a list of links");
    let link = links.iter().find(|link| link["sessionKey"] == session);
    link.expect("a link")
}
