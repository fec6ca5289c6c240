//! A process that stays: its events on stdout, its log in a file.

use std::fs::{self, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::answer::end;
use crate::clock::DEADLINE;
use crate::lines::{Lines, Next};
use crate::spawn::spawn;

/// How much of a log stands in the message of a failed test, in characters.
const LOG_TAIL_CHARS: usize = 6_000;

/// How much a daemon writes into its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Log {
    /// Everything: tests look for text in it that must not be there.
    Everything,
    /// Warnings: for whoever measures.
    Warnings,
}

impl Log {
    fn filter(self) -> &'static str {
        match self {
            Self::Everything => "trace",
            Self::Warnings => "warn",
        }
    }
}

/// How a daemon ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; -1 when a signal ended it.
    pub code: i32,
    /// The lines it printed that nobody had read before.
    pub said: Vec<Value>,
}

/// Sends a signal to a process of ours.
#[track_caller]
pub(crate) fn signal(process: u32, name: &str) {
    let kill = Command::new("sh")
        .args(["-c", "kill -\"$1\" \"$0\"", &process.to_string(), name])
        .status();
    assert!(kill.is_ok_and(|status| status.success()), "kill -{name}");
}

/// A running daemon; dropping it kills it.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    lines: Lines,
    log: PathBuf,
}

impl Daemon {
    /// Starts `command` with its log appended to `log`.
    pub(crate) fn spawn(command: &mut Command, log: &Path, level: Log) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(log);
        command
            .env("TIDINGS_LOG", level.filter())
            .stderr(file.expect("a log file"));
        let mut child = spawn(command);
        let stdout = child.stdout.take().expect("stdout is piped");
        Self {
            child,
            lines: Lines::of(stdout),
            log: log.to_owned(),
        }
    }

    /// The next event of this name; other events on the way are passed over.
    #[track_caller]
    pub(crate) fn wait_for(&self, event: &str) -> Value {
        let began = Instant::now();
        let mut seen = Vec::new();
        loop {
            match self.lines.next(DEADLINE.saturating_sub(began.elapsed())) {
                Next::Line(line) if line["event"] == event => return line,
                Next::Line(line) => seen.push(line),
                outcome @ (Next::End | Next::Nothing) => panic!(
                    "waiting for {event}: {outcome:?} after {:?}, seen {seen:?}\n{}",
                    began.elapsed(),
                    self.log_tail()
                ),
            }
        }
    }

    /// Waits for the next event of this name, or for the end of the process. True for the
    /// event.
    #[track_caller]
    pub(crate) fn has_come_to(&self, event: &str) -> bool {
        let began = Instant::now();
        loop {
            match self.lines.next(DEADLINE.saturating_sub(began.elapsed())) {
                Next::Line(line) if line["event"] == event => return true,
                Next::Line(_) => {}
                Next::End => return false,
                Next::Nothing => panic!("neither {event} nor an end\n{}", self.log_tail()),
            }
        }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        end(&mut self.child);
    }

    /// SIGTERM; the exit code it ends with, before the deadline.
    #[track_caller]
    pub(crate) fn stop(self) -> i32 {
        signal(self.id(), "TERM");
        self.wait_for_end().code
    }

    /// Waits for it to end by itself, before the deadline.
    #[track_caller]
    pub(crate) fn wait_for_end(mut self) -> Ended {
        let began = Instant::now();
        let mut said = Vec::new();
        loop {
            match self.lines.next(DEADLINE.saturating_sub(began.elapsed())) {
                Next::Line(line) => said.push(line),
                Next::End => break,
                Next::Nothing => panic!("it does not end\n{}", self.log_tail()),
            }
        }
        let status = self.child.wait().expect("the end of a process");
        Ended {
            // Below zero: the signal that ended it.
            code: status
                .code()
                .unwrap_or_else(|| -status.signal().unwrap_or(0)),
            said,
        }
    }

    /// Waits a moment, and says whether it is still running then.
    pub(crate) fn runs_on(&self, moment: Duration) -> bool {
        let began = Instant::now();
        loop {
            match self.lines.next(moment.saturating_sub(began.elapsed())) {
                Next::Line(_) => {}
                Next::End => return false,
                Next::Nothing => return true,
            }
        }
    }

    /// The end of its log, for the message of a failed test.
    fn log_tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let skipped = text.chars().count().saturating_sub(LOG_TAIL_CHARS);
        let tail: String = text.chars().skip(skipped).collect();
        format!("the end of {}:\n{tail}", self.log.display())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::scratch::Scratch;

    fn daemon(scratch: &Scratch, script: &str) -> Daemon {
        let mut command = scratch.command(Path::new("sh"));
        Daemon::spawn(
            command.args(["-c", script]),
            &scratch.path().join("log"),
            Log::Everything,
        )
    }

    #[test]
    fn an_event_is_found_among_others_and_what_is_no_json_is_passed_over() {
        let scratch = Scratch::new();
        let script = r#"echo noise; echo '{"event":"a"}'; echo '{"event":"b","n":7}'; read x"#;
        let daemon = daemon(&scratch, script);
        assert_eq!(daemon.wait_for("b")["n"], 7);
    }

    #[test]
    fn a_daemon_that_ends_too_early_shows_the_end_of_its_log() {
        let scratch = Scratch::new();
        let wait = || daemon(&scratch, "echo said on stderr >&2").wait_for("ready");
        let panic = catch_unwind(AssertUnwindSafe(wait)).expect_err("it never gets ready");
        let message = panic.downcast_ref::<String>().expect("a message");
        assert!(message.contains("said on stderr"), "{message}");
    }

    #[test]
    fn stopping_waits_for_the_end_and_gives_the_exit_code() {
        let scratch = Scratch::new();
        let script = r#"trap 'echo "{}"; exit 7' TERM; echo '{"event":"up"}'; while :; do :; done"#;
        let daemon = daemon(&scratch, script);
        daemon.wait_for("up");
        assert_eq!(daemon.stop(), 7);
    }
}
