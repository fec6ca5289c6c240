//! A program that is started for each wake, with the session key as its only argument and no
//! shell between.
//!
//! A wake is a hint to take a turn, so nothing hangs on a run: one that fails is counted and
//! said in the log, and the notice stays pending. What the program prints goes nowhere.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{ApiError, Reply};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How many run at once: they start turns, which are work for this machine or another.
const MAX_AT_ONCE: usize = 4;
/// How many sessions wait for a run, at most; one more is told by its notice alone.
const MAX_WAITING: usize = 10_000;
/// How long one may run: it is to start something, not to be it.
const TIME_LIMIT: Duration = Duration::from_mins(1);

/// How many runs ended how.
#[derive(Debug, Default)]
pub struct CommandFigures {
    counts: [AtomicU64; 4],
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Failed(ExitStatus),
    TimedOut,
    NotStarted,
}

impl Outcome {
    /// The names of all, in the order of [`Outcome::place`].
    const NAMES: [&'static str; 4] = ["done", "failed", "timed_out", "not_started"];

    fn place(self) -> usize {
        match self {
            Self::Done => 0,
            Self::Failed(_) => 1,
            Self::TimedOut => 2,
            Self::NotStarted => 3,
        }
    }
}

impl CommandFigures {
    /// How many ended how, by name.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 4] {
        let count = |place: usize| self.counts[place].load(Ordering::Relaxed);
        [0, 1, 2, 3].map(|place| (Outcome::NAMES[place], count(place)))
    }

    fn count(&self, outcome: Outcome) {
        self.counts[outcome.place()].fetch_add(1, Ordering::Relaxed);
    }
}

/// A command, and its runs.
#[derive(Debug)]
pub struct WakeCommand {
    program: PathBuf,
    state_dir: PathBuf,
    figures: Arc<CommandFigures>,
    waiting: Waiting,
    runs: JoinSet<(SessionKey, Outcome)>,
}

impl WakeCommand {
    /// Runs this program, which is told of the state directory.
    #[must_use]
    pub fn new(program: PathBuf, state_dir: PathBuf, figures: Arc<CommandFigures>) -> Self {
        Self {
            program,
            state_dir,
            figures,
            waiting: Waiting::default(),
            runs: JoinSet::new(),
        }
    }

    /// Runs it for each of these wakes until they end; why they did, where somebody says so.
    pub async fn run_for(&mut self, wakes: &mut mpsc::Receiver<Reply>) -> Option<ApiError> {
        loop {
            while self.runs.len() < MAX_AT_ONCE
                && let Some(session) = self.waiting.next()
            {
                let (program, dir) = (self.program.clone(), self.state_dir.clone());
                self.runs.spawn(async move {
                    let outcome = run(&program, &dir, &session, TIME_LIMIT).await;
                    (session, outcome)
                });
            }
            tokio::select! {
                Some(ended) = self.runs.join_next() => {
                    if let Ok((session, outcome)) = ended {
                        self.figures.count(outcome);
                        self.waiting.ended(&session);
                    }
                }
                reply = wakes.recv() => match reply {
                    Some(Reply::Wakes(page)) => {
                        for wake in page.wakes {
                            self.waiting.add(wake.watcher);
                        }
                    }
                    Some(Reply::Error(error)) => return Some(error),
                    Some(_) => {}
                    None => return None,
                },
            }
        }
    }
}

/// Sessions whose command is to run. A wake for a session that waits already is the same
/// wake; for one whose command runs it is another.
#[derive(Debug, Default)]
struct Waiting {
    sessions: BTreeSet<SessionKey>,
    running: HashSet<SessionKey>,
}

impl Waiting {
    fn add(&mut self, session: SessionKey) {
        if self.sessions.len() < MAX_WAITING {
            self.sessions.insert(session);
        } else {
            tracing::warn!(%session, "too many wake commands wait: this one is left out");
        }
    }

    /// The next that is not running, which runs from now on.
    fn next(&mut self) -> Option<SessionKey> {
        let free = |session: &&SessionKey| !self.running.contains(*session);
        let session = self.sessions.iter().find(free)?.clone();
        self.sessions.remove(&session);
        self.running.insert(session.clone());
        Some(session)
    }

    fn ended(&mut self, session: &SessionKey) {
        self.running.remove(session);
    }
}

/// Runs the command for one session.
async fn run(program: &Path, dir: &Path, session: &SessionKey, limit: Duration) -> Outcome {
    let started = Command::new(program)
        .arg(session.as_str())
        .env("TIDINGS_STATE_DIR", dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut process = match started {
        Ok(child) => Process(child),
        Err(error) => {
            let program = program.display();
            tracing::warn!(%session, %program, %error, "the wake command cannot be started");
            return Outcome::NotStarted;
        }
    };
    let outcome = match timeout(limit, process.0.wait()).await {
        Ok(Ok(status)) if status.success() => Outcome::Done,
        Ok(Ok(status)) => Outcome::Failed(status),
        Ok(Err(_)) => Outcome::NotStarted,
        Err(_) => Outcome::TimedOut,
    };
    match outcome {
        Outcome::Failed(status) => tracing::warn!(%session, %status, "the wake command failed"),
        Outcome::TimedOut => tracing::warn!(%session, ?limit, "the wake command was ended"),
        Outcome::Done | Outcome::NotStarted => {}
    }
    outcome
}

/// A running command. Whatever it started goes with it.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let id = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = id.and_then(Pid::from_raw) {
            // It fails only where all of them have ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn key(rest: &str) -> SessionKey {
        SessionKey::parse(&format!("agent:main:{rest}")).expect("key")
    }

    #[test]
    fn a_session_waits_once_and_runs_once_at_a_time() {
        let mut waiting = Waiting::default();
        for rest in ["a", "a", "b"] {
            waiting.add(key(rest));
        }
        assert_eq!(waiting.next(), Some(key("a")));
        waiting.add(key("a"));
        assert_eq!(waiting.next(), Some(key("b")));
        assert_eq!(waiting.next(), None, "it runs");
        waiting.ended(&key("a"));
        assert_eq!(waiting.next(), Some(key("a")), "woken again meanwhile");
        waiting.ended(&key("a"));
        assert_eq!(waiting.next(), None);
    }

    #[tokio::test]
    async fn a_run_ends_well_or_badly_or_is_ended_or_never_begins() {
        let dir = tempfile::tempdir().expect("directory");
        let script = |name: &str, body: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("written");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).expect("mode");
            path
        };
        let said = dir.path().join("said");
        let good = script(
            "good",
            &format!(
                "echo \"$#\" \"$1\" \"$TIDINGS_STATE_DIR\" > {}",
                said.display()
            ),
        );
        let bad = script("bad", "exit 3");
        let hangs = script("hangs", "sleep 600 & wait");
        let long = Duration::from_mins(1);
        let state_dir = Path::new("/the/state");
        let outcome = run(&good, state_dir, &key("a"), long).await;
        assert_eq!(outcome, Outcome::Done);
        let written = std::fs::read_to_string(&said).expect("it ran");
        assert_eq!(written, "1 agent:main:a /the/state\n");
        let outcome = run(&bad, state_dir, &key("a"), long).await;
        assert!(matches!(outcome, Outcome::Failed(status) if status.code() == Some(3)));
        let outcome = run(&hangs, state_dir, &key("a"), Duration::from_millis(50)).await;
        assert_eq!(outcome, Outcome::TimedOut);
        let none = dir.path().join("none");
        assert_eq!(
            run(&none, state_dir, &key("a"), long).await,
            Outcome::NotStarted
        );
    }
}
