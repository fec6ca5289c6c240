//! The operators' command line: `tidings`.
//!
//! Each verb is one file: its arguments, what it asks of the gateway, and the page that
//! people see. The gateway's socket is the only way in; nothing here opens the database.

mod args;
mod backup;
mod catalog;
mod cert;
mod cert_pages;
mod chat;
mod client;
mod compacting;
mod config;
mod doctor;
mod endings;
mod gateway_run;
mod history;
mod listen;
mod logs;
mod node_pages;
mod nodes;
mod notices;
mod offline;
mod qr;
mod quickstart;
mod run_options;
mod sample;
mod scratch;
mod sending;
mod session_pages;
mod session_runs;
mod sessions;
mod sessions_cleanup;
mod sessions_import;
mod signals;
mod signals_follow;
mod state_files;
mod status;
mod suggest;
mod text;
mod token;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use tidings_node::cli::logging::{self, DefaultLevel};
use tidings_node::cli::programs::{integrate, run_mcp};
use tidings_node::cli::{CommandError, CommonArgs, Note, Output, manual, usage};
use tidings_node::local::socket::GATEWAY_SOCKET;
use tidings_node::programs::hook;
use tidings_protocol::session_api::{ApiError, ErrorType};

use args::{Asking, Cli, Command, GatewayCommand};
use client::Client;
pub use run_options::{
    DEFAULT_HTTP, DEFAULT_LISTEN, HttpOption, LocalNode, QuickstartEnd, QuickstartOptions,
    RunOptions,
};

/// Runs the command that the process's arguments name, and gives its exit code.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(hook) = hook::plain(&arguments, GATEWAY_SOCKET) {
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
        Command::Gateway(_) => DefaultLevel::Info,
        _ => DefaultLevel::Warn,
    });
    match run(command, &cli.common) {
        Ok(code) => code,
        Err(error) => error.report(output),
    }
}

fn run(command: Command, common: &CommonArgs) -> Result<ExitCode, CommandError> {
    let done = match command {
        Command::Quickstart(args) => quickstart::run(&args.into_options(common)?),
        Command::Gateway(GatewayCommand::Run(args)) => gateway_run::run(args.into_options(common)?),
        Command::Hook(args) => {
            return Ok(hook::run(&args.into_hook(common, GATEWAY_SOCKET)));
        }
        Command::Integrate(args) => integrate(&args, common, "tidings"),
        Command::Mcp => run_mcp(common, Client::new(common)?.into_door()),
        Command::Config(command) => config::run(command, common),
        Command::Logs(args) => logs::run(&args, common),
        Command::Manual(command) => manual::run::<Cli>(&command, common.output()),
        Command::Asking(command) => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| {
                    let message = format!("the command cannot start: {error}");
                    ApiError::new(ErrorType::Internal, message)
                })?;
            let mut context = Context {
                client: Client::new(common)?,
                output: common.output(),
                common,
            };
            runtime.block_on(ask(command, &mut context))
        }
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// What a command that asks the gateway works with.
struct Context<'a> {
    client: Client,
    output: Output,
    common: &'a CommonArgs,
}

impl Context<'_> {
    /// Says something beside the answer, where there is something to say.
    fn note(&self, note: Option<Note>) {
        if let Some(note) = note {
            self.output.note(&note);
        }
    }
}

async fn ask(command: Asking, context: &mut Context<'_>) -> Result<(), CommandError> {
    match command {
        Asking::Status => status::run(context).await,
        Asking::Doctor(args) => doctor::run(args, context).await,
        Asking::Backup(args) => backup::run(args, context).await,
        Asking::Nodes(command) => nodes::run(command, context).await,
        Asking::Cert(command) => cert::run(command, context).await,
        Asking::Token(command) => token::run(command, context).await,
        Asking::Catalog(command) => catalog::run(command, context).await,
        Asking::Agents(command) => endings::run(command, context).await,
        Asking::Sessions(command) => sessions::run(command, context).await,
        Asking::Chat(args) => Box::pin(chat::run(args, context)).await,
        Asking::Watch(command) => watch::run(command, context).await,
        Asking::Notices(command) => notices::run(command, context).await,
        Asking::Signals(command) => signals::run(command, context).await,
    }
}
