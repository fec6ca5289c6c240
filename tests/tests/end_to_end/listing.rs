//! `catalog list`: what is shown of the threads on another machine, and what is not.

use std::collections::HashSet;
use std::fs;

use serde_json::{Value, json};
use tidings_tests::TwoMachines;
use tidings_tests::transcripts::{Claude, Codex, Transcript};

#[test]
fn threads_are_listed_with_the_programs_own_titles_and_prompts_only_where_asked() {
    let machines = TwoMachines::start();
    let mut titled = Claude::create(&machines.node.claude());
    titled.append("{\"type\":\"ai-title\",\"aiTitle\":\"The engine\\nexplained\"}\n");
    let untitled = Claude::create(&machines.node.claude());
    let codex = Codex::create(&machines.node.codex());
    let session = machines.adopt(&titled);

    let listed = machines.gateway.ask(&["catalog", "list"]);
    assert_eq!(listed["errors"], json!([]));
    assert_eq!(listed["threads"].as_array().map(Vec::len), Some(3));
    let row = thread(&listed, titled.thread());
    let node = machines.node.command(&["status"]).done()["nodeId"].clone();
    let host = format!("node:{}", node.as_str().expect("an id"));
    let expected = json!({
        "catalog": "claude",
        "host": host,
        "node": "laptop",
        "threadId": titled.thread(),
        "path": fs::canonicalize(titled.path()).expect("a path"),
        "cwd": "/home/ada/engine",
        "title": "The engine explained",
        "updatedAt": titled.written_at(),
        "sizeBytes": titled.len(),
        "adoptedAs": session.key,
    });
    assert_eq!(row, &expected);
    let sessions = machines
        .gateway
        .ask(&["sessions", "list", "--host", "laptop"]);
    assert_eq!(sessions["sessions"][0]["node"], "laptop", "{sessions}");
    for transcript in [&untitled as &dyn Transcript, &codex] {
        let row = thread(&listed, transcript.thread());
        assert_eq!(row["cwd"], "/home/ada/engine", "{row}");
        assert_eq!(row["sizeBytes"], transcript.len(), "{row}");
        assert!(
            row.get("title").is_none() && row.get("adoptedAs").is_none(),
            "{row}"
        );
    }

    let listed = machines
        .gateway
        .ask(&["catalog", "list", "--titles", "--host", "laptop"]);
    assert_eq!(
        thread(&listed, titled.thread())["title"],
        "The engine explained"
    );
    for transcript in [&untitled as &dyn Transcript, &codex] {
        let row = thread(&listed, transcript.thread());
        assert_eq!(row["title"], "What does the engine do?");
    }
    let only = machines
        .gateway
        .ask(&["catalog", "list", "--catalog", "codex"]);
    assert_eq!(only["threads"].as_array().map(Vec::len), Some(1), "{only}");
}

/// Many pages.
const MANY: usize = 5_000;

#[test]
fn a_large_home_is_listed_whole_and_once() {
    let machines = TwoMachines::start();
    let project = machines.node.claude().join("-home-ada-engine");
    fs::create_dir_all(&project).expect("a project");
    for n in 0..MANY {
        fs::write(project.join(format!("t{n}.jsonl")), "{}\n").expect("a transcript");
    }
    let listed = machines.gateway.ask(&["catalog", "list"]);
    assert_eq!(listed["errors"], json!([]));
    let threads = listed["threads"].as_array().expect("a list of threads");
    let ids: HashSet<_> = threads.iter().map(|thread| &thread["threadId"]).collect();
    assert_eq!((threads.len(), ids.len()), (MANY, MANY));
}

fn thread<'l>(listed: &'l Value, id: &str) -> &'l Value {
    let threads = listed["threads"].as_array().expect("a list of threads");
    let row = threads.iter().find(|thread| thread["threadId"] == id);
    row.unwrap_or_else(|| panic!("no {id} in {listed}"))
}
