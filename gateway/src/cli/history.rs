//! `tidings sessions history`: the newest part of a conversation.

use clap::{Args, value_parser};
use tidings_node::cli::format::utc;
use tidings_node::cli::{CommandError, Note, Page};
use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{
    History, HistoryItem, MAX_HISTORY_ITEMS, Request, SessionsHistory,
};

use super::client::answer;
use super::{Context, suggest};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings sessions history agent:main:main --limit 10")]
pub(super) struct HistoryArgs {
    /// The session
    #[arg(value_name = "KEY")]
    session: SessionKey,
    /// The agent of a key that names none; else the default agent
    #[arg(long)]
    agent: Option<String>,
    /// How many items, at most 50
    #[arg(long, value_name = "N",
        value_parser = value_parser!(u32).range(1..=i64::from(MAX_HISTORY_ITEMS)))]
    limit: Option<u32>,
    /// Only what stands before this place, as the page after it says
    #[arg(long, value_name = "PLACE")]
    before: Option<u64>,
    /// With tool calls and their results
    #[arg(long)]
    tools: bool,
}

pub(super) async fn run(args: HistoryArgs, context: &mut Context<'_>) -> Result<(), CommandError> {
    let key = args.session.clone();
    let request = Request::SessionsHistory(SessionsHistory {
        session_key: args.session,
        agent: args.agent,
        limit: args.limit,
        before: args.before,
        tools: args.tools,
    });
    let client = &mut context.client;
    match client.ask(request, answer!(SessionsHistory)).await {
        Ok(history) => context.output.answer(&history, page),
        Err(error) => Err(suggest::sessions(client, error, key.as_str()).await.into()),
    }
}

fn page(history: &History) -> Page {
    let shown = if history.items.is_empty() {
        Page::default().with(Note::Info("nothing was said".to_owned()))
    } else {
        Page::of(history.items.iter().map(paragraph).collect::<String>())
    };
    match history.before {
        Some(before) => shown.with(Note::Hint(format!(
            "what precedes it: tidings sessions history {} --before {before}",
            history.session_key
        ))),
        None => shown,
    }
}

fn paragraph(item: &HistoryItem) -> String {
    let at = item.at.map(|at| format!("  {} UTC", utc(at)));
    let cut = if item.cut { " […]" } else { "" };
    format!(
        "{}{}\n{}{cut}\n\n",
        item.role.as_str(),
        at.unwrap_or_default(),
        item.text.0
    )
}
