//! The command line of `tidings-node`: one file per verb.

mod approval;
mod certificate;
mod classify;
mod doctor;
mod join;
mod join_link;
mod leave;
mod run;
mod status;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use super::error::EXIT_CODES;
use super::logging::{self, DefaultLevel};
use super::manual::{self, ManualCommand};
use super::programs::{HookArgs, IntegrateArgs, integrate, run_mcp};
use super::{CommandError, CommonArgs, usage};
use crate::local::socket::NODE_SOCKET;
use crate::programs::hook;

pub use join::Paired;
pub use run::NodeRunOptions;

/// Follows the transcripts of this machine for a Tidings gateway on another
#[derive(Debug, Parser)]
#[command(
    name = "tidings-node",
    version,
    max_term_width = 100,
    after_help = format!("Begin with:\n  tidings-node join LINK\n  tidings-node run\n\n{EXIT_CODES}")
)]
struct Cli {
    #[command(flatten)]
    common: CommonArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Pairs this machine with a gateway
    Join(join::JoinArgs),
    /// Makes a signing request for this machine's key, which stays here
    Request(certificate::RequestArgs),
    /// Runs the node agent until it is told to stop
    Run(run::RunArgs),
    /// Gives up the pairing: this machine can join anew, as another node
    #[command(after_help = "Example:\n  tidings-node leave")]
    Leave,
    /// The node agent of this machine at a glance
    #[command(after_help = "Example:\n  tidings-node status")]
    Status,
    /// What is wrong on this machine, and the command that mends it
    Doctor(doctor::DoctorArgs),
    /// Has an agent program on this machine call the hooks and the session tools
    Integrate(IntegrateArgs),
    /// A hook of an agent program on this machine
    Hook(HookArgs),
    /// The session tools of an agent program, by MCP on standard input and output
    #[command(after_help = "An agent program starts it by itself: see integrate")]
    Mcp,
    /// Says which records of a transcript are a human speaking, and by which rule
    Classify(classify::ClassifyArgs),
    #[command(flatten)]
    Manual(ManualCommand),
}

/// Runs the command that the process's arguments name, and gives its exit code.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(hook) = hook::plain(&arguments, NODE_SOCKET) {
        return hook::run(&hook);
    }
    let cli: Cli = match usage::parse(&arguments) {
        Ok(cli) => cli,
        Err(code) => return hook::code_of_refusal(&arguments, code),
    };
    let output = cli.common.output();
    let Some(command) = cli.command else {
        return usage::without_command::<Cli>(output);
    };
    logging::start(match command {
        Command::Run(_) => DefaultLevel::Info,
        _ => DefaultLevel::Warn,
    });
    match run(command, &cli.common) {
        Ok(code) => code,
        Err(error) => error.report(output),
    }
}

fn run(command: Command, common: &CommonArgs) -> Result<ExitCode, CommandError> {
    let done = match command {
        Command::Join(args) => join::run(args, common),
        Command::Request(args) => certificate::request(&args, common),
        Command::Run(args) => run::run(&args.into_options(common)?),
        Command::Leave => leave::run(common),
        Command::Status => status::run(common),
        Command::Doctor(args) => doctor::run(&args, common),
        Command::Hook(args) => return Ok(hook::run(&args.into_hook(common, NODE_SOCKET))),
        Command::Integrate(args) => integrate(&args, common, "tidings-node"),
        Command::Mcp => run_mcp(common, status::door(common)?),
        Command::Classify(args) => classify::run(&args, common.output()),
        Command::Manual(command) => manual::run::<Cli>(&command, common.output()),
    };
    done.map(|()| ExitCode::SUCCESS)
}
