//! The JSON lines of a process, read on a thread of their own.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// How many lines may wait to be looked at: more than any test prints. Beyond it the
/// process waits for the test.
const MAX_WAITING_LINES: usize = 10_000;

/// Lines as they come.
#[derive(Debug)]
pub(crate) struct Lines(Receiver<Value>);

/// What came in time.
#[derive(Debug)]
pub(crate) enum Next {
    /// A line; one that is not JSON is a text.
    Line(Value),
    /// No line will come any more.
    End,
    /// No line in time.
    Nothing,
}

impl Lines {
    /// The lines of `stream`.
    pub(crate) fn of(stream: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = sync_channel(MAX_WAITING_LINES);
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        Self(receiver)
    }

    /// The next line, if it comes within this time.
    pub(crate) fn next(&self, within: Duration) -> Next {
        match self.0.recv_timeout(within) {
            Ok(line) => Next::Line(line),
            Err(RecvTimeoutError::Disconnected) => Next::End,
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
        }
    }
}
