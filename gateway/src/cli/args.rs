//! The verbs of `tidings`, one level deep: each verb's own arguments are in its file.

use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
use clap::{Parser, Subcommand};
use tidings_node::cli::CommonArgs;
use tidings_node::cli::error::EXIT_CODES;
use tidings_node::cli::manual::ManualCommand;
use tidings_node::cli::programs::{HookArgs, IntegrateArgs};
use tidings_protocol::Host;

use super::backup::BackupArgs;
use super::catalog::CatalogCommand;
use super::cert::CertCommand;
use super::chat::ChatArgs;
use super::config::ConfigCommand;
use super::doctor::DoctorArgs;
use super::endings::AgentsCommand;
use super::logs::LogsArgs;
use super::nodes::NodesCommand;
use super::notices::NoticesCommand;
use super::run_options::{GatewayRunArgs, QuickstartArgs};
use super::session_pages::host_name;
use super::sessions::SessionsCommand;
use super::signals::SignalsCommand;
use super::token::TokenCommand;
use super::watch::WatchCommand;

/// Tells an agent session, once and in time, that somebody else changed a session it
/// depends on
#[derive(Debug, Parser)]
#[command(
    name = "tidings",
    version,
    max_term_width = 100,
    subcommand_value_name = "COMMAND",
    after_help = format!("Begin with:\n  tidings quickstart\n\n{EXIT_CODES}")
)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) common: CommonArgs,
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Shows the main job on this machine in one go
    Quickstart(QuickstartArgs),
    /// The gateway process
    #[command(subcommand)]
    Gateway(GatewayCommand),
    /// What is configured, and where it comes from
    #[command(subcommand)]
    Config(ConfigCommand),
    /// What the gateway wrote into its log
    Logs(LogsArgs),
    #[command(flatten)]
    Asking(Asking),
    /// Has an agent program on this machine call the hooks and the session tools
    Integrate(IntegrateArgs),
    /// A hook of an agent program on this machine
    Hook(HookArgs),
    /// The session tools of an agent program, by MCP on standard input and output
    #[command(after_help = "An agent program starts it by itself: see integrate")]
    Mcp,
    #[command(flatten)]
    Manual(ManualCommand),
}

/// Reads a host as requests name it. `gateway:local` and `node:<id>`, as documents have it, are
/// understood too.
pub(super) fn host_parser() -> impl TypedValueParser<Value = String> {
    NonEmptyStringValueParser::new().map(|text| match Host::parse(&text) {
        Ok(host) => host_name(&host),
        Err(_) => text,
    })
}

/// A place in the log.
pub(super) fn parse_sequence(text: &str) -> Result<u64, &'static str> {
    text.parse()
        .map_err(|_| "a sequence is a whole number, such as tidings signals list shows")
}

#[derive(Debug, Subcommand)]
pub(super) enum GatewayCommand {
    /// Runs the gateway until it is told to stop
    Run(GatewayRunArgs),
}

/// The verbs that ask a gateway that runs already.
#[derive(Debug, Subcommand)]
pub(super) enum Asking {
    /// The gateway, its nodes and its links at a glance
    #[command(after_help = "Example:\n  tidings status")]
    Status,
    /// What is wrong, and the command that mends it
    Doctor(DoctorArgs),
    /// Copies the state database to a new file
    Backup(BackupArgs),
    /// The machines whose transcripts are followed
    #[command(subcommand)]
    Nodes(NodesCommand),
    /// Certificates for machines that are set up by the dozen, or out of reach
    #[command(subcommand)]
    Cert(CertCommand),
    /// Tokens for programs that ask over HTTP
    #[command(subcommand)]
    Token(TokenCommand),
    /// The threads that agent programs wrote on all machines
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// Agents, and all that is theirs
    #[command(subcommand)]
    Agents(AgentsCommand),
    /// Sessions: threads taken into the gateway under a session key
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Talks to a session that the gateway runs against a model
    Chat(ChatArgs),
    /// Who is told of changes to which session
    #[command(subcommand)]
    Watch(WatchCommand),
    /// The lines that tell a watcher of a change
    #[command(subcommand)]
    Notices(NoticesCommand),
    /// The durable log of what happened to sessions
    #[command(subcommand)]
    Signals(SignalsCommand),
}
