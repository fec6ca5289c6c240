//! The session store of a running gateway.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tidings_node::cli::Connection;
use tidings_protocol::session_api::{ErrorType, Request, SessionEntry, SessionsList};
use tokio::time::Instant;

use crate::served::{PATIENCE, Served, ask, body, connect, gateway, refused, session, speaker};

pub(crate) const KEY: &str = "agent:main:main";

pub(crate) fn store(state_dir: &Path) -> PathBuf {
    state_dir.join("agents/main/sessions/sessions.json")
}

pub(crate) async fn show(door: &mut Connection) -> SessionEntry {
    *body!(
        ask(door, Request::SessionShow(session(KEY))).await,
        SessionShow
    )
}

/// Asks again and again until `found` finds something.
pub(crate) async fn until<T>(
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

pub(crate) fn read(path: &Path) -> Option<Value> {
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

/// Runs a command with `--json`: its exit code, and what it said.
pub(crate) async fn tidings<const N: usize>(
    state_dir: &Path,
    arguments: [&str; N],
) -> (Option<i32>, Value) {
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
