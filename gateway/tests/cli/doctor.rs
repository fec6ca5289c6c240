//! `tidings doctor`

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use insta::assert_snapshot;
use tidings_protocol::session_api::{ApiError, ErrorType, Finding, Findings, Reply, Severity};

use crate::fake::Fake;
use crate::run::{alone, in_state_dir, with};

fn finding(severity: Severity, what: &str, hint: &str) -> Finding {
    Finding {
        severity,
        what: what.to_owned(),
        hint: hint.to_owned(),
    }
}

fn finding_these(findings: Vec<Finding>) -> Fake {
    answering(Reply::Check(Findings {
        findings,
        http: None,
    }))
}

/// A gateway whose state directory is its owner's alone, as a real one's is.
fn answering(reply: Reply) -> Fake {
    let fake = Fake::answering(reply);
    fs::write(fake.state_dir().join("gateway.lock"), "").expect("lock");
    set_mode(fake.state_dir(), 0o700);
    fake
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("mode");
}

fn mode(path: &Path) -> u32 {
    let metadata = fs::metadata(path).expect("there");
    metadata.permissions().mode() & 0o777
}

#[test]
fn nothing_found_is_exit_code_0() {
    let fake = finding_these(vec![]);
    assert_snapshot!(with(&fake, "doctor"), @"
    exit 0
    --- stdout
    --- stderr
    nothing is wrong
    --- asked
    Check
    ");
    assert_snapshot!(with(&fake, "doctor --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"findings":[]}
    --- stderr
    --- asked
    Check
    "#);
}

#[test]
fn where_http_is_answered_is_said_beside_what_is_wrong() {
    let fake = answering(Reply::Check(Findings {
        findings: vec![],
        http: Some("http://127.0.0.1:7431".to_owned()),
    }));
    assert_snapshot!(with(&fake, "doctor"), @"
    exit 0
    --- stdout
    --- stderr
    HTTP is answered at http://127.0.0.1:7431
    nothing is wrong
    --- asked
    Check
    ");
    assert_snapshot!(with(&fake, "doctor --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"findings":[],"http":"http://127.0.0.1:7431"}
    --- stderr
    --- asked
    Check
    "#);
}

#[test]
fn each_finding_has_the_command_that_mends_it() {
    let fake = finding_these(vec![
        finding(
            Severity::Error,
            "the gateway reads only: /s/state.sqlite cannot be written: the disk is full",
            "free some space; the gateway goes on by itself",
        ),
        finding(
            Severity::Warning,
            "laptop is offline",
            "tidings-node run on that machine",
        ),
    ]);
    assert_snapshot!(with(&fake, "doctor"), @"
    exit 1
    --- stdout
    error: the gateway reads only: /s/state.sqlite cannot be written: the disk is full
    hint: free some space; the gateway goes on by itself
    warning: laptop is offline
    hint: tidings-node run on that machine
    --- stderr
    --- asked
    Check
    ");
    assert_snapshot!(with(&fake, "doctor --json"), @r#"
    exit 1
    --- stdout
    {"schemaVersion":1,"findings":[{"severity":"error","what":"the gateway reads only: /s/state.sqlite cannot be written: the disk is full","hint":"free some space; the gateway goes on by itself"},{"severity":"warning","what":"laptop is offline","hint":"tidings-node run on that machine"}]}
    --- stderr
    --- asked
    Check
    "#);
}

#[test]
fn without_a_gateway_the_files_speak() {
    assert_snapshot!(alone("doctor --state-dir /nonexistent"), @"
    exit 1
    --- stdout
    error: the gateway is not running: nothing answers at /nonexistent/gateway.sock
    hint: tidings gateway run --state-dir /nonexistent
    warning: there is no state directory /nonexistent
    hint: tidings gateway run makes it; or name another with --state-dir
    --- stderr
    ");
    let dir = tempfile::tempdir().expect("scratch directory");
    set_mode(dir.path(), 0o700);
    assert_snapshot!(in_state_dir(dir.path(), "doctor"), @"
    exit 1
    --- stdout
    error: the gateway is not running: nothing answers at [STATE]/gateway.sock
    hint: tidings gateway run
    warning: there is no database in [STATE]
    hint: tidings gateway run makes one; or put a backup in its place
    --- stderr
    ");
    fs::write(dir.path().join("state.sqlite"), "").expect("database");
    set_mode(&dir.path().join("state.sqlite"), 0o600);
    assert_snapshot!(in_state_dir(dir.path(), "doctor --json"), @r#"
    exit 1
    --- stdout
    {"schemaVersion":1,"findings":[{"severity":"error","what":"the gateway is not running: nothing answers at [STATE]/gateway.sock","hint":"tidings gateway run"}]}
    --- stderr
    "#);
}

#[test]
fn without_a_gateway_a_damaged_database_is_found_and_left_as_it_is() {
    let scratch = tempfile::tempdir().expect("scratch");
    let database = scratch.path().join("state.sqlite");
    fs::write(
        &database,
        "no database at all, but long enough to look like one".repeat(100),
    )
    .expect("file");
    set_mode(&database, 0o600);
    set_mode(scratch.path(), 0o700);
    let before = fs::read(&database).expect("read");
    let output = in_state_dir(scratch.path(), "doctor");
    assert!(output.starts_with("exit 1\n"), "{output}");
    assert!(output.contains("state.sqlite is damaged"), "{output}");
    assert!(
        output.contains("put the newest backup in its place"),
        "{output}"
    );
    assert_eq!(fs::read(&database).expect("read"), before);
}

#[test]
fn what_others_may_read_is_found_and_mended_only_where_asked() {
    let fake = finding_these(vec![finding(Severity::Warning, "a warning", "a hint")]);
    let folder = fake.state_dir().join("authority");
    let key = folder.join("ca.key");
    fs::create_dir(&folder).expect("folder");
    fs::write(&key, "key").expect("key");
    set_mode(&folder, 0o755);
    set_mode(&key, 0o644);

    assert_snapshot!(with(&fake, "doctor"), @"
    exit 1
    --- stdout
    error: others may use [STATE]/authority: its permissions are 0755, not 0700
    hint: tidings doctor --fix
    error: others may use [STATE]/authority/ca.key: its permissions are 0644, not 0600
    hint: tidings doctor --fix
    warning: a warning
    hint: a hint
    --- stderr
    --- asked
    Check
    ");
    assert_eq!((mode(&folder), mode(&key)), (0o755, 0o644));
    assert_snapshot!(with(&fake, "doctor --fix"), @"
    exit 1
    --- stdout
    fixed: [STATE]/authority was 0755 and is 0700
    fixed: [STATE]/authority/ca.key was 0644 and is 0600
    warning: a warning
    hint: a hint
    --- stderr
    --- asked
    Check
    ");
    assert_eq!((mode(&folder), mode(&key)), (0o700, 0o600));
    set_mode(&key, 0o604);
    assert_snapshot!(with(&fake, "doctor --fix --json"), @r#"
    exit 1
    --- stdout
    {"schemaVersion":1,"findings":[{"severity":"warning","what":"a warning","hint":"a hint"}],"fixed":[{"path":"[STATE]/authority/ca.key","was":"0604","is":"0600"}]}
    --- stderr
    --- asked
    Check
    "#);
}

#[test]
fn a_directory_that_is_no_state_directory_is_left_alone() {
    let dir = tempfile::tempdir().expect("scratch directory");
    fs::write(dir.path().join("letter"), "somebody's").expect("file");
    set_mode(dir.path(), 0o755);
    let output = in_state_dir(dir.path(), "doctor --fix");
    assert!(!output.contains("fixed"), "{output}");
    assert_eq!(mode(dir.path()), 0o755);
}

#[test]
fn what_is_mended_is_no_finding() {
    let fake = finding_these(vec![]);
    set_mode(fake.state_dir(), 0o755);
    assert_snapshot!(with(&fake, "doctor --fix"), @"
    exit 0
    --- stdout
    fixed: [STATE] was 0755 and is 0700
    --- stderr
    nothing is wrong
    --- asked
    Check
    ");
    assert_eq!(mode(fake.state_dir()), 0o700);
}

#[test]
fn a_configuration_that_cannot_be_read_is_found() {
    let fake = finding_these(vec![]);
    let file = fake.state_dir().join("config.toml");
    fs::write(file, "[signals]\nmaxAgge = \"30d\"\n").expect("write");
    assert_snapshot!(with(&fake, "doctor"), @"
    exit 1
    --- stdout
    error: [STATE]/config.toml: line 2: unknown field `maxAgge`, expected `maxAge` or `maxRows`
    hint: did you mean maxAge?
    --- stderr
    --- asked
    Check
    ");
}

#[test]
fn a_gateway_that_cannot_check_is_found() {
    let unknown = ApiError::new(
        ErrorType::Unsupported,
        "this build does not know the message check",
    );
    let fake = answering(Reply::Error(unknown));
    assert_snapshot!(with(&fake, "doctor"), @"
    exit 1
    --- stdout
    error: this build does not know the message check
    hint: see the gateway's log
    --- stderr
    --- asked
    Check
    ");
}

#[test]
fn keys_that_are_no_longer_used_are_named_and_taken_out_without_a_change_of_meaning() {
    let fake = finding_these(vec![]);
    let config = fake.state_dir().join("config.toml");
    let written = "# mine\n[session]\nidleMinutes = 90 # a while\nmainKey = \"home\"\n\n\
                   [session.maintenance]\nrotateBytes = \"10mb\"\nmaxEntries = 7\n\n\
                   [cron]\nrunLog.maxBytes = 5\n";
    fs::write(&config, written).expect("written");
    let said = with(&fake, "doctor");
    let found = "has keys that are no longer used: cron.runLog.maxBytes, session.idleMinutes, \
                 session.maintenance.rotateBytes";
    assert!(
        said.starts_with("exit 1\n") && said.contains(found),
        "{said}"
    );

    let said = with(&fake, "doctor --fix");

    assert!(
        said.starts_with("exit 0\n") && said.contains("and is without"),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(&config).expect("there"),
        "# mine\n[session]\nreset.mode = \"idle\"\nreset.idleMinutes = 90 # a while\n\
         mainKey = \"home\"\n\n[session.maintenance]\nmaxEntries = 7\n\n[cron]\n"
    );
    assert!(with(&fake, "doctor").starts_with("exit 0\n"));
}

#[test]
fn a_file_that_would_mean_something_else_is_left_to_its_owner() {
    let fake = finding_these(vec![]);
    let config = fake.state_dir().join("config.toml");
    // Dotted keys beside a table of the same name would be no TOML.
    let written = "[session]\nidleMinutes = 90\n[session.reset]\natHour = 5\n";
    fs::write(&config, written).expect("written");
    let said = with(&fake, "doctor --fix");
    assert!(said.starts_with("exit 1\n"), "{said}");
    assert!(said.contains("it could not be mended here"), "{said}");
    assert_eq!(fs::read_to_string(&config).expect("there"), written);
}
