//! `tidings logs`: no gateway is asked.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use insta::assert_snapshot;

use crate::run::{in_state_dir, tidings};

const LINES: &str = "2026-11-30T21:05:03.123456Z  INFO tidings_gateway: the gateway runs pid=7\n\
                     2026-11-30T21:06:03.000000Z  WARN tidings_gateway::nodes: it went away\n";

fn append(dir: &Path, text: &str) {
    let path = dir.join("gateway.log");
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.expect("open")
        .write_all(text.as_bytes())
        .expect("written");
}

#[test]
fn it_prints_the_last_lines_as_they_stand_or_in_their_parts() {
    let scratch = tempfile::tempdir().expect("scratch");
    append(scratch.path(), LINES);
    assert_snapshot!(in_state_dir(scratch.path(), "logs --lines 1"), @"
    exit 0
    --- stdout
    2026-11-30T21:06:03.000000Z  WARN tidings_gateway::nodes: it went away
    --- stderr
    ");
    std::fs::rename(
        scratch.path().join("gateway.log"),
        scratch.path().join("gateway.log.1"),
    )
    .expect("renamed");
    append(scratch.path(), "not one of ours");
    assert_snapshot!(in_state_dir(scratch.path(), "logs --lines 2 --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"at":1796072763000,"level":"warn","text":"tidings_gateway::nodes: it went away"}
    {"schemaVersion":1,"text":"not one of ours"}
    --- stderr
    "#);
}

#[test]
fn where_there_is_no_log_it_says_what_writes_one() {
    let scratch = tempfile::tempdir().expect("scratch");
    assert_snapshot!(in_state_dir(scratch.path(), "logs"), @"
    exit 1
    --- stdout
    --- stderr
    error: there is no log [STATE]/gateway.log
    hint: tidings gateway run writes it
    ");
}

#[test]
fn it_goes_on_with_what_is_written_also_when_another_log_begins() {
    let scratch = tempfile::tempdir().expect("scratch");
    append(scratch.path(), "first\n");
    let mut command = tidings("logs --follow");
    command
        .env("TIDINGS_STATE_DIR", scratch.path())
        .stdout(Stdio::piped());
    let mut process = command.spawn().expect("run");
    let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
    let mut next = || lines.next().expect("it goes on").expect("a line");
    assert_eq!(next(), "first");
    append(scratch.path(), "second\n");
    assert_eq!(next(), "second");
    let (log, older) = (
        scratch.path().join("gateway.log"),
        scratch.path().join("gateway.log.1"),
    );
    std::fs::rename(log, older).expect("renamed");
    append(scratch.path(), "third\n");
    assert_eq!(next(), "third");
    process.kill().expect("it runs");
    process.wait().expect("it ends");
}
