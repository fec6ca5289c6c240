//! The form of a hook that waits in the background while its program is idle, and wakes it
//! with the notices that come: it ends with 2 and has them on standard error. It takes them as
//! the hook of a prompt does, so that what the program does next confirms them.
//!
//! It ends by itself when the program has gone, when the conversation goes on or another hook
//! waits for it, and where nobody adopted the conversation.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use tidings_protocol::session_api::{ApiError, Caller, ErrorType, HookEvent, HookMoment};

use super::super::process::{self, ProcessId};
use super::super::{Program, binding};
use super::ask::{self, Asked};
use super::claim::Claim;
use super::follow::{Said, Wakes};
use super::input::HookInput;
use super::{Hook, Silent, answer, log};
use crate::classify::is_program_entrypoint;

/// How long a hook waits at most.
pub(in super::super) const LIMIT: Duration = Duration::from_hours(24);
/// The code that wakes the program.
const WAKES: u8 = 2;
/// The environment variable in which Claude Code says how it was started.
const ENTRYPOINT_VARIABLE: &str = "CLAUDE_CODE_ENTRYPOINT";
/// How long one look at the wakes takes; between two, it sees whether it is still to wait.
const LOOK: Duration = Duration::from_secs(2);
/// How long the gateway may take to hand out what there is: nobody waits for it.
const PATIENCE: Duration = Duration::from_secs(10);
/// How soon it asks again at first where nobody answers, and at last.
const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// How often the gateway may fail to hand out what it says is there.
const MAX_FAILURES: u32 = 3;

/// Waits, and wakes the program or not.
pub(super) fn run(hook: &Hook, dir: &Path) -> ExitCode {
    let Err(silent) = wait(hook, dir).and_then(|(news, asked)| wake(&news, asked)) else {
        return ExitCode::from(WAKES);
    };
    if let Silent::Because(reason) = silent {
        log::note(dir, hook.program, &reason);
    }
    ExitCode::SUCCESS
}

/// Hands the program its news. Where nobody reads them, they are told at the next prompt.
fn wake(news: &str, asked: Asked) -> Result<(), Silent> {
    let mut out = std::io::stderr().lock();
    writeln!(out, "{news}")
        .and_then(|()| out.flush())
        .map_err(|_| Silent::Nothing)?;
    asked.shown();
    Ok(())
}

/// Whoever waits for a conversation, and until when.
struct Waiter {
    dir: PathBuf,
    socket: PathBuf,
    caller: Caller,
    claim: Claim,
    program: Option<ProcessId>,
    parent: u32,
    until: Instant,
}

fn wait(hook: &Hook, dir: &Path) -> Result<(String, Asked), Silent> {
    let input = HookInput::read(std::io::stdin().lock()).map_err(Silent::because)?;
    if hook.program != Program::ClaudeCode {
        return Err(Silent::because("only Claude Code has hooks that wake it"));
    }
    // Nobody waits at a conversation that a program leads.
    let entrypoint = std::env::var(ENTRYPOINT_VARIABLE).unwrap_or_default();
    if input.is_in_subagent() || is_program_entrypoint(&entrypoint) {
        return Err(Silent::Nothing);
    }
    let thread = input.thread().map_err(Silent::because)?;
    let catalog = hook.program.catalog();
    let claim = Claim::take(dir, catalog, &thread).map_err(Silent::because)?;
    let waiter = Waiter {
        dir: dir.to_owned(),
        socket: dir.join(hook.socket),
        caller: Caller {
            catalog,
            thread_id: thread,
        },
        claim: claim.ok_or(Silent::Nothing)?,
        program: process::of_program(),
        parent: std::os::unix::process::parent_id(),
        until: Instant::now() + LIMIT,
    };
    waiter.news()
}

/// Why there is no news now.
enum Not {
    /// The gateway is away or has no time: it is asked again.
    Reached,
    /// It was not handed out: it is asked again a few times.
    HandedOut(Silent),
    /// There will be none.
    Ever(Silent),
}

impl Waiter {
    /// The news, once there are some.
    fn news(&self) -> Result<(String, Asked), Silent> {
        let (first, longest) = RETRY;
        let mut pause = first;
        let mut failures = 0;
        loop {
            match self.follow(&mut pause) {
                Ok(news) => return Ok(news),
                Err(Not::Ever(silent)) => return Err(silent),
                Err(Not::HandedOut(silent)) => {
                    failures += 1;
                    if failures == MAX_FAILURES {
                        return Err(silent);
                    }
                }
                Err(Not::Reached) => {}
            }
            thread::sleep(pause);
            pause = longest.min(pause * 2);
        }
    }

    /// Follows the wakes until one of them has something to take.
    fn follow(&self, pause: &mut Duration) -> Result<(String, Asked), Not> {
        self.look_around()?;
        let mut wakes = Wakes::of(&self.socket, &self.caller, LOOK).map_err(|_| Not::Reached)?;
        loop {
            let said = wakes.next();
            self.look_around()?;
            match said {
                Ok(Said::Nothing) => {}
                Ok(Said::News) => {
                    if let Some(news) = self.take().map_err(Not::HandedOut)? {
                        return Ok(news);
                    }
                }
                Ok(Said::Error(error)) => return Err(judged(&error)),
                Err(Silent::Nothing) => return Err(Not::Reached),
                Err(silent) => return Err(Not::Ever(silent)),
            }
            *pause = RETRY.0;
        }
    }

    /// Takes what there is; somebody may have been faster.
    fn take(&self) -> Result<Option<(String, Asked)>, Silent> {
        let event = HookEvent::new(HookMoment::Woken);
        let asked = ask::ask(&self.socket, &self.caller, event, PATIENCE)?;
        Ok(answer::news(&asked.told.turn).map(|news| (news, asked)))
    }

    /// Whether it is still to wait: somebody is there to be woken, in this conversation, and
    /// nobody else does it.
    fn look_around(&self) -> Result<(), Not> {
        let own = &self.caller.thread_id;
        let needed = Instant::now() < self.until
            && self.claim.stands()
            && std::os::unix::process::parent_id() == self.parent
            && self.program.as_ref().is_none_or(ProcessId::runs)
            && binding::current(&self.dir, self.caller.catalog, own) == *own;
        if needed {
            Ok(())
        } else {
            Err(Not::Ever(Silent::Nothing))
        }
    }
}

/// What follows from the gateway's refusal.
fn judged(error: &ApiError) -> Not {
    match error.error_type {
        // Nobody adopted the conversation.
        ErrorType::NotFound => Not::Ever(Silent::Nothing),
        ErrorType::Unavailable | ErrorType::TryLater | ErrorType::Internal => Not::Reached,
        _ => Not::Ever(Silent::because(error)),
    }
}
