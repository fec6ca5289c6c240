//! `signals follow`: the log as it grows.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::answer::end;
use crate::clock::DEADLINE;
use crate::counted::human_turns;
use crate::daemon::signal;
use crate::gateway::Gateway;
use crate::lines::{Lines, Next};
use crate::spawn::spawn;

/// A running `signals follow --json`, and what it has shown so far.
#[derive(Debug)]
pub struct Follow {
    child: Child,
    lines: Lines,
    seen: Vec<Value>,
}

impl Follow {
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = spawn(command);
        let stdout = child.stdout.take().expect("stdout is piped");
        Self {
            child,
            lines: Lines::of(stdout),
            seen: Vec::new(),
        }
    }

    /// The next signal, if it comes within this time.
    pub fn signal_within(&mut self, time: Duration) -> Option<Value> {
        let Next::Line(line) = self.lines.next(time) else {
            return None;
        };
        let sequence = line["sequence"].as_u64();
        assert!(
            sequence.is_some_and(|sequence| sequence > self.last_sequence()),
            "not a later signal: {line}"
        );
        self.seen.push(line.clone());
        Some(line)
    }

    /// Reads until the human messages of `session` stand for `turns` turns in all.
    #[track_caller]
    pub fn wait_for_turns(&mut self, session: &str, turns: usize) {
        let began = Instant::now();
        loop {
            let counted = human_turns(&self.seen, session);
            if counted == turns {
                return;
            }
            assert!(
                counted < turns,
                "{counted} turns instead of {turns}: {:#?}",
                self.seen
            );
            let left = DEADLINE.saturating_sub(began.elapsed());
            assert!(
                self.signal_within(left).is_some(),
                "only {counted} turns of {turns} after {:?}",
                began.elapsed()
            );
        }
    }

    /// Reads until the human messages of `session` stand for at least `turns` turns in all.
    /// Each next signal must come before the deadline, however many there are.
    #[track_caller]
    pub fn wait_for_at_least(&mut self, session: &str, turns: usize) {
        loop {
            let counted = human_turns(&self.seen, session);
            if counted >= turns {
                return;
            }
            assert!(
                self.signal_within(DEADLINE).is_some(),
                "only {counted} turns of {turns}"
            );
        }
    }

    /// Goes on behind the last signal seen, after the gateway has been away.
    pub fn resume(&mut self, gateway: &Gateway) {
        let after = self.last_sequence();
        let resumed = gateway.follow(after);
        let before = std::mem::replace(self, resumed);
        self.seen.clone_from(&before.seen);
    }

    /// SIGSTOP: it reads no more until it is told to go on.
    pub fn pause(&self) {
        signal(self.child.id(), "STOP");
    }

    /// SIGCONT.
    pub fn go_on(&self) {
        signal(self.child.id(), "CONT");
    }

    /// The sequence of the last signal seen; 0 before the first.
    fn last_sequence(&self) -> u64 {
        let last = self.seen.last();
        last.and_then(|signal| signal["sequence"].as_u64())
            .unwrap_or(0)
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}
