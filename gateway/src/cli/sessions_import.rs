//! `tidings sessions import`: the sessions of a state directory of the OpenClaw layout.

use std::path::PathBuf;

use clap::Args;
use tidings_node::cli::error::file_error;
use tidings_node::cli::format::size;
use tidings_node::cli::{Column, CommandError, Note, Page, Table};
use tidings_protocol::session_api::{ApiError, ErrorType};

use super::Context;
use super::offline::Offline;
use crate::config::Layers;
use crate::sessions::import::Imported;
use crate::sessions::names;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings sessions import ~/.openclaw")]
pub(super) struct ImportArgs {
    /// The state directory to read, with `agents/<agent>/sessions` in it; it stays as it is
    #[arg(value_name = "DIR")]
    source: PathBuf,
}

pub(super) async fn run(args: ImportArgs, context: &mut Context<'_>) -> Result<(), CommandError> {
    let state_dir = context.common.state_dir()?;
    let source =
        std::fs::canonicalize(&args.source).map_err(|error| file_error(&args.source, &error))?;
    let agents = std::fs::symlink_metadata(names::agents_dir(&source));
    if !agents.is_ok_and(|found| found.is_dir()) {
        let message = format!("there is no directory agents in {}", source.display());
        let hint = "name the state directory itself, such as ~/.openclaw; a link is not followed";
        return Err(ApiError::new(ErrorType::InvalidData, message)
            .with_hint(hint)
            .into());
    }
    if std::fs::canonicalize(&state_dir).is_ok_and(|own| own == source) {
        let message = format!("{} is this gateway's own state directory", source.display());
        return Err(ApiError::new(ErrorType::InvalidRequest, message).into());
    }
    let config = Layers::of_this_process(&state_dir, None)
        .load()
        .map_err(ApiError::from)?;
    let hint = "stop the gateway, import, and start it again";
    let offline = Offline::open(&state_dir, hint).await?;
    let imported = offline.stores.import(&source, &config.config.session).await;
    offline.close().await;
    let imported = imported.map_err(ApiError::from)?;
    context.output.answer(&imported, page)
}

fn page(imported: &Imported) -> Page {
    let table = Table::new([
        Column::left("AGENT"),
        Column::right("NEW ENTRIES"),
        Column::right("STANDING"),
        Column::right("NEW FILES"),
        Column::right("SIZE"),
    ])
    .with_rows(&imported.agents, |agent| {
        [
            agent.agent_id.clone(),
            agent.entries.to_string(),
            agent.standing.to_string(),
            agent.files.to_string(),
            size(agent.bytes),
        ]
    });
    let left_out = imported.left_out.iter().map(|left| {
        Note::Warning(format!(
            "not taken: {} (agent {}): {}",
            left.what, left.agent_id, left.reason
        ))
    });
    left_out.fold(Page::of(table), Page::with)
}
