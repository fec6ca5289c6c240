//! The session store of a running gateway.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tidings_node::cli::Connection;
use tidings_protocol::session_api::{
    CronRunBegin, ErrorType, Request, RunEnd, RunFinished, SessionEntry, SessionsList,
};
use tokio::time::Instant;

use crate::served::{PATIENCE, Served, ask, body, connect, gateway, refused, session, speaker};

const KEY: &str = "agent:main:main";

fn store(state_dir: &Path) -> PathBuf {
    state_dir.join("agents/main/sessions/sessions.json")
}

async fn show(door: &mut Connection) -> SessionEntry {
    *body!(
        ask(door, Request::SessionShow(session(KEY))).await,
        SessionShow
    )
}

/// Asks again and again until `found` finds something.
async fn until<T>(
    door: &mut Connection,
    what: &str,
    mut found: impl FnMut(&SessionEntry) -> Option<T>,
) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = found(&show(door).await) {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what}");
    }
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

#[tokio::test]
async fn an_edit_by_hand_is_seen_while_the_gateway_runs_and_a_broken_file_is_set_aside() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let state_dir = scratch.path().join("state");
    let path = store(&state_dir);
    let gateway = gateway(&state_dir).await;
    let mut door = connect(&state_dir).await;
    ask(&mut door, Request::TurnBegin(speaker(KEY))).await;
    let mut entries = until(&mut door, "a projection", |_| read(&path)).await;

    entries[KEY]["label"] = json!("by hand");
    std::fs::write(&path, entries.to_string()).expect("written");

    until(&mut door, "the edit", |entry| {
        entry.entry.contains("by hand").then_some(())
    })
    .await;
    std::fs::write(&path, "{").expect("written");
    let whole = until(&mut door, "the projection again", |_| read(&path)).await;
    assert_eq!(whole[KEY]["label"], "by hand");
    let said = doctor(&state_dir).await;
    let set_aside = said
        .lines()
        .find(|line| line.contains("sessions.json.rejected-"));
    assert!(
        set_aside.is_some_and(|line| line.starts_with("warning: ")),
        "{said}"
    );
    drop(door);
    gateway.stop().await;
}

async fn doctor(state_dir: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidings"));
    command
        .args(["doctor", "--state-dir"])
        .arg(state_dir)
        .env_clear();
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.expect("ends").expect("runs");
    String::from_utf8(output.stdout).expect("text")
}

#[tokio::test]
async fn sessions_are_archived_and_pinned_and_that_taken_back() {
    let served = Served::start();
    let mut door = served.connect().await;
    for key in [KEY, "agent:main:other"] {
        ask(&mut door, Request::TurnBegin(speaker(key))).await;
    }
    let marked = async |door: &mut Connection, request: Request| {
        let entry = *body!(ask(door, request).await, SessionShow);
        (entry.archived, entry.pinned)
    };
    let listed = async |door: &mut Connection, archived| {
        let list = SessionsList {
            archived,
            ..SessionsList::default()
        };
        let sessions = body!(ask(door, Request::SessionsList(list)).await, SessionsList);
        let keys = sessions
            .sessions
            .iter()
            .map(|row| row.session_key.to_string());
        keys.collect::<Vec<_>>()
    };
    assert_eq!(
        marked(&mut door, Request::SessionPin(session(KEY))).await,
        (false, true)
    );
    assert_eq!(listed(&mut door, false).await, [KEY, "agent:main:other"]);
    assert_eq!(
        marked(&mut door, Request::SessionArchive(session(KEY))).await,
        (true, false)
    );
    assert_eq!(listed(&mut door, false).await, ["agent:main:other"]);
    assert_eq!(listed(&mut door, true).await, [KEY]);
    let error = refused(&mut door, Request::SessionPin(session(KEY))).await;
    assert_eq!(error.error_type, ErrorType::InvalidRequest);
    assert_eq!(
        marked(&mut door, Request::SessionUnarchive(session(KEY))).await,
        (false, false)
    );
    assert_eq!(
        marked(&mut door, Request::SessionUnpin(session(KEY))).await,
        (false, false)
    );
    let error = refused(
        &mut door,
        Request::SessionArchive(session("agent:main:none")),
    )
    .await;
    assert_eq!(error.error_type, ErrorType::NotFound);
}

#[tokio::test]
async fn a_store_is_looked_after_by_the_running_gateway_and_by_its_path_once_that_has_stopped() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let state_dir = scratch.path().join("state");
    let path = store(&state_dir);
    let gateway = gateway(&state_dir).await;
    let mut door = connect(&state_dir).await;
    ask(&mut door, Request::TurnBegin(speaker(KEY))).await;
    ask(&mut door, Request::TurnEnd(speaker(KEY))).await;
    let mut entries = until(&mut door, "a projection", |_| read(&path)).await;
    entries["agent:main:old"] = json!({"sessionId": "old", "updatedAt": 1});
    entries["agent:main:older"] = json!({"sessionId": "older", "updatedAt": 1});
    std::fs::write(path.with_file_name("old.jsonl"), "{}\n").expect("written");
    std::fs::write(&path, entries.to_string()).expect("written");
    until(&mut door, "the edit", |_| {
        let shown = read(&path)?;
        // Written by the gateway once more, one member a line.
        let lines = std::fs::read_to_string(&path).ok()?.lines().count();
        (shown.get("agent:main:old").is_some() && lines > 3).then_some(())
    })
    .await;
    let by_path = async |doing: &str| {
        let store = path.to_str().expect("text");
        tidings(&state_dir, ["sessions", "cleanup", doing, "--store", store]).await
    };
    let (code, said) = by_path("--enforce").await;
    assert_eq!(code, Some(69), "a live one is refused: {said}");
    let (code, said) = tidings(&state_dir, ["sessions", "cleanup", "--dry-run"]).await;
    assert_eq!(
        (code, said["dryRun"].as_bool()),
        (Some(0), Some(true)),
        "{said}"
    );
    assert_eq!(
        (&said["beforeCount"], &said["afterCount"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(said["freedBytes"], 3, "{said}");
    drop(door);
    gateway.stop().await;

    let (code, said) = by_path("--enforce").await;
    assert_eq!((code, &said["pruned"]), (Some(0), &json!(2)), "{said}");
    assert!(!path.with_file_name("old.jsonl").exists());
    let left = read(&path).expect("a store");
    assert_eq!(
        left.as_object().map(serde_json::Map::len),
        Some(1),
        "{left}"
    );
    let (code, said) = by_path("--enforce").await;
    assert_eq!((code, &said["actions"]), (Some(0), &json!([])), "{said}");
}

/// Runs a command with `--json`: its exit code, and what it said.
async fn tidings<const N: usize>(state_dir: &Path, arguments: [&str; N]) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidings"));
    command
        .args(arguments)
        .args(["--json", "--state-dir"])
        .arg(state_dir)
        .env_clear();
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.expect("ends").expect("runs");
    let said = serde_json::from_slice(&output.stdout).expect("JSON");
    (output.status.code(), said)
}

#[tokio::test]
async fn a_run_of_a_cron_job_has_a_session_and_a_forced_one_archives_the_conversation_before() {
    let served = Served::start();
    let mut door = served.connect().await;
    let begin = |force| {
        Request::CronRunBegin(CronRunBegin {
            job_id: " Nightly ".to_owned(),
            force,
            agent: None,
        })
    };
    let first = body!(ask(&mut door, begin(false)).await, CronRunBegin);
    assert_eq!(
        (first.session_key.as_str(), first.is_new),
        ("cron:nightly", true)
    );
    let dir = served.dir.path().join("agents/main/sessions");
    std::fs::create_dir_all(&dir).expect("directory");
    let transcript = dir.join(format!("{}.jsonl", first.session_id));
    std::fs::write(&transcript, "{}\n").expect("written");
    let second = body!(ask(&mut door, begin(false)).await, CronRunBegin);
    assert_eq!(
        (&second.session_id, second.is_new),
        (&first.session_id, false)
    );
    assert!(transcript.exists());
    let finished = RunFinished {
        session_key: first.session_key.clone(),
        agent: None,
        outcome: RunEnd::Timeout,
        result: None,
        run_id: Some(second.run_id.to_string()),
        caller: None,
    };
    ask(&mut door, Request::RunFinished(finished)).await;
    let third = body!(ask(&mut door, begin(true)).await, CronRunBegin);
    let (code, said) = tidings(served.dir.path(), ["sessions", "runs", "nightly"]).await;
    let outcomes: Vec<_> = (0..3).map(|n| said["runs"][n]["outcome"].clone()).collect();
    assert_eq!(
        (code, outcomes),
        (
            Some(0),
            vec![Value::Null, json!("timeout"), json!("abandoned")]
        ),
        "{said}"
    );
    assert!(third.is_new && third.session_id != first.session_id);
    assert!(!transcript.exists());
    let archived = std::fs::read_dir(&dir)
        .expect("listed")
        .next()
        .expect("one")
        .expect("entry");
    let archived = archived.file_name().into_string().expect("text");
    assert!(archived.starts_with(&format!("{}.jsonl.reset.", first.session_id)));
    for job_id in ["", " ", "a b"] {
        let bad = Request::CronRunBegin(CronRunBegin {
            job_id: job_id.to_owned(),
            force: false,
            agent: None,
        });
        let error = refused(&mut door, bad).await;
        assert_eq!(error.error_type, ErrorType::InvalidRequest, "{error}");
    }
}

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
