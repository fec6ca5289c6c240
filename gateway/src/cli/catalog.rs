//! `tidings catalog`: the threads that agent programs wrote on all machines.

use clap::{Args, Subcommand};
use tidings_node::cli::common::catalog_parser;
use tidings_node::cli::format::{size, utc};
use tidings_node::cli::{Column, CommandError, Note, Page, Table};
use tidings_protocol::Catalog;
use tidings_protocol::session_api::{CatalogList, CatalogThread, CatalogThreads, Request};

use super::args::host_parser;
use super::client::answer;
use super::{Context, suggest};

#[derive(Debug, Subcommand)]
pub(super) enum CatalogCommand {
    /// Lists threads on all machines, newest first
    List(ListArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings catalog list --host laptop --catalog claude")]
pub(super) struct ListArgs {
    /// Only of this machine: `local`, a node's name or its id
    #[arg(long, value_parser = host_parser())]
    host: Option<String>,
    /// Only of this family of agent programs
    #[arg(long, value_parser = catalog_parser())]
    catalog: Option<Catalog>,
    /// With titles made of the first prompt where the program wrote none
    #[arg(long)]
    titles: bool,
}

pub(super) async fn run(
    command: CatalogCommand,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let CatalogCommand::List(args) = command;
    let request = Request::CatalogList(CatalogList {
        host: args.host.clone(),
        catalog: args.catalog,
        titles: args.titles,
    });
    let threads = match context.client.ask(request, answer!(CatalogList)).await {
        Ok(threads) => threads,
        Err(error) => {
            let host = args.host.as_deref();
            return Err(suggest::hosts(&mut context.client, error, host)
                .await
                .into());
        }
    };
    context.output.answer(&threads, page)
}

fn page(found: &CatalogThreads) -> Page {
    let page = if found.threads.is_empty() {
        Page::empty(
            "no threads found",
            "tidings gateway run --root CATALOG=DIR looks in other directories",
        )
    } else {
        Page::of(table(&found.threads))
    };
    found.errors.iter().fold(page, |page, error| {
        page.with(Note::Warning(format!(
            "{} ({}) was not asked: {}",
            error.node, error.host, error.message
        )))
    })
}

fn table(threads: &[CatalogThread]) -> Table<8> {
    Table::new([
        Column::left("CATALOG"),
        Column::left("HOST"),
        Column::left("THREAD"),
        Column::left("CHANGED (UTC)"),
        Column::right("SIZE"),
        Column::left("ADOPTED AS").where_filled(),
        Column::left("DIRECTORY").where_filled(),
        Column::left("TITLE").where_filled(),
    ])
    .with_rows(threads, |thread| {
        [
            thread.catalog.to_string(),
            thread.node.to_string(),
            thread.thread_id.to_string(),
            utc(thread.updated_at),
            size(thread.size_bytes),
            thread
                .adopted_as
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            thread.cwd.clone().unwrap_or_default(),
            thread.title.clone().unwrap_or_default(),
        ]
    })
}
