//! The verbs for agent programs, which both programs have.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use tidings_protocol::session_api::{ApiError, ErrorType};

use super::state_dir::STATE_DIR_VARIABLE;
use super::{CommandError, CommonArgs, Door, Note, Page};
use crate::programs::Program;
use crate::programs::hook::{Form, Hook};
use crate::programs::integrate::{
    Change, Doing, Integrated, Integration, Rewaking, Scope, Writing, look,
};
use crate::programs::mcp::{self, Mcp};

/// Arguments of `hook`.
#[derive(Debug, Args)]
#[command(
    after_help = "Reads one JSON object from standard input and ends with 0 whatever \
                        happens; with --rewake\nit may end with 2. A program's configuration \
                        names it: see integrate"
)]
pub struct HookArgs {
    /// The agent program
    #[arg(value_parser = program_parser())]
    program: Program,
    /// Waits in the background for news, and ends with 2 to wake the program
    #[arg(long)]
    rewake: bool,
}

impl HookArgs {
    /// The hook that they ask for, answered at this socket.
    pub fn into_hook(self, common: &CommonArgs, socket: &'static str) -> Hook {
        Hook {
            program: self.program,
            form: if self.rewake {
                Form::Rewake
            } else {
                Form::Event
            },
            state_dir: common.state_dir.clone(),
            socket,
        }
    }
}

/// Runs the MCP server of an agent program; `door` is who answers its calls.
pub fn run_mcp(common: &CommonArgs, door: Door) -> Result<(), CommandError> {
    let mcp = Mcp {
        state_dir: common.state_dir()?,
        door,
    };
    Ok(mcp::run(mcp)?)
}

/// Arguments of `integrate`.
#[derive(Debug, Args)]
#[command(
    after_help = "Everything else in the program's configuration stays as it is; a copy of \
                        each file\nthat changes is kept beside it.\n\nExamples:\n  tidings \
                        integrate claude --dry-run\n  tidings integrate claude --rewake\n  \
                        tidings integrate codex --uninstall"
)]
pub struct IntegrateArgs {
    /// The agent program
    #[arg(value_parser = integrated_parser())]
    program: Program,
    /// Whose configuration: this user's, or that of the project in the current directory
    #[arg(long, value_enum, default_value = "user")]
    scope: ScopeArg,
    /// Shows what would change, and changes nothing
    #[arg(long)]
    dry_run: bool,
    /// Also wakes an idle Claude Code for news
    #[arg(long, conflicts_with = "uninstall")]
    rewake: bool,
    /// Takes hooks and MCP server out again
    #[arg(long)]
    uninstall: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScopeArg {
    User,
    Project,
}

/// Edits an agent program's configuration so that it calls `own_name`.
pub fn integrate(
    args: &IntegrateArgs,
    common: &CommonArgs,
    own_name: &'static str,
) -> Result<(), CommandError> {
    let from_environment = || {
        let dir = std::env::var_os(STATE_DIR_VARIABLE).filter(|dir| !dir.is_empty());
        dir.map(PathBuf::from)
    };
    let (scope, state_dir) = match args.scope {
        // A program may not hand this on to what it starts.
        ScopeArg::User => (
            Scope::User,
            common.state_dir.clone().or_else(from_environment),
        ),
        ScopeArg::Project => (Scope::Project, common.state_dir.clone()),
    };
    if args.rewake && args.program != Program::ClaudeCode {
        return Err(ApiError::new(
            ErrorType::InvalidRequest,
            "Codex has no hook that wakes it: --rewake is for claude",
        )
        .with_hint("wake.command starts a program of yours for each wake")
        .into());
    }
    let integration = Integration {
        program: args.program,
        rewaking: if args.rewake {
            Rewaking::Asked
        } else {
            Rewaking::AsItStands
        },
        scope,
        own_name,
        state_dir,
    };
    let doing = if args.uninstall {
        Doing::Uninstall
    } else {
        Doing::Install
    };
    let writing = if args.dry_run {
        Writing::Show
    } else {
        Writing::Apply
    };
    let integrated = integration.run(doing, writing)?;
    common.output().answer(&integrated, page)
}

fn page(integrated: &Integrated) -> Page {
    let mut text = String::new();
    for file in &integrated.files {
        let would = if integrated.dry_run { "would be " } else { "" };
        let what = match file.change {
            Change::None => "is as it should be".to_owned(),
            Change::Created => format!("{would}created"),
            Change::Edited => format!("{would}edited"),
            Change::Removed => format!("{would}removed: nothing is left in it"),
        };
        let _ = writeln!(text, "{} {what}", file.path.display());
        for line in &file.difference {
            let _ = writeln!(text, "  {line}");
        }
        if let Some(backup) = &file.backup {
            let _ = writeln!(text, "  what it was: {}", backup.display());
        }
    }
    let notes = integrated.notes.iter().cloned().map(Note::Info);
    notes.fold(Page::of(text), Page::with)
}

/// Reads a program's name as `integrate` has it: that of its catalog, or of its hook.
fn integrated_parser() -> impl TypedValueParser<Value = Program> {
    let names =
        Program::ALL.map(|program| PossibleValue::new(look::verb(program)).alias(program.as_str()));
    PossibleValuesParser::new(names).try_map(|name| {
        let is_meant = |program: &Program| look::verb(*program) == name || program.as_str() == name;
        Program::ALL
            .into_iter()
            .find(is_meant)
            .ok_or("not a program")
    })
}

/// Reads a program's name; clap shows the names there are.
fn program_parser() -> impl TypedValueParser<Value = Program> {
    PossibleValuesParser::new(Program::ALL.map(Program::as_str))
        .try_map(|name| Program::parse(&name).ok_or("not a program"))
}
