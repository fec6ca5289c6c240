//! `tidings gateway run`, as a process of its own.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::run::{in_state_dir, tidings, whole};

/// A gateway of this state directory that reads nothing of this machine.
fn gateway(http: &str, state_dir: &std::path::Path) -> Command {
    let line = "gateway run --json --no-local-node --listen 127.0.0.1:0 --http";
    let mut command = tidings(line);
    command.arg(http).env("TIDINGS_STATE_DIR", state_dir);
    command
}

#[test]
fn http_that_cannot_be_answered_is_a_named_error() {
    let scratch = tempfile::tempdir().expect("scratch");
    let dir = scratch.path().join("state");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    let busy = format!("cannot listen on TCP {taken} for HTTP: ");
    for (http, code, message) in [
        (taken.as_str(), 69, busy.as_str()),
        (
            "0.0.0.0:0",
            78,
            "HTTP on 0.0.0.0:0, which other machines reach, needs TLS",
        ),
    ] {
        let output = gateway(http, &dir).output().expect("run");
        let said = whole(&output, &dir);
        assert!(said.starts_with(&format!("exit {code}\n")), "{said}");
        let document = String::from_utf8(output.stdout).expect("text");
        let document: Value = serde_json::from_str(&document).expect(&document);
        let error = &document["error"];
        let given = error["message"].as_str().expect("a message");
        assert!(given.starts_with(message), "{document}");
        assert!(
            error["hint"].as_str().expect("a hint").contains("--http"),
            "{document}"
        );
    }
}

#[test]
fn a_gateway_says_where_it_answers_and_leaves_its_log_behind() {
    let scratch = tempfile::tempdir().expect("scratch");
    let dir = scratch.path().join("state");
    let mut process = gateway("127.0.0.1:0", &dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("run");
    let mut ready = String::new();
    let mut stdout = BufReader::new(process.stdout.take().expect("piped"));
    stdout.read_line(&mut ready).expect("a line");
    let ready: Value = serde_json::from_str(&ready).expect(&ready);
    let http = ready["http"].as_str().expect("an address");
    assert!(
        http.starts_with("http://127.0.0.1:") && !http.ends_with(":0"),
        "{ready}"
    );
    let status = in_state_dir(&dir, "status");
    assert!(status.contains(&format!("http      {http}\n")), "{status}");
    process.kill().expect("it runs");
    process.wait().expect("it ends");
    let logs = in_state_dir(&dir, "logs");
    let pid = format!("the gateway runs pid={}", process.id());
    assert!(
        logs.starts_with("exit 0\n") && logs.contains(&pid),
        "{logs}"
    );
}
