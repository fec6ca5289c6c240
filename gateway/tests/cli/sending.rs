//! `tidings sessions send|spawn`

use std::io::Write;
use std::process::Stdio;

use insta::assert_snapshot;
use tidings_protocol::session_api::{ApiError, ErrorType, Reply, Request, Sent, Spawned};

use crate::fake::Fake;
use crate::run::{in_state_dir, tidings, whole, with};
use crate::values::key;

fn sent() -> Sent {
    Sent {
        session_key: key("agent:ops:main"),
        message_id: 7,
        queued: true,
        ran: false,
        watched: None,
        reason: None,
    }
}

#[test]
fn send_says_for_which_turn_the_message_waits() {
    let fake = Fake::answering(Reply::SessionsSend(sent()));
    assert_snapshot!(with(&fake, "sessions send agent:ops:main Rebase."), @"
    exit 0
    --- stdout
    message 7 waits for the next turn of agent:ops:main
    --- stderr
    --- asked
    SessionsSend(SessionsSend { session_key: agent:ops:main, agent: None, message: PrivateText(7 bytes), sender: None, watch: None, expected_session_id: None })
    ");
    assert_snapshot!(with(&fake, "sessions send agent:ops:main Rebase. --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"sessionKey":"agent:ops:main","messageId":7,"queued":true,"ran":false}
    --- stderr
    --- asked
    SessionsSend(SessionsSend { session_key: agent:ops:main, agent: None, message: PrivateText(7 bytes), sender: None, watch: None, expected_session_id: None })
    "#);
}

#[test]
fn send_can_be_a_sessions_and_says_whether_it_watches() {
    let watched = |watched, reason: Option<&str>| {
        Fake::answering(Reply::SessionsSend(Sent {
            watched: Some(watched),
            reason: reason.map(str::to_owned),
            ..sent()
        }))
    };
    let line = "sessions send agent:ops:main Rebase. --from agent:main:main --watch \
                --expect-session-id 0a1b";
    assert_snapshot!(with(&watched(true, None), line), @r#"
    exit 0
    --- stdout
    message 7 waits for the next turn of agent:ops:main
    --- stderr
    watched from here on
    --- asked
    SessionStatus(StatusQuery { session_key: agent:main:main, agent: None, changes_since: None, reader: None })
    SessionsSend(SessionsSend { session_key: agent:ops:main, agent: None, message: PrivateText(7 bytes), sender: Some(agent:main:main), watch: Some(true), expected_session_id: Some("0a1b") })
    "#);
    let refused = watched(false, Some("a session does not watch itself"));
    assert_snapshot!(with(&refused, line), @r#"
    exit 0
    --- stdout
    message 7 waits for the next turn of agent:ops:main
    --- stderr
    warning: not watched: a session does not watch itself
    --- asked
    SessionStatus(StatusQuery { session_key: agent:main:main, agent: None, changes_since: None, reader: None })
    SessionsSend(SessionsSend { session_key: agent:ops:main, agent: None, message: PrivateText(7 bytes), sender: Some(agent:main:main), watch: Some(true), expected_session_id: Some("0a1b") })
    "#);
    assert_snapshot!(with(&refused, &format!("{line} --json")), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"sessionKey":"agent:ops:main","messageId":7,"queued":true,"ran":false,"watched":false,"reason":"a session does not watch itself"}
    --- stderr
    --- asked
    SessionStatus(StatusQuery { session_key: agent:main:main, agent: None, changes_since: None, reader: None })
    SessionsSend(SessionsSend { session_key: agent:ops:main, agent: None, message: PrivateText(7 bytes), sender: Some(agent:main:main), watch: Some(true), expected_session_id: Some("0a1b") })
    "#);
    assert_snapshot!(with(&refused, "sessions send agent:ops:main Rebase. --watch"), @"
    exit 2
    --- stdout
    --- stderr
    error: the following required arguments were not provided: --from <KEY>
    hint: see tidings sessions send --help
    usage: tidings sessions send --from <KEY> --watch <KEY> <TEXT>
    --- asked
    ");
}

/// The texts that were sent.
fn texts(fake: &Fake) -> Vec<String> {
    let text = |request| match request {
        Request::SessionsSend(send) => send.message.0,
        other => panic!("{other:?}"),
    };
    fake.asked().into_iter().map(text).collect()
}

#[test]
fn a_text_comes_from_a_file_or_from_stdin_as_it_is() {
    let fake = Fake::answering(Reply::SessionsSend(sent()));
    let file = fake.state_dir().join("m.md");
    std::fs::write(&file, "# Rebase\r\n\n- ä\n").expect("written");
    let line = format!("sessions send agent:ops:main --file {}", file.display());
    assert!(in_state_dir(fake.state_dir(), &line).starts_with("exit 0"));
    assert_eq!(texts(&fake), ["# Rebase\r\n\n- ä\n"]);
    for line in [
        "sessions send agent:ops:main",
        "sessions send agent:ops:main --file -",
    ] {
        let mut command = tidings(line);
        command
            .env("TIDINGS_STATE_DIR", fake.state_dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut running = command.spawn().expect("started");
        let mut stdin = running.stdin.take().expect("a pipe");
        stdin.write_all(b"from a pipe\n").expect("written");
        drop(stdin);
        let output = running.wait_with_output().expect("ended");
        assert!(whole(&output, fake.state_dir()).starts_with("exit 0"));
        assert_eq!(texts(&fake), ["from a pipe\n"]);
    }
}

#[test]
fn a_text_that_cannot_be_read_is_named_by_its_file_alone() {
    let fake = Fake::answering(Reply::SessionsSend(sent()));
    let bad = fake.state_dir().join("bad.txt");
    std::fs::write(&bad, b"canary \xff").expect("written");
    let large = fake.state_dir().join("large.txt");
    std::fs::write(&large, "canary".repeat(30_000)).expect("written");
    for (file, code) in [("bad.txt", 65), ("large.txt", 65), ("missing.txt", 66)] {
        let file = fake.state_dir().join(file);
        let line = format!("sessions send agent:ops:main --file {}", file.display());
        let output = in_state_dir(fake.state_dir(), &line);
        assert!(output.starts_with(&format!("exit {code}\n")), "{output}");
        assert!(!output.contains("canary"), "{output}");
    }
    assert_eq!(fake.asked(), []);
}

#[test]
fn spawn_prints_the_childs_key() {
    let fake = Fake::answering(Reply::SessionsSpawn(Spawned {
        watched: true,
        session_key: key("agent:coder:acp:0a1b"),
        session_id: "9f8e".to_owned(),
        message_id: 8,
        sequence: 12,
        queued: true,
        ran: false,
    }));
    assert_snapshot!(with(&fake, "sessions spawn agent:main:main Test."), @"
    exit 0
    --- stdout
    agent:coder:acp:0a1b
    --- stderr
    its task waits for its first turn; its parent watches it from version 12
    --- asked
    SessionStatus(StatusQuery { session_key: agent:main:main, agent: None, changes_since: None, reader: None })
    SessionsSpawn(SessionsSpawn { parent: Some(agent:main:main), agent: None, runtime: Subagent, label: None, task: PrivateText(5 bytes) })
    ");
    let line =
        "sessions spawn agent:main:main --runtime acp --agent coder --label tests Test. --json";
    assert_snapshot!(with(&fake, line), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"sessionKey":"agent:coder:acp:0a1b","sessionId":"9f8e","messageId":8,"sequence":12,"watched":true,"queued":true,"ran":false}
    --- stderr
    --- asked
    SessionStatus(StatusQuery { session_key: agent:main:main, agent: None, changes_since: None, reader: None })
    SessionsSpawn(SessionsSpawn { parent: Some(agent:main:main), agent: Some("coder"), runtime: Acp, label: Some("tests"), task: PrivateText(5 bytes) })
    "#);
}

#[test]
fn spawn_says_so_where_nobody_watches_the_child() {
    let fake = Fake::answering(Reply::SessionsSpawn(Spawned {
        session_key: key("agent:main:subagent:0a1b"),
        session_id: "9f8e".to_owned(),
        message_id: 8,
        sequence: 12,
        watched: false,
        queued: true,
        ran: false,
    }));
    let said = with(&fake, "sessions spawn bad Test.");
    assert!(
        said.contains("; nobody watches it: a parent with a bare key cannot\n"),
        "{said}"
    );
    assert!(!said.contains("its parent watches it"), "{said}");
}

#[test]
fn a_queue_that_is_full_is_to_be_tried_again_later() {
    let full = ApiError::new(
        ErrorType::TryLater,
        "too many messages wait for agent:ops:main already",
    );
    let fake = Fake::answering(Reply::Error(
        full.with_hint("they go once the session takes a turn and confirms it"),
    ));
    assert_snapshot!(with(&fake, "sessions send agent:ops:main Rebase."), @"
    exit 75
    --- stdout
    --- stderr
    error: too many messages wait for agent:ops:main already
    hint: they go once the session takes a turn and confirms it
    --- asked
    SessionsSend(SessionsSend { session_key: agent:ops:main, agent: None, message: PrivateText(7 bytes), sender: None, watch: None, expected_session_id: None })
    ");
}
