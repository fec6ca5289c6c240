//! What commands say when the gateway is not there, may not be used, or is something else.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;

use insta::assert_snapshot;
use tidings_protocol::session_api::{ApiError, ErrorType, Nodes, Notices, Reply};

use crate::fake::{Does, Fake, frame};
use crate::run::{alone, in_state_dir, tidings, whole, with};

/// The user id without any rights.
const NOBODY: u32 = 65_534;

#[test]
fn no_gateway_names_the_socket_and_the_command_that_starts_one() {
    let empty = tempfile::tempdir().expect("scratch directory");
    assert_snapshot!(in_state_dir(empty.path(), "status"), @"
    exit 69
    --- stdout
    --- stderr
    error: the gateway is not running: nothing answers at [STATE]/gateway.sock
    hint: tidings gateway run
    ");
    assert_snapshot!(in_state_dir(empty.path(), "status --json"), @r#"
    exit 69
    --- stdout
    {"schemaVersion":1,"ok":false,"error":{"type":"unavailable","message":"the gateway is not running: nothing answers at [STATE]/gateway.sock","hint":"tidings gateway run"}}
    --- stderr
    "#);
    assert_snapshot!(alone("nodes list --state-dir /nonexistent"), @"
    exit 69
    --- stdout
    --- stderr
    error: the gateway is not running: nothing answers at /nonexistent/gateway.sock
    hint: tidings gateway run --state-dir /nonexistent
    ");
    assert_snapshot!(alone("nodes list"), @"
    exit 69
    --- stdout
    --- stderr
    error: the gateway is not running: nothing answers at /nonexistent/.tidings/gateway.sock
    hint: tidings gateway run
    ");
}

#[test]
fn a_socket_left_by_a_dead_gateway_is_no_gateway() {
    let dir = tempfile::tempdir().expect("scratch directory");
    drop(UnixListener::bind(dir.path().join("gateway.sock")).expect("bind"));
    assert_snapshot!(in_state_dir(dir.path(), "signals follow"), @"
    exit 69
    --- stdout
    --- stderr
    error: the gateway is not running: nothing answers at [STATE]/gateway.sock
    hint: tidings gateway run
    ");
}

#[test]
fn another_file_in_the_sockets_place_is_named() {
    let dir = tempfile::tempdir().expect("scratch directory");
    std::fs::write(dir.path().join("gateway.sock"), "mine").expect("write");
    assert_snapshot!(in_state_dir(dir.path(), "status"), @"
    exit 78
    --- stdout
    --- stderr
    error: [STATE]/gateway.sock is not a socket, so no gateway can answer there
    hint: move that file away, or choose another --state-dir
    ");
}

#[test]
fn a_socket_path_too_long_to_bind_names_the_limit() {
    let dir = format!("/{}", "d".repeat(100));
    assert_snapshot!(alone(&format!("status --state-dir {dir}")), @"
    exit 78
    --- stdout
    --- stderr
    error: the socket path /dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd/gateway.sock has 114 bytes; the system allows 107
    hint: choose a shorter --state-dir
    ");
}

#[test]
fn no_home_and_no_state_directory_is_a_matter_of_configuration() {
    let output = tidings("status --json").env_remove("HOME").output();
    let output = output.expect("run");
    assert_eq!(output.status.code(), Some(78));
    assert_snapshot!(String::from_utf8_lossy(&output.stdout), @r#"
    {"schemaVersion":1,"ok":false,"error":{"type":"configuration","message":"there is no home directory to keep the state in: HOME is not set","hint":"give --state-dir, or set TIDINGS_STATE_DIR"}}
    "#);
}

#[test]
fn a_directory_of_somebody_else_is_not_permitted() {
    let dir = tempfile::tempdir().expect("scratch directory");
    let _listener = UnixListener::bind(dir.path().join("gateway.sock")).expect("bind");
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o000)).expect("close");
    let mut command = tidings("status");
    command.env("TIDINGS_STATE_DIR", dir.path());
    if std::fs::read_dir(dir.path()).is_ok() {
        // We are root, who may go anywhere, and become somebody who may not.
        command.uid(NOBODY);
    }
    let output = command.output();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700)).expect("open");
    match output {
        Ok(output) => assert_snapshot!(whole(&output, dir.path()), @"
        exit 77
        --- stdout
        --- stderr
        error: this user may not use the gateway at [STATE]/gateway.sock
        hint: run the command as the user who runs the gateway
        "),
        Err(error) => eprintln!("skipped: nobody may not run the binary: {error}"),
    }
}

#[test]
fn another_programs_socket_is_told_apart() {
    let http = Fake::that(|_| Does::Sends(vec![b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()]));
    assert_snapshot!(with(&http, "status"), @"
    exit 65
    --- stdout
    --- stderr
    error: what answers at [STATE]/gateway.sock does not speak as a Tidings gateway does: a frame of 1213486160 bytes is over the limit of 262144
    hint: another program may hold that socket, or the gateway is of another version
    --- asked
    Status
    ");
    let junk = Fake::that(|_| Does::Sends(vec![vec![0, 0, 0, 1, 0xc1]]));
    assert_snapshot!(with(&junk, "status --json"), @r#"
    exit 65
    --- stdout
    {"schemaVersion":1,"ok":false,"error":{"type":"invalid_data","message":"what answers at [STATE]/gateway.sock does not speak as a Tidings gateway does: a frame of 1 bytes cannot be decoded as a reply","hint":"another program may hold that socket, or the gateway is of another version"}}
    --- stderr
    --- asked
    Status
    "#);
}

#[test]
fn an_answer_to_another_question_is_refused() {
    let fake = Fake::answering(Reply::NodesList(Nodes {
        nodes: vec![],
        invitations: vec![],
    }));
    assert_snapshot!(with(&fake, "status"), @"
    exit 65
    --- stdout
    --- stderr
    error: what answers at [STATE]/gateway.sock does not speak as a Tidings gateway does: the answer is to another question
    hint: another program may hold that socket, or the gateway is of another version
    --- asked
    Status
    ");
    assert_snapshot!(with(&fake, "signals follow --after 3"), @"
    exit 65
    --- stdout
    --- stderr
    error: what answers at [STATE]/gateway.sock does not speak as a Tidings gateway does: the answer is to another question
    hint: another program may hold that socket, or the gateway is of another version
    --- asked
    SignalsFollow(SignalsQuery { session: None, after: Some(3), limit: None })
    ");
}

#[test]
fn an_answer_that_this_version_does_not_know_says_so() {
    let fake = Fake::that(|_| Does::Sends(vec![b"\x00\x00\x00\x07\x81\xa4news\x01".to_vec()]));
    assert_snapshot!(with(&fake, "status"), @"
    exit 69
    --- stdout
    --- stderr
    error: the gateway answers with news, which this version does not know
    hint: use the command of the same version
    --- asked
    Status
    ");
}

#[test]
fn a_gateway_that_stops_before_it_answered_is_unavailable() {
    let silent = Fake::that(|_| Does::SendsAndCloses(vec![]));
    assert_snapshot!(with(&silent, "nodes list"), @"
    exit 69
    --- stdout
    --- stderr
    error: the gateway at [STATE]/gateway.sock closed the connection before it had answered
    hint: if it has stopped: tidings gateway run
    --- asked
    NodesList
    ");
    let reply = Reply::Notices(Notices { notices: vec![] });
    let torn = Fake::that(move |_| {
        let mut frame = frame(&reply);
        frame.pop();
        Does::SendsAndCloses(vec![frame])
    });
    assert_snapshot!(with(&torn, "notices list agent:main:main"), @"
    exit 69
    --- stdout
    --- stderr
    error: the gateway at [STATE]/gateway.sock closed the connection before it had answered
    hint: if it has stopped: tidings gateway run
    --- asked
    NoticesList(SessionRef { session_key: agent:main:main, agent: None })
    ");
}

#[test]
fn a_part_that_nothing_follows_is_no_answer() {
    let part = Reply::Part(Box::new(Reply::NodesList(Nodes {
        nodes: vec![],
        invitations: vec![],
    })));
    let fake = Fake::that(move |_| Does::SendsAndCloses(vec![frame(&part)]));
    assert_snapshot!(with(&fake, "nodes list"), @"
    exit 69
    --- stdout
    --- stderr
    error: the gateway at [STATE]/gateway.sock closed the connection before it had answered
    hint: if it has stopped: tidings gateway run
    --- asked
    NodesList
    ");
}

#[test]
fn every_error_of_the_gateway_has_its_exit_code_and_keeps_its_words() {
    for (error_type, code) in [
        (ErrorType::NotFound, 1),
        (ErrorType::Conflict, 1),
        (ErrorType::InvalidRequest, 2),
        (ErrorType::InvalidData, 65),
        (ErrorType::NoInput, 66),
        (ErrorType::Unavailable, 69),
        (ErrorType::Unsupported, 69),
        (ErrorType::Internal, 70),
        (ErrorType::CannotCreate, 73),
        (ErrorType::TryLater, 75),
        (ErrorType::NotPermitted, 77),
        (ErrorType::Configuration, 78),
    ] {
        let error = ApiError::new(error_type, "the disk is full").with_hint("make room");
        let fake = Fake::answering(Reply::Error(error));
        let output = with(&fake, "nodes invite");
        assert_eq!(
            output.lines().take(5).collect::<Vec<_>>(),
            [
                &format!("exit {code}"),
                "--- stdout",
                "--- stderr",
                "error: the disk is full",
                "hint: make room",
            ]
        );
    }
}

#[test]
fn a_reader_that_has_gone_is_nobodys_fault() {
    let fake = Fake::answering(Reply::Notices(Notices { notices: vec![] }));
    let (reader, writer) = std::io::pipe().expect("pipe");
    drop(reader);
    let output = tidings("notices list agent:main:main --json")
        .env("TIDINGS_STATE_DIR", fake.state_dir())
        .stdout(writer)
        .output()
        .expect("run");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stderr, b"");
}

#[test]
fn a_full_disk_under_stdout_is_said_on_stderr() {
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        eprintln!("skipped: this system has no /dev/full");
        return;
    };
    let output = tidings("--version").stdout(full).output().expect("run");
    assert_eq!(output.status.code(), Some(74));
    assert_snapshot!(String::from_utf8_lossy(&output.stderr), @"
    error: cannot write to stdout: No space left on device (os error 28)
    ");
}

#[test]
fn a_log_filter_that_is_none_is_said_and_does_no_harm() {
    let fake = Fake::answering(Reply::Notices(Notices { notices: vec![] }));
    let output = tidings("notices list agent:main:main --json")
        .env("TIDINGS_STATE_DIR", fake.state_dir())
        .env("TIDINGS_LOG", "a=b=c")
        .output()
        .expect("run");
    assert_eq!(output.status.code(), Some(0));
    assert_snapshot!(String::from_utf8_lossy(&output.stderr), @"
    warning: TIDINGS_LOG is not a log filter; `warn` is used
    ");
}
