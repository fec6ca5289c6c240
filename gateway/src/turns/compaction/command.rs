//! Commands of the operator: one that summarises, and one that is run before a compaction. Each
//! gets one JSON document on its standard input, has a time limit, and ends with all it started
//! when it is not waited for any more.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::request::{MAX_SUMMARY_BYTES, Summariser, Summarising, SummaryError, SummaryRequest};

/// The variable in which a command finds why the conversation is compacted.
pub const TRIGGER: &str = "TIDINGS_COMPACTION_TRIGGER";

/// A command, and what it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The command, for the shell.
    pub line: String,
    /// What stands in its environment beside the gateway's.
    pub environment: Vec<(&'static str, String)>,
    /// What it reads.
    pub input: Vec<u8>,
    /// How long it may take.
    pub limit: Duration,
}

/// Why a command gave nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// It could not be run.
    #[error("the command could not be run: {0}")]
    Run(#[from] io::Error),
    /// It said that it failed.
    #[error("the command failed: {0}")]
    Failed(ExitStatus),
    /// It printed too much.
    #[error("the command printed more than {MAX_SUMMARY_BYTES} bytes")]
    TooMuch,
    /// It printed no text.
    #[error("what the command printed is not UTF-8")]
    NoText,
    /// It took too long.
    #[error("the command took more than {} s", .0.as_secs())]
    TimedOut(Duration),
}

/// Runs a command to its end, and gives what it printed.
pub async fn run(call: Call) -> Result<String, CommandError> {
    let limit = call.limit;
    match tokio::time::timeout(limit, run_to_the_end(call)).await {
        Ok(printed) => printed,
        Err(_) => Err(CommandError::TimedOut(limit)),
    }
}

async fn run_to_the_end(call: Call) -> Result<String, CommandError> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", &call.line])
        .envs(call.environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // What it says there may be anybody's words.
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let group = Group::of(&child);
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let writing = async {
        if let Some(mut stdin) = stdin {
            // Whoever does not read it has ended, or says so by its exit.
            let _ = stdin.write_all(&call.input).await;
        }
    };
    let reading = async {
        let mut printed = Vec::new();
        if let Some(stdout) = stdout {
            let limit = MAX_SUMMARY_BYTES as u64 + 1;
            stdout.take(limit).read_to_end(&mut printed).await?;
        }
        if printed.len() > MAX_SUMMARY_BYTES {
            return Err(CommandError::TooMuch);
        }
        Ok(printed)
    };
    let ending = async {
        let ((), printed) = tokio::join!(writing, reading);
        let printed = printed?;
        let status = child.wait().await?;
        Ok::<_, CommandError>((printed, status))
    };
    let (printed, status) = ending.await?;
    group.ended();
    if !status.success() {
        return Err(CommandError::Failed(status));
    }
    String::from_utf8(printed).map_err(|_| CommandError::NoText)
}

/// A command with all it started; killed where nobody waits for it any more.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// The command has ended by itself.
    fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may have ended meanwhile.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// A command that summarises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSummariser {
    line: String,
    limit: Duration,
}

impl CommandSummariser {
    /// A command for the shell, and how long it may take.
    #[must_use]
    pub fn new(line: String, limit: Duration) -> Self {
        Self { line, limit }
    }
}

impl Summariser for CommandSummariser {
    fn summarise<'a>(&'a self, request: &'a SummaryRequest) -> Summarising<'a> {
        Box::pin(async move {
            let input = serde_json::to_vec(request)
                .map_err(|error| SummaryError::Failed(error.to_string()))?;
            let call = Call {
                line: self.line.clone(),
                environment: vec![(TRIGGER, request.trigger.to_owned())],
                input,
                limit: self.limit,
            };
            match run(call).await {
                Ok(printed) if printed.trim().is_empty() => Err(SummaryError::Empty),
                Ok(printed) => Ok(printed.trim().to_owned()),
                Err(CommandError::TimedOut(limit)) => Err(SummaryError::TimedOut(limit)),
                Err(error) => Err(SummaryError::Failed(error.to_string())),
            }
        })
    }
}
