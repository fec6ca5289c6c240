//! Which process holds a lock, and whether it still runs.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};
use tidings_protocol::EpochMs;

/// What stands in a lock: who holds it, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Owner {
    /// The process.
    pub(super) pid: u32,
    /// When it began, where the machine says so: process ids come back.
    #[serde(default)]
    pub(super) started: Option<String>,
    /// Tells one holding from another of the same process.
    pub(super) token: String,
    /// When the lock was taken.
    pub(super) acquired_at: EpochMs,
}

impl Owner {
    pub(super) fn this_process(token: String, acquired_at: EpochMs) -> Self {
        let pid = std::process::id();
        Self {
            pid,
            started: started(pid),
            token,
            acquired_at,
        }
    }

    /// False once the process has ended, also where another has its id by now.
    pub(super) fn runs(&self) -> bool {
        match (&self.started, started(self.pid)) {
            (Some(then), Some(now)) => *then == now,
            // Here processes are listed, and this one is not.
            (Some(_), None) => false,
            (None, _) => exists(self.pid),
        }
    }
}

/// When a process began: the machine's start, and the ticks since. Nothing where there is no
/// such process, or the machine lists none.
fn started(pid: u32) -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; the start is the 20th field behind it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    let ticks = fields.nth(18)?;
    // A process that has ended and is not waited for yet does nothing any more.
    (state != "Z" && state != "X").then(|| format!("{}:{ticks}", boot.trim()))
}

fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(Errno::SRCH)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_and_one_that_has_ended_or_has_its_id_does_not() {
        let own = Owner::this_process("t".to_owned(), 0);
        assert!(own.runs());
        let mut child = std::process::Command::new("true").spawn().expect("runs");
        let ended = Owner {
            pid: child.id(),
            started: started(child.id()).or_else(|| Some("ended".to_owned())),
            ..own.clone()
        };
        child.wait().expect("ended");
        assert!(!ended.runs());
        let earlier = Owner {
            started: Some("another start:1".to_owned()),
            ..own.clone()
        };
        assert!(!earlier.runs());
        let unknown_start = Owner {
            started: None,
            ..own
        };
        assert!(unknown_start.runs());
    }
}
