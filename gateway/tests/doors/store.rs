//! The session store of a running gateway.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use tidings_gateway::config::{Config, MaintenanceMode};
use tidings_gateway::{Gateway, GatewayOptions};
use tidings_node::cli::Connection;
use tidings_node::clock::SystemClock;
use tidings_protocol::session_api::{
    CronRunBegin, ErrorType, Request, RunEnd, RunFinished, SessionEntry, SessionsList,
};
use tokio::time::Instant;

use crate::served::{
    PATIENCE, Served, ask, body, connect, gateway, options, refused, session, speaker,
};

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

#[tokio::test]
async fn an_entry_with_a_label_beyond_a_frame_is_listed_and_the_error_for_itself_names_the_limit() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let state_dir = scratch.path().join("state");
    let path = store(&state_dir);
    let gateway = gateway(&state_dir).await;
    let mut door = connect(&state_dir).await;
    ask(&mut door, Request::TurnBegin(speaker(KEY))).await;
    let mut entries = until(&mut door, "a projection", |_| read(&path)).await;
    entries[KEY]["label"] = json!("ü".repeat(270_000));
    std::fs::write(&path, entries.to_string()).expect("written");

    let began = Instant::now();
    let error = loop {
        if let Err(error) = door.ask(&Request::SessionShow(session(KEY))).await {
            break error;
        }
        assert!(began.elapsed() < PATIENCE, "the edit");
    };

    assert_eq!(error.error_type, ErrorType::InvalidData);
    assert!(
        error.message.contains("over the limit of 262144"),
        "{error}"
    );
    assert!(error.hint.is_some(), "{error}");
    let list = Request::SessionsList(SessionsList::default());
    let sessions = body!(ask(&mut door, list).await, SessionsList).sessions;
    let label = format!("{}…", "ü".repeat(199));
    assert_eq!(sessions[0].label, Some(label), "on the same connection");
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
    // By itself it removes nothing, whenever it looks: it is asked here.
    let mut config = Config::default();
    config.session.maintenance.mode = MaintenanceMode::Warn;
    let options = GatewayOptions {
        config: tokio::sync::watch::channel(Arc::new(config)).1,
        ..options(Arc::new(SystemClock::new()), &state_dir, None)
    };
    let gateway = Gateway::start(options).await.expect("gateway");
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
