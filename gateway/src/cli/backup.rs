//! `tidings backup`: a copy of the state database, made while the gateway runs.

use std::path::{Path, PathBuf};

use clap::Args;
use tidings_node::cli::format::size;
use tidings_node::cli::{CommandError, Page};
use tidings_protocol::session_api::{ApiError, BackedUp, Backup, ErrorType, Request};

use super::Context;
use super::client::answer;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings backup /var/backups/tidings.sqlite")]
pub(super) struct BackupArgs {
    /// The new file; one that is there already stays as it is
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) async fn run(args: BackupArgs, context: &mut Context<'_>) -> Result<(), CommandError> {
    let request = Request::Backup(Backup {
        file: absolute(&args.file)?,
    });
    let backed_up = context.client.ask(request, answer!(Backup)).await?;
    context.output.answer(&backed_up, page)
}

/// The path as the gateway understands it: its working directory is another.
fn absolute(file: &Path) -> Result<String, ApiError> {
    let refused = |why: &str| {
        let message = format!("{} cannot be written: {why}", file.display());
        ApiError::new(ErrorType::CannotCreate, message)
    };
    let path = std::path::absolute(file).map_err(|error| refused(&error.to_string()))?;
    let text = path.into_os_string().into_string();
    text.map_err(|_| refused("its path is not valid UTF-8"))
}

fn page(backed_up: &BackedUp) -> Page {
    Page::of(format_args!(
        "{} in {}\n",
        size(backed_up.bytes),
        backed_up.file
    ))
}
