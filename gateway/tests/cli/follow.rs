//! `tidings signals follow`: a stream, and the ways it ends.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use insta::assert_snapshot;
use tidings_protocol::session_api::{
    ApiError, Counts, ErrorType, GatewayStatus, Reply, Request, Signals, Status,
};

use crate::fake::{Does, Fake, frame};
use crate::run::{tidings, with};
use crate::values::signal;

fn signals(sequences: &[u64]) -> Vec<u8> {
    frame(&Reply::Signals(Signals {
        earliest_available_sequence: None,
        signals: sequences.iter().map(|&sequence| signal(sequence)).collect(),
    }))
}

fn status(head: u64) -> Vec<u8> {
    frame(&Reply::Status(Box::new(Status {
        gateway: GatewayStatus {
            version: String::new(),
            pid: 1,
            state_dir: String::new(),
            listen: String::new(),
            http: None,
            started_at: 0,
            database: String::new(),
            warnings: vec![],
            model: None,
            server_certificate_not_after: 0,
            authority_not_after: 0,
        },
        nodes: vec![],
        links: vec![],
        counts: Counts {
            head,
            ..Counts::default()
        },
    })))
}

/// Sends these frames to a follower and then does nothing more.
fn following(frames: Vec<Vec<u8>>) -> Fake {
    Fake::that(move |_| Does::Sends(frames.clone()))
}

fn start(fake: &Fake, line: &str) -> Child {
    tidings(line)
        .env("TIDINGS_STATE_DIR", fake.state_dir())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("run")
}

/// Waits for the child's own end and gives its exit code and stderr.
fn end(mut child: Child) -> (Option<i32>, String) {
    let mut said = String::new();
    let mut stderr = child.stderr.take().expect("piped");
    stderr.read_to_string(&mut said).expect("stderr");
    (child.wait().expect("wait").code(), said)
}

#[test]
fn each_signal_is_a_line_and_a_gateway_that_goes_leaves_the_place_to_go_on_from() {
    let fake = Fake::that(|_| Does::SendsAndCloses(vec![signals(&[42]), signals(&[43, 57])]));
    let line = "signals follow --after 41 --session agent:main:adopted:claude:laptop:0a1b";
    assert_snapshot!(with(&fake, line), @"
    exit 69
    --- stdout
          42  2026-11-30 21:05:03  human_direct_message  human  agent:main:adopted:claude:laptop:0a1b  human message via claude
          43  2026-11-30 21:05:03  human_direct_message  human  agent:main:adopted:claude:laptop:0a1b  human message via claude
          57  2026-11-30 21:05:03  human_direct_message  human  agent:main:adopted:claude:laptop:0a1b  human message via claude
    --- stderr
    error: the gateway has gone; the last sequence seen is 57
    hint: the same command with --after 57 goes on from there
    --- asked
    SignalsFollow(SignalsQuery { session: Some(agent:main:adopted:claude:laptop:0a1b), after: Some(41), limit: None })
    ");
    assert_snapshot!(with(&fake, "signals follow --after 41 --json"), @r#"
    exit 69
    --- stdout
    {"schemaVersion":1,"sequence":42,"sessionKey":"agent:main:adopted:claude:laptop:0a1b","agentId":"main","kind":"human_direct_message","actorType":"human","occurredAt":1796072703123,"recordedAt":1796072703128,"summary":"human message via claude","payload":{"turns":2,"catalog":"claude","host":"node:0123456789abcdef0123456789abcdef"}}
    {"schemaVersion":1,"sequence":43,"sessionKey":"agent:main:adopted:claude:laptop:0a1b","agentId":"main","kind":"human_direct_message","actorType":"human","occurredAt":1796072703123,"recordedAt":1796072703128,"summary":"human message via claude","payload":{"turns":2,"catalog":"claude","host":"node:0123456789abcdef0123456789abcdef"}}
    {"schemaVersion":1,"sequence":57,"sessionKey":"agent:main:adopted:claude:laptop:0a1b","agentId":"main","kind":"human_direct_message","actorType":"human","occurredAt":1796072703123,"recordedAt":1796072703128,"summary":"human message via claude","payload":{"turns":2,"catalog":"claude","host":"node:0123456789abcdef0123456789abcdef"}}
    {"schemaVersion":1,"ok":false,"error":{"type":"unavailable","message":"the gateway has gone; the last sequence seen is 57","hint":"the same command with --after 57 goes on from there"}}
    --- stderr
    --- asked
    SignalsFollow(SignalsQuery { session: None, after: Some(41), limit: None })
    "#);
}

#[test]
fn without_a_place_to_begin_it_begins_at_the_head() {
    let fake = Fake::that(|request| match request {
        Request::Status {} => Does::Sends(vec![status(15)]),
        _ => Does::SendsAndCloses(vec![]),
    });
    assert_snapshot!(with(&fake, "signals follow"), @"
    exit 69
    --- stdout
    --- stderr
    error: the gateway has gone; the last sequence seen is 15
    hint: the same command with --after 15 goes on from there
    --- asked
    Status
    SignalsFollow(SignalsQuery { session: None, after: Some(15), limit: None })
    ");
}

#[test]
fn parts_of_a_page_and_empty_pages_are_taken_as_they_come() {
    let part = Reply::Part(Box::new(Reply::Signals(Signals {
        earliest_available_sequence: None,
        signals: vec![signal(1)],
    })));
    let fake =
        Fake::that(move |_| Does::SendsAndCloses(vec![frame(&part), signals(&[]), signals(&[2])]));
    let output = with(&fake, "signals follow --after 0");
    let shown = output.lines().filter(|line| line.contains("human message"));
    assert_eq!(shown.count(), 2, "{output}");
}

#[test]
fn a_refusal_in_the_stream_is_an_error() {
    let refusal = ApiError::new(ErrorType::NotPermitted, "another user's gateway");
    let frames = vec![signals(&[42]), frame(&Reply::Error(refusal))];
    let fake = following(frames);
    assert_snapshot!(with(&fake, "signals follow --after 41 --json"), @r#"
    exit 77
    --- stdout
    {"schemaVersion":1,"sequence":42,"sessionKey":"agent:main:adopted:claude:laptop:0a1b","agentId":"main","kind":"human_direct_message","actorType":"human","occurredAt":1796072703123,"recordedAt":1796072703128,"summary":"human message via claude","payload":{"turns":2,"catalog":"claude","host":"node:0123456789abcdef0123456789abcdef"}}
    {"schemaVersion":1,"ok":false,"error":{"type":"not_permitted","message":"another user's gateway","hint":null}}
    --- stderr
    --- asked
    SignalsFollow(SignalsQuery { session: None, after: Some(41), limit: None })
    "#);
}

#[test]
fn a_signal_is_seen_when_it_happens_and_not_when_a_buffer_is_full() {
    let fake = following(vec![signals(&[42])]);
    for line in [
        "signals follow --after 41",
        "signals follow --after 41 --json",
    ] {
        let mut child = start(&fake, line);
        let mut first = String::new();
        let stdout = child.stdout.as_mut().expect("piped");
        BufReader::new(stdout).read_line(&mut first).expect("line");
        assert!(first.contains("42"), "{first}");
        child.kill().expect("kill");
        child.wait().expect("wait");
    }
}

#[test]
fn a_reader_that_goes_ends_it_quietly_even_if_no_signal_comes() {
    let fake = following(vec![signals(&[42])]);
    for line in [
        "signals follow --after 41",
        "signals follow --after 41 --json",
    ] {
        let mut child = start(&fake, line);
        let mut first = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        stdout.read_line(&mut first).expect("line");
        drop(stdout);
        assert_eq!(end(child), (Some(0), String::new()));
    }
}

#[test]
fn a_stdout_closed_from_the_start_ends_it_quietly() {
    let fake = following(vec![signals(&[42]), signals(&[43])]);
    let mut child = start(&fake, "signals follow --after 41 --json");
    drop(child.stdout.take());
    assert_eq!(end(child), (Some(0), String::new()));
}
