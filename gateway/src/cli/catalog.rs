//! `tidings catalog`: the threads that agent programs wrote on all machines.

use std::pin::pin;
use std::time::Duration;

use clap::{Args, Subcommand};
use tidings_node::cli::common::catalog_parser;
use tidings_node::cli::format::{size, utc};
use tidings_node::cli::{Column, CommandError, Note, Page, Table};
use tidings_protocol::Catalog;
use tidings_protocol::session_api::{CatalogList, CatalogThread, CatalogThreads, Request};

use super::args::host_parser;
use super::client::answer;
use super::{Context, suggest};

/// How often somebody who waits for a long list is told that it is on its way.
const SAY_EVERY: Duration = Duration::from_secs(3);

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
    let asked = context.client.ask(request, answer!(CatalogList));
    let asked = patiently(asked, SAY_EVERY, |waited| {
        context.output.note(&Note::Info(format!(
            "still listing after {} s: the machines look through their transcripts",
            waited.as_secs()
        )));
    });
    let threads = match asked.await {
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

/// Waits, and says so every few seconds.
async fn patiently<T>(
    asked: impl Future<Output = T>,
    every: Duration,
    say: impl Fn(Duration),
) -> T {
    let mut asked = pin!(asked);
    let mut waited = Duration::ZERO;
    loop {
        if let Ok(answer) = tokio::time::timeout(every, &mut asked).await {
            return answer;
        }
        waited += every;
        say(waited);
    }
}

fn page(found: &CatalogThreads) -> Page {
    let page = if found.threads.is_empty() && !found.errors.is_empty() {
        Page::empty(
            "no threads found on the machines that could be asked",
            "tidings nodes list shows which are connected; tidings-node run on a machine starts its agent",
        )
    } else if found.threads.is_empty() {
        Page::empty(
            "no threads found",
            "tidings gateway run --root CATALOG=DIR looks in other directories",
        )
    } else {
        Page::of(table(&found.threads))
    };
    found.errors.iter().fold(page, |page, error| {
        let is_listed = found.threads.iter().any(|row| row.host == error.host);
        let what = if is_listed {
            "is not listed whole"
        } else {
            "was not asked"
        };
        page.with(Note::Warning(format!(
            "{} ({}) {what}: {}",
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

#[tokio::test]
async fn who_waits_long_is_told_so_again_and_again() {
    let (told, mut heard) = tokio::sync::mpsc::channel(100);
    let every = Duration::from_millis(1);
    let asked = async {
        let mut times = Vec::new();
        while times.len() < 3 {
            times.extend(heard.recv().await);
        }
        times
    };
    let times = patiently(asked, every, |waited| {
        // It hears only the first three.
        let _ = told.try_send(waited);
    })
    .await;
    assert_eq!(times, [every, every * 2, every * 3]);
    assert_eq!(patiently(async { 7 }, every, |_| ()).await, 7);
}
