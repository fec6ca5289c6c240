//! `tidings watch`: who is told of changes to which session.

use clap::{Args, Subcommand};
use tidings_node::cli::format::utc;
use tidings_node::cli::{Column, CommandError, Note, OutputFormat, Page, Table};
use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{
    Request, Watch, WatchFilter, WatchPair, WatchRemoved, Watched, Watches,
};

use super::client::answer;
use super::session_pages::watch_line;
use super::{Context, suggest};

#[derive(Debug, Subcommand)]
pub(super) enum WatchCommand {
    /// Has a session told of what others change in another, from now on
    #[command(after_help = "Example:\n  \
        tidings watch add agent:main:main agent:main:adopted:claude:laptop:0a1b2c3d")]
    Add(PairArgs),
    /// Ends a watch
    #[command(after_help = "Example:\n  \
        tidings watch remove agent:main:main agent:main:adopted:claude:laptop:0a1b2c3d")]
    Remove(PairArgs),
    /// Lists watches
    List(ListArgs),
}

#[derive(Debug, Args)]
pub(super) struct PairArgs {
    /// The session that is told
    #[arg(value_name = "WATCHER")]
    watcher: SessionKey,
    /// The session it depends on
    #[arg(value_name = "TARGET")]
    target: SessionKey,
    /// The agent of a target that names none; else the default agent
    #[arg(long, value_name = "AGENT")]
    target_agent: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings watch list --watcher agent:main:main")]
pub(super) struct ListArgs {
    /// Only of this watcher
    #[arg(long, value_name = "KEY")]
    watcher: Option<SessionKey>,
    /// Only on this target
    #[arg(long, value_name = "KEY")]
    target: Option<SessionKey>,
}

impl PairArgs {
    fn into_pair(self) -> WatchPair {
        WatchPair {
            watcher: Some(self.watcher),
            target: self.target,
            target_agent: self.target_agent,
        }
    }
}

pub(super) async fn run(
    command: WatchCommand,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    match command {
        WatchCommand::Add(args) => add(args.into_pair(), context).await,
        WatchCommand::Remove(args) => {
            let request = Request::WatchRemove(args.into_pair());
            let removed = context.client.ask(request, answer!(WatchRemove)).await?;
            context.output.answer(&removed, removed_page)
        }
        WatchCommand::List(args) => {
            let request = Request::WatchList(WatchFilter {
                watcher: args.watcher.clone(),
                target: args.target.clone(),
            });
            let watches = context.client.ask(request, answer!(WatchList)).await?;
            if watches.watches.is_empty() {
                for key in args.watcher.iter().chain(&args.target) {
                    suggest::unknown_session(context, key).await;
                }
            }
            context.output.answer(&watches, list_page)
        }
    }
}

async fn add(pair: WatchPair, context: &mut Context<'_>) -> Result<(), CommandError> {
    let target = pair.target.clone();
    let client = &mut context.client;
    let watched = match client.ask(Request::WatchAdd(pair), answer!(WatchAdd)).await {
        Ok(watched) => watched,
        Err(error) => {
            return Err(suggest::sessions(client, error, target.as_str())
                .await
                .into());
        }
    };
    // Refused is an answer, not an error; people may have misspelt the target.
    let hint = if !watched.watched && context.output.format() == OutputFormat::Human {
        suggest::session_hint(client, target.as_str()).await
    } else {
        None
    };
    context.output.answer(&watched, |watched| {
        let page = added_page(watched);
        hint.into_iter().map(Note::Hint).fold(page, Page::with)
    })
}

fn added_page(watched: &Watched) -> Page {
    Page::of(format_args!("{}\n", watch_line(watched)))
}

fn removed_page(removed: &WatchRemoved) -> Page {
    if removed.removed {
        Page::of("removed\n")
    } else {
        Page::of("not removed: there is no such watch\n")
            .with(Note::Hint("tidings watch list".to_owned()))
    }
}

fn list_page(page: &Watches) -> Page {
    if page.watches.is_empty() {
        return Page::empty("no watches", "tidings watch add WATCHER TARGET");
    }
    let table = Table::new([
        Column::left("WATCHER"),
        Column::left("TARGET"),
        Column::left("BY"),
        Column::right("SEEN"),
        Column::right("TOLD"),
        Column::right("NEWEST"),
        Column::left("NOTICE"),
        Column::left("MOVED (UTC)"),
    ])
    .with_rows(&page.watches, |watch| {
        [
            watch.watcher.to_string(),
            target_with_agent(watch),
            watch.provenance.clone(),
            watch.last_seen_sequence.to_string(),
            watch.notified_sequence.to_string(),
            watch.material_sequence.to_string(),
            if watch.pending { "pending" } else { "" }.to_owned(),
            utc(watch.updated_at),
        ]
    });
    Page::of(table)
}

/// A bare key says nothing about its agent.
fn target_with_agent(watch: &Watch) -> String {
    if watch.target.is_agent_qualified() {
        watch.target.to_string()
    } else {
        format!("{} (of {})", watch.target, watch.target_agent_id)
    }
}
