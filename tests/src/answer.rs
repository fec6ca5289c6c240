//! One command and what it answered.

use std::fmt;
use std::io::Read;
use std::process::{Child, Command};
use std::sync::mpsc::sync_channel;
use std::thread;

use serde_json::Value;

use crate::clock::DEADLINE;
use crate::daemon::signal;
use crate::spawn::spawn;

/// What a command left behind.
#[derive(Debug)]
pub struct Answer {
    /// The command, for messages.
    command: String,
    /// Its exit code; -1 when a signal ended it.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it said beside.
    pub stderr: String,
}

impl Answer {
    /// The one JSON document on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self}"))
    }

    /// The document of a command that must have done what it was asked.
    #[track_caller]
    pub fn done(&self) -> Value {
        assert_eq!(self.code, 0, "{self}");
        self.json()
    }

    /// The error of a command that must have been refused: its `type`, `message`, `hint`.
    #[track_caller]
    pub fn refused(&self) -> Value {
        assert!(self.code > 0, "{self}");
        let document = self.json();
        assert_eq!(document["ok"], false, "{self}");
        let error = document["error"].clone();
        for member in ["type", "message"] {
            let text = error[member].as_str();
            assert!(text.is_some_and(|text| !text.is_empty()), "{self}");
        }
        error
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            command,
            code,
            stdout,
            stderr,
        } = self;
        write!(
            f,
            "{command}\nexit code {code}\nstdout: {stdout}\nstderr: {stderr}"
        )
    }
}

/// A command that runs; dropping it kills it.
#[derive(Debug)]
pub struct Begun {
    child: Option<Child>,
    command: String,
}

impl Begun {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self {
            child: Some(spawn(command)),
            command: format!("{command:?}"),
        }
    }

    /// SIGINT, as by Ctrl-C.
    #[track_caller]
    pub fn interrupt(&self) {
        let child = self.child.as_ref().expect("a running command");
        signal(child.id(), "INT");
    }

    /// Waits for its answer.
    #[track_caller]
    pub fn wait(mut self) -> Answer {
        let mut child = self.child.take().expect("a running command");
        answer_of(&mut child, &self.command)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            end(&mut child);
        }
    }
}

/// Runs a command to its end, which must come before the deadline.
#[track_caller]
pub fn run(command: &mut Command) -> Answer {
    let mut child = spawn(command);
    answer_of(&mut child, &format!("{command:?}"))
}

#[track_caller]
fn answer_of(child: &mut Child, command: &str) -> Answer {
    let (mut stdout, mut stderr) = (
        child.stdout.take().expect("stdout is piped"),
        child.stderr.take().expect("stderr is piped"),
    );
    let (sender, receiver) = sync_channel(1);
    thread::spawn(move || {
        let mut said = Vec::new();
        let beside = thread::spawn(move || {
            let mut bytes = Vec::new();
            stderr.read_to_end(&mut bytes).map(|_| bytes)
        });
        let end = stdout.read_to_end(&mut said);
        let beside = beside.join().expect("the reader of stderr");
        // Nobody listens any more after the deadline.
        let _ = sender.send(end.and(beside).map(|beside| (said, beside)));
    });
    let Ok(read) = receiver.recv_timeout(DEADLINE) else {
        end(child);
        panic!("{command} has not ended after {DEADLINE:?}");
    };
    let (stdout, stderr) = read.expect("the pipes of a command");
    let status = child.wait().expect("the end of a command");
    Answer {
        command: command.to_owned(),
        code: status.code().unwrap_or(-1),
        stdout: String::from_utf8(stdout).expect("commands print UTF-8"),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// Kills a process that may have ended already.
pub(crate) fn end(child: &mut Child) {
    // An error says that it has ended: what we want.
    let _ = child.kill();
    child.wait().expect("the end of a killed process");
}
