//! The verbs of `tidings`, one level deep: each verb's own arguments are in its file.

use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
use clap::{Parser, Subcommand};
use tidings_node::cli::CommonArgs;
use tidings_node::cli::manual::ManualCommand;
use tidings_protocol::Host;

use super::backup::BackupArgs;
use super::catalog::CatalogCommand;
use super::cert::CertCommand;
use super::config::ConfigCommand;
use super::doctor::DoctorArgs;
use super::endings::AgentsCommand;
use super::nodes::NodesCommand;
use super::notices::NoticesCommand;
use super::run_options::{GatewayRunArgs, QuickstartArgs};
use super::session_pages::host_name;
use super::sessions::SessionsCommand;
use super::signals::SignalsCommand;
use super::watch::WatchCommand;

/// Tells an agent session, once and in time, that somebody else changed a session it
/// depends on
#[derive(Debug, Parser)]
#[command(
    name = "tidings",
    version,
    max_term_width = 100,
    subcommand_value_name = "COMMAND",
    after_help = "Begin with:\n  tidings quickstart"
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
    #[command(flatten)]
    Asking(Asking),
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
    /// The threads that agent programs wrote on all machines
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// Agents, and all that is theirs
    #[command(subcommand)]
    Agents(AgentsCommand),
    /// Sessions: threads taken into the gateway under a session key
    #[command(subcommand)]
    Sessions(SessionsCommand),
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
