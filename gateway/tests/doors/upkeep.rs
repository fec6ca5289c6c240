//! Backups, and what a check finds.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tidings_gateway::state::{DATABASE_FILE, State, StateOptions};
use tidings_node::clock::SystemClock;
use tidings_protocol::session_api::{Backup, ErrorType, Request, Severity};

use crate::nodes::join;
use crate::served::{Served, ask, body, connect, gateway, gateway_with_local_node, refused};
use crate::served::{speak, watch};

fn to(file: impl AsRef<Path>) -> Request {
    Request::Backup(Backup {
        file: file.as_ref().to_str().expect("text").to_owned(),
    })
}

#[tokio::test]
async fn a_backup_is_a_whole_database_that_only_its_owner_may_read() {
    let served = Served::start();
    let mut door = served.connect().await;
    watch(&mut door, "agent:main:main", "agent:ops:main").await;
    speak(&mut door, "agent:ops:main").await;
    let other = tempfile::tempdir().expect("scratch directory");
    let file = other.path().join(DATABASE_FILE);

    let backed_up = body!(ask(&mut door, to(&file)).await, Backup);

    let metadata = fs::metadata(&file).expect("there");
    assert_eq!(metadata.len(), backed_up.bytes);
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let options = StateOptions {
        directory: other.path().to_owned(),
        clock: Arc::new(SystemClock::new()),
    };
    let copy = State::open(&options).expect("a database");
    let expected = served.state.counts().await.expect("counts");
    assert_eq!(copy.counts().await.expect("counts"), expected);
    assert_eq!(expected.notices, 1);
    copy.close().await;
}

#[tokio::test]
async fn a_backup_takes_the_place_of_nothing() {
    let served = Served::start();
    let mut door = served.connect().await;
    let other = tempfile::tempdir().expect("scratch directory");
    let mine = other.path().join("mine");
    fs::write(&mine, "mine").expect("write");
    let dangling = other.path().join("dangling");
    std::os::unix::fs::symlink("nowhere", &dangling).expect("link");
    for (file, error_type) in [
        (mine.clone(), ErrorType::CannotCreate),
        (dangling, ErrorType::CannotCreate),
        (other.path().to_owned(), ErrorType::CannotCreate),
        (other.path().join("none/backup"), ErrorType::CannotCreate),
        (mine.join("backup"), ErrorType::CannotCreate),
        ("backup".into(), ErrorType::InvalidRequest),
        ("".into(), ErrorType::InvalidRequest),
    ] {
        let error = refused(&mut door, to(&file)).await;
        assert_eq!(error.error_type, error_type, "{file:?}: {error}");
    }
    assert_eq!(fs::read_to_string(&mine).expect("read"), "mine");
    let left: Vec<_> = fs::read_dir(other.path()).expect("list").collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[tokio::test]
async fn a_gateway_with_its_own_node_has_nothing_wrong_and_one_without_a_joined_node_has() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let (state_dir, root) = (scratch.path().join("state"), scratch.path().join("root"));
    fs::create_dir(&root).expect("root");
    let gateway = gateway_with_local_node(&state_dir, &root).await;
    let (code, said) = doctor(&state_dir).await;
    assert_eq!((code, said.as_str()), (Some(0), ""));

    join(&gateway, &scratch.path().join("node"), "laptop").await;

    let mut door = connect(&state_dir).await;
    let findings = body!(ask(&mut door, Request::Check {}).await, Check).findings;
    let [finding] = findings.as_slice() else {
        panic!("{findings:?}");
    };
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.what.starts_with("laptop is offline"), "{finding:?}");
    let (code, said) = doctor(&state_dir).await;
    assert_eq!(code, Some(1));
    assert!(said.starts_with("warning: laptop is offline"), "{said}");
    drop(door);
    gateway.stop().await;
}

#[tokio::test]
async fn a_stopped_gateway_is_found_together_with_what_its_files_say() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let state_dir = scratch.path().join("state");
    gateway(&state_dir).await.stop().await;
    let key = state_dir.join("authority/ca.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("mode");

    let (code, said) = doctor(&state_dir).await;

    assert_eq!(code, Some(1));
    let errors: Vec<&str> = said.lines().filter(|l| !l.starts_with("hint: ")).collect();
    let [first, second] = errors.as_slice() else {
        panic!("{said}");
    };
    assert!(first.contains("authority/ca.key: its permissions are 0644"));
    assert!(second.starts_with("error: the gateway is not running"));
}

/// The exit code and the stdout of `tidings doctor`.
async fn doctor(state_dir: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidings"));
    command
        .args(["doctor", "--state-dir"])
        .arg(state_dir)
        .env_clear();
    let output = tokio::task::spawn_blocking(move || command.output());
    let output = output.await.expect("ends").expect("runs");
    let said = String::from_utf8(output.stdout).expect("text");
    (output.status.code(), said)
}
