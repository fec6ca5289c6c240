//! What an appended line takes to reach `tail -F`: the plainest follower there is, on a file
//! of the same kind.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// From a line written to the file at `path` until `tail -F` has printed it, so many times.
pub(crate) fn tail(path: &Path, lines: usize) -> Vec<Duration> {
    let mut child = start("1", &[path], Stdio::piped());
    let mut told = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let mut file = OpenOptions::new().append(true).open(path).expect("a file");
    let mut one = |number: usize| {
        let began = Instant::now();
        writeln!(file, "{{\"type\":\"line\",\"number\":{number}}}").expect("a line");
        let mut line = String::new();
        while !line.contains(&format!(":{number}}}")) {
            line.clear();
            told.read_line(&mut line).expect("a line of tail");
        }
        began.elapsed()
    };
    // The first tells that it watches by now.
    one(lines);
    let times = (0..lines).map(&mut one).collect();
    child.kill().expect("tail ends");
    child.wait().expect("tail has ended");
    times
}

/// From these bytes, appended at once to the file at `path`, until `tail -F` has printed the last.
pub(crate) fn tail_of_much(path: &Path, bytes: &[u8]) -> Duration {
    let mut child = start("1", &[path], Stdio::piped());
    let mut told = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let mut file = OpenOptions::new().append(true).open(path).expect("a file");
    writeln!(file, "{{}}").expect("a line");
    // This tells that it watches by now.
    while told
        .fill_buf()
        .is_ok_and(|printed| !printed.ends_with(b"{}\n"))
    {
        let printed = told.buffer().len();
        told.consume(printed);
    }
    told.consume(told.buffer().len());
    let began = Instant::now();
    file.write_all(bytes).expect("written");
    let mut left = bytes.len();
    while left > 0 {
        let printed = told.fill_buf().expect("what tail prints").len();
        told.consume(printed);
        left = left.saturating_sub(printed);
    }
    let took = began.elapsed();
    child.kill().expect("tail ends");
    child.wait().expect("tail has ended");
    took
}

/// A `tail -F` of these files that prints their last lines, so many, and what comes to them.
pub(crate) fn start(last: &str, paths: &[&Path], stdout: Stdio) -> Child {
    Command::new("tail")
        .args(["-q", "-n", last, "-F"])
        .args(paths)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::null())
        .spawn()
        .expect("tail starts")
}
