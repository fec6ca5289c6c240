//! `tidings backup`

use insta::assert_snapshot;
use tidings_protocol::session_api::{ApiError, BackedUp, ErrorType, Reply, Request};

use crate::fake::Fake;
use crate::run::{in_state_dir, tidings, whole, with};

fn backing_up() -> Fake {
    Fake::answering(Reply::Backup(BackedUp {
        file: "/var/backups/tidings.sqlite".to_owned(),
        bytes: 1_540_096,
    }))
}

#[test]
fn a_backup_says_where_it_is_and_how_large() {
    let fake = backing_up();
    let line = "backup /var/backups/tidings.sqlite";
    assert_snapshot!(with(&fake, line), @r#"
    exit 0
    --- stdout
    1.5 MB in /var/backups/tidings.sqlite
    --- stderr
    --- asked
    Backup(Backup { file: "/var/backups/tidings.sqlite" })
    "#);
    assert_snapshot!(with(&fake, &format!("{line} --json")), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"file":"/var/backups/tidings.sqlite","bytes":1540096}
    --- stderr
    --- asked
    Backup(Backup { file: "/var/backups/tidings.sqlite" })
    "#);
}

#[test]
fn a_relative_path_is_meant_from_where_the_command_runs() {
    let fake = backing_up();
    let here = tempfile::tempdir().expect("scratch directory");
    let here = here.path().canonicalize().expect("path");
    let mut command = tidings("backup copies/tidings.sqlite");
    command
        .current_dir(&here)
        .env("TIDINGS_STATE_DIR", fake.state_dir());
    let output = command.output().expect("run");
    assert!(output.status.success(), "{output:?}");
    let asked = fake.asked();
    let [Request::Backup(backup)] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    let expected = here.join("copies/tidings.sqlite");
    assert_eq!(backup.file, expected.display().to_string());
}

#[test]
fn a_path_that_no_answer_could_name_is_refused() {
    use std::os::unix::ffi::OsStringExt;

    let fake = backing_up();
    let mut command = tidings("backup");
    command
        .arg(std::ffi::OsString::from_vec(b"/tmp/\xff".to_vec()))
        .env("TIDINGS_STATE_DIR", fake.state_dir());
    let output = command.output().expect("run");
    assert_snapshot!(whole(&output, fake.state_dir()), @"
    exit 73
    --- stdout
    --- stderr
    error: /tmp/� cannot be written: its path is not valid UTF-8
    ");
    assert!(fake.asked().is_empty());
}

#[test]
fn a_file_that_is_there_already_stays() {
    let exists = ApiError::new(
        ErrorType::CannotCreate,
        "cannot write the backup /b: it exists already",
    );
    let fake = Fake::answering(Reply::Error(exists.with_hint("give another name")));
    assert_snapshot!(with(&fake, "backup /b"), @r#"
    exit 73
    --- stdout
    --- stderr
    error: cannot write the backup /b: it exists already
    hint: give another name
    --- asked
    Backup(Backup { file: "/b" })
    "#);
}

#[test]
fn a_backup_needs_a_gateway() {
    let empty = tempfile::tempdir().expect("scratch directory");
    assert_snapshot!(in_state_dir(empty.path(), "backup /b"), @"
    exit 69
    --- stdout
    --- stderr
    error: the gateway is not running: nothing answers at [STATE]/gateway.sock
    hint: tidings gateway run
    ");
}
