//! A hook of an agent program: one process per event, which must neither be slow nor fail.
//! It says what happened, hands on what the turn takes, and ends with 0 whatever happens. In
//! its other form it waits in the background for news, and ends with 2 to wake its program.

mod answer;
mod ask;
mod claim;
mod follow;
mod input;
mod log;
mod rewake;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tidings_protocol::ThreadId;
use tidings_protocol::session_api::{Caller, HookEvent, HookMoment};

use super::Program;
use super::binding::{self, Began};
use crate::cli::state_dir::state_dir;
use ask::Asked;
pub(super) use claim::sweep;
use input::{HookInput, Source};
pub(super) use rewake::LIMIT as REWAKE_LIMIT;

/// The verb.
pub const VERB: &str = "hook";
/// The argument of the form that wakes.
pub const REWAKE: &str = "--rewake";
/// How long a hook may take, everything included: its program waits for it.
const BUDGET: Duration = Duration::from_millis(250);
/// How much longer a program may take to read an answer that is being written.
const WRITE_GRACE: Duration = Duration::from_millis(250);

/// What a hook is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Say what happened, and hand on what the turn takes.
    Event,
    /// Wait for news in the background, and wake the program with it.
    Rewake,
}

/// A hook to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// The program that it is a hook of.
    pub program: Program,
    /// What it is to do.
    pub form: Form,
    /// The state directory, where one was given.
    pub state_dir: Option<PathBuf>,
    /// The socket in the state directory that answers.
    pub socket: &'static str,
}

/// The hook that a command line asks for in its plain form, which needs no parser: `hook
/// PROGRAM`, with or without `--rewake`, `--state-dir DIR` and `--json`. `None` for everything else.
pub fn plain(arguments: &[OsString], socket: &'static str) -> Option<Hook> {
    let mut words = arguments.iter().skip(1);
    if words.next()? != VERB {
        return None;
    }
    let mut hook = Hook {
        program: Program::parse(words.next()?.to_str()?)?,
        form: Form::Event,
        state_dir: None,
        socket,
    };
    while let Some(word) = words.next() {
        match word.to_str()? {
            "--json" => {}
            REWAKE => hook.form = Form::Rewake,
            "--state-dir" => hook.state_dir = Some(words.next()?.into()),
            word => hook.state_dir = Some(word.strip_prefix("--state-dir=")?.into()),
        }
    }
    Some(hook)
}

/// With which code a command line ends that is none, given the code that any other would end
/// with: a program takes a failed hook for a refusal, so a hook of a known program never fails.
pub fn code_of_refusal(arguments: &[OsString], code: ExitCode) -> ExitCode {
    let word = |at: usize| arguments.get(at).and_then(|word| word.to_str());
    match (word(1), word(2).and_then(Program::parse)) {
        (Some(VERB), Some(_)) => ExitCode::SUCCESS,
        _ => code,
    }
}

/// Why a hook says nothing.
#[derive(Debug, thiserror::Error)]
enum Silent {
    /// Nothing is to be said, and nothing is wrong.
    #[error("nothing to say")]
    Nothing,
    /// Something is wrong, and its log says what. Never the program's words.
    #[error("{0}")]
    Because(String),
}

impl Silent {
    fn because(reason: impl std::fmt::Display) -> Self {
        Self::Because(reason.to_string())
    }
}

/// Runs a hook. There is no way for it to fail: one that waits ends with 2 to wake its
/// program, and everything else ends with 0.
pub fn run(hook: &Hook) -> ExitCode {
    let Ok(dir) = state_dir(hook.state_dir.as_deref()) else {
        return ExitCode::SUCCESS;
    };
    match hook.form {
        Form::Event => {
            tell(hook, &dir);
            ExitCode::SUCCESS
        }
        Form::Rewake => rewake::run(hook, &dir),
    }
}

/// Says what happened, and hands on what the turn takes.
fn tell(hook: &Hook, dir: &Path) {
    let turn = Arc::new(AtomicBool::new(false));
    watch_the_time(turn.clone(), dir.to_owned(), hook.program);
    let end = attempt(hook, dir);
    // Whoever is first has the last word: after the budget nothing is written any more, and
    // what is being written is written whole.
    if turn.swap(true, Ordering::AcqRel) {
        loop {
            thread::park();
        }
    }
    match end {
        Ok((None, asked)) => asked.shown(),
        Ok((Some(answer), asked)) => {
            let mut out = std::io::stdout().lock();
            // Whoever does not read it has gone, and is told again when it is back.
            if out
                .write_all(answer.as_bytes())
                .and_then(|()| out.flush())
                .is_ok()
            {
                asked.shown();
            }
        }
        Err(Silent::Nothing) => {}
        Err(Silent::Because(reason)) => log::note(dir, hook.program, &reason),
    }
}

/// Ends the process when its time is over, whatever it waits for.
fn watch_the_time(turn: Arc<AtomicBool>, dir: PathBuf, program: Program) {
    let watch = move || {
        thread::sleep(BUDGET);
        if turn.swap(true, Ordering::AcqRel) {
            thread::sleep(WRITE_GRACE);
        } else {
            log::note(&dir, program, &format!("no answer within {BUDGET:?}"));
        }
        std::process::exit(0);
    };
    // Without a thread the sockets' own limits hold.
    let _ = thread::Builder::new().spawn(watch);
}

/// What the program is to be told, where it does not know it yet, and who told it.
fn attempt(hook: &Hook, dir: &Path) -> Result<(Option<String>, Asked), Silent> {
    let input = HookInput::read(std::io::stdin().lock()).map_err(Silent::because)?;
    if goes_on(&input)
        && let Ok(thread) = input.thread()
    {
        claim::end(dir, hook.program.catalog(), &thread);
    }
    let Some(mut event) = input.event() else {
        return Err(Silent::Nothing);
    };
    let thread = input.thread().map_err(Silent::because)?;
    let spoken_for = match event.moment {
        HookMoment::SessionStart => began(hook, dir, &input, thread, &mut event)?,
        _ => thread,
    };
    let caller = Caller {
        catalog: hook.program.catalog(),
        thread_id: spoken_for,
    };
    let socket = dir.join(hook.socket);
    let mut asked = ask::ask(&socket, &caller, event, BUDGET)?;
    if asked.told.turn.token.is_none() {
        return Err(Silent::Nothing);
    }
    // What woke the program is its prompt: it is not told twice.
    let notices = &mut asked.told.turn.notices;
    notices.retain(|notice| !input.prompt_has(&notice.text));
    let answer = answer::answer(input.name(), &asked.told.turn);
    Ok((answer, asked))
}

/// True for an event after which nobody has to wake the conversation.
fn goes_on(input: &HookInput) -> bool {
    matches!(input.name(), "UserPromptSubmit" | "SessionEnd") && !input.is_in_subagent()
}

/// Notes where the program is now. A conversation that was cleared away is what the gateway
/// is told of: the one that took its place is known to nobody yet.
fn began(
    hook: &Hook,
    dir: &Path,
    input: &HookInput,
    thread: ThreadId,
    event: &mut HookEvent,
) -> Result<ThreadId, Silent> {
    let began = match input.source() {
        Source::Startup => Began::Anew,
        Source::Clear => Began::Cleared,
        Source::Other => Began::Instead,
    };
    let catalog = hook.program.catalog();
    let left = binding::enter(dir, catalog, (&thread, began)).map_err(Silent::because)?;
    if let Some(left) = &left {
        claim::end(dir, catalog, left);
    }
    match left {
        Some(left) if began == Began::Cleared => {
            event.moment = HookMoment::SessionCleared;
            Ok(left)
        }
        _ => Ok(thread),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Option<Hook> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        plain(&words, "s.sock")
    }

    #[test]
    fn the_plain_form_is_read_without_a_parser_and_everything_else_is_left_to_it() {
        let hook = |program, dir: Option<&str>| Hook {
            program,
            form: Form::Event,
            state_dir: dir.map(PathBuf::from),
            socket: "s.sock",
        };
        for (words, expected) in [
            (
                &["t", "hook", "claude-code"][..],
                Some(hook(Program::ClaudeCode, None)),
            ),
            (
                &["t", "hook", "codex", "--json", "--state-dir", "/a b"],
                Some(hook(Program::Codex, Some("/a b"))),
            ),
            (
                &["t", "hook", "codex", "--state-dir=/s"],
                Some(hook(Program::Codex, Some("/s"))),
            ),
            (
                &["t", "hook", "claude-code", "--rewake", "--state-dir", "/s"],
                Some(Hook {
                    form: Form::Rewake,
                    ..hook(Program::ClaudeCode, Some("/s"))
                }),
            ),
            (&["t", "hook", "codex", "--help"], None),
            (&["t", "hook", "codex", "--state-dir"], None),
            (&["t", "hook", "cursor"], None),
            (&["t", "hook"], None),
            (&["t", "status"], None),
            (&["t"], None),
        ] {
            assert_eq!(read(words), expected, "{words:?}");
        }
    }
}
