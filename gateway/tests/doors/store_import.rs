//! What is taken over from another program's session store.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::served::{connect, gateway};
use crate::store::{KEY, read, show, store, tidings};

/// Every file below a directory with its content, by path.
fn contents(dir: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).expect("listed") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let content = std::fs::read(&path).expect("read");
                found.insert(path, content);
            }
        }
    }
    found
}

#[tokio::test]
async fn the_sessions_of_another_state_directory_are_taken_over_once_and_it_is_only_read() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let (state_dir, source) = (
        scratch.path().join("state"),
        scratch.path().join("openclaw"),
    );
    let sessions = source.join("agents/main/sessions");
    std::fs::create_dir_all(&sessions).expect("directory");
    let entries = json!({
        "main": {"sessionId": "s1", "updatedAt": 5, "label": "old layout", "deliveryContext": {}},
        "agent:main:telegram:group:-1": {"sessionId": "s2", "updatedAt": 6},
        "agent:main:broken": {"updatedAt": 7},
    });
    for (name, content) in [
        ("sessions.json", entries.to_string()),
        (
            "s1.jsonl",
            "{\"type\":\"session\",\"id\":\"s1\"}\n".to_owned(),
        ),
        ("s2.jsonl.reset.2026-01-01T00-00-00.000Z", "{}\n".to_owned()),
        ("s1.jsonl.lock", "{}".to_owned()),
        ("notes.txt", "mine".to_owned()),
    ] {
        std::fs::write(sessions.join(name), content).expect("written");
    }
    let before = contents(&source);
    let import = async || {
        let source = source.to_str().expect("text");
        tidings(&state_dir, ["sessions", "import", source]).await
    };

    let (code, said) = import().await;

    assert_eq!(code, Some(0), "{said}");
    let of_main = json!({"agentId": "main", "entries": 2, "standing": 0, "files": 2, "bytes": 32});
    assert_eq!(said["agents"], json!([of_main]));
    let left_out = said["leftOut"].as_array().expect("a list");
    assert_eq!(left_out.len(), 3, "{said}");
    assert_eq!(contents(&source), before, "it is only read");
    let taken = read(&store(&state_dir)).expect("a store");
    assert_eq!(taken[KEY]["label"], "old layout");
    assert!(
        taken[KEY]["deliveryContext"].is_object(),
        "what is not known is kept"
    );
    let (code, said) = import().await;
    let of_main = json!({"agentId": "main", "entries": 0, "standing": 2, "files": 0, "bytes": 0});
    assert_eq!((code, &said["agents"]), (Some(0), &json!([of_main])));

    let gateway = gateway(&state_dir).await;
    let mut door = connect(&state_dir).await;
    let shown = show(&mut door).await;
    assert!(shown.entry.contains("old layout"), "{shown:?}");
    let (code, said) = import().await;
    assert_eq!(code, Some(69), "a live one is refused: {said}");
    drop(door);
    gateway.stop().await;
    for (wrong, exit) in [("nowhere", 66), ("state", 2), ("openclaw/agents", 65)] {
        let path = scratch.path().join(wrong);
        let path = path.to_str().expect("text");
        let (code, said) = tidings(&state_dir, ["sessions", "import", path]).await;
        assert_eq!(code, Some(exit), "{wrong}: {said}");
    }
}

#[tokio::test]
async fn what_an_import_does_not_take_is_named_and_nothing_is_followed_out_of_the_tree() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let at = |path: &str| scratch.path().join(path);
    let state_dir = at("state");
    let import = async || {
        let source = at("openclaw");
        tidings(
            &state_dir,
            ["sessions", "import", source.to_str().expect("text")],
        )
        .await
    };
    let sessions = at("openclaw/agents/main/sessions");
    std::fs::create_dir_all(&sessions).expect("directory");
    let write = |path: &str, content: &str| std::fs::write(at(path), content).expect("written");
    let main = "openclaw/agents/main/sessions";
    let entries = json!({KEY: {"sessionId": "mine", "updatedAt": 1}});
    write(&format!("{main}/sessions.json"), &entries.to_string());
    assert_eq!(import().await.0, Some(0));

    // The same key goes on with another conversation there.
    let entries = json!({
        KEY: {"sessionId": "theirs", "updatedAt": 2, "sessionFile": "own.jsonl"},
        "agent:main:new": {"sessionId": "new", "updatedAt": 3},
    });
    write(&format!("{main}/sessions.json"), &entries.to_string());
    for id in ["theirs", "own", "new"] {
        write(&format!("{main}/{id}.jsonl"), "{}\n");
    }
    for dir in [
        "elsewhere/sessions",
        "openclaw/agents/b",
        "openclaw/agents/main/sessions/d.jsonl",
    ] {
        std::fs::create_dir_all(at(dir)).expect("directory");
    }
    for file in ["elsewhere/sessions/canary.jsonl", "elsewhere/canary.jsonl"] {
        write(file, "canary\n");
    }
    for (target, link) in [
        ("elsewhere", "openclaw/agents/a"),
        ("elsewhere/sessions", "openclaw/agents/b/sessions"),
        (
            "elsewhere/canary.jsonl",
            "openclaw/agents/main/sessions/l.jsonl",
        ),
    ] {
        std::os::unix::fs::symlink(at(target), at(link)).expect("a link");
    }
    let made = Command::new("mkfifo")
        .arg(sessions.join("p.jsonl"))
        .status();
    assert!(made.expect("mkfifo").success());
    let name = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff.jsonl");
    let name: &std::ffi::OsStr = name;
    // Some file systems have no such names.
    let has_bytes = std::fs::write(sessions.join(name), "{}\n").is_ok();

    let (code, said) = import().await;

    assert_eq!(code, Some(0), "{said}");
    let left_out = said["leftOut"].as_array().expect("a list").iter();
    let left_out = left_out.map(|left| {
        let text = |name: &str| left[name].as_str().expect("text").to_owned();
        format!("{} {}: {}", text("agentId"), text("what"), text("reason"))
    });
    let other = "its session stands here already, with another conversation";
    let mut expected = vec![
        "a the agent: a link, which is not followed".to_owned(),
        "b the session directory: a link, which is not followed".to_owned(),
        "main d.jsonl: it is no regular file".to_owned(),
        "main l.jsonl: a link, which is not followed".to_owned(),
        "main p.jsonl: it is no regular file".to_owned(),
        format!("main own.jsonl: {other}"),
        format!("main theirs.jsonl: {other}"),
        format!("main entry {KEY}: a session of this key stands here already"),
    ];
    if has_bytes {
        expected.insert(
            5,
            "main \u{fffd}.jsonl: its name is no UTF-8 text".to_owned(),
        );
    }
    assert_eq!(left_out.collect::<Vec<_>>(), expected);
    let of_main = json!({"agentId": "main", "entries": 1, "standing": 1, "files": 1, "bytes": 3});
    assert_eq!(said["agents"], json!([of_main]));
    let taken = contents(&state_dir.join("agents"));
    let is_transcript = |path: &&PathBuf| path.extension().is_some_and(|end| end == "jsonl");
    let transcripts = taken.keys().filter(is_transcript);
    let transcripts: Vec<&str> = transcripts
        .filter_map(|path| path.file_name()?.to_str())
        .collect();
    assert_eq!(transcripts, ["new.jsonl"]);
    assert_eq!(
        read(&store(&state_dir)).expect("a store")[KEY]["sessionId"],
        "mine"
    );

    std::fs::rename(at("openclaw/agents"), at("agents")).expect("moved");
    std::os::unix::fs::symlink(at("agents"), at("openclaw/agents")).expect("a link");
    assert_eq!(
        import().await.0,
        Some(65),
        "nor is a link to the whole of it"
    );
}
