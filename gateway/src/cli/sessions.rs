//! `tidings sessions`: threads taken into the gateway under a session key.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, value_parser};
use tidings_node::cli::common::catalog_parser;
use tidings_node::cli::{CommandError, Page};
use tidings_protocol::session_api::{
    Adopt, MAX_SESSIONS_PER_PAGE, Request, SessionKind, SessionRef, SessionsList, StatusQuery,
};
use tidings_protocol::{Catalog, SessionKey, ThreadId};

use super::args::host_parser;
use super::client::answer;
use super::compacting::{self, CompactArgs};
use super::history::HistoryArgs;
use super::sending::{SendArgs, SpawnArgs};
use super::session_pages::{
    ShownEntry, adopted_page, list_page, mark_page, show_page, status_page,
};
use super::session_runs::{self, RunsArgs};
use super::sessions_cleanup::{self, CleanupArgs};
use super::sessions_import::{self, ImportArgs};
use super::{Context, endings, history, sending, suggest};

#[derive(Debug, Subcommand)]
pub(super) enum SessionsCommand {
    /// Takes a thread into the gateway; from then on it is followed
    Adopt(AdoptArgs),
    /// Lists sessions, pinned and newest first
    List(ListArgs),
    /// Prints one session's entry
    #[command(after_help = "Example:\n  tidings sessions show agent:main:main")]
    Show(SessionArgs),
    /// Prints a session's state version, and what changed since another
    Status(StatusArgs),
    /// Prints the newest part of a session's conversation
    History(HistoryArgs),
    /// Sends a session a message, for its next turn
    Send(SendArgs),
    /// Makes a child session with a task
    Spawn(SpawnArgs),
    /// Begins a session's conversation anew; the watches that it holds end
    #[command(after_help = "Example:\n  tidings sessions reset agent:main:main")]
    Reset(SessionArgs),
    /// Has a session's history compacted into a summary
    Compact(CompactArgs),
    /// Removes a session with its log, link, messages and watches
    #[command(after_help = "Example:\n  tidings sessions delete agent:main:main")]
    Delete(SessionArgs),
    /// Takes a session out of the active lists; its transcript stays, its pin goes
    #[command(after_help = "Example:\n  tidings sessions archive agent:main:main")]
    Archive(SessionArgs),
    /// Brings a session back into the active lists
    #[command(after_help = "Example:\n  tidings sessions unarchive agent:main:main")]
    Unarchive(SessionArgs),
    /// Puts a session first in the lists
    #[command(after_help = "Example:\n  tidings sessions pin agent:main:main")]
    Pin(SessionArgs),
    /// Puts a session in its place again
    #[command(after_help = "Example:\n  tidings sessions unpin agent:main:main")]
    Unpin(SessionArgs),
    /// Looks after the stores: what is old or too much goes
    Cleanup(CleanupArgs),
    /// Takes over the sessions of an OpenClaw state directory
    Import(ImportArgs),
    /// Lists the runs of cron jobs, newest first
    Runs(RunsArgs),
}

/// One session.
#[derive(Debug, Args)]
pub(super) struct SessionArgs {
    /// The session, as `agent:<agent>:<rest>`, `global`, `cron:<job>` or `hook:<id>`
    #[arg(value_name = "KEY")]
    session: SessionKey,
    /// The agent of a key that names none; else the default agent
    #[arg(long)]
    agent: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    tidings sessions adopt claude local 0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9 \
    --watch-by agent:main:main")]
pub(super) struct AdoptArgs {
    /// The family of the agent program
    #[arg(value_parser = catalog_parser())]
    catalog: Catalog,
    /// The machine: `local`, a node's name or its id
    #[arg(value_parser = host_parser())]
    host: String,
    /// The program's own id of the conversation, as `tidings catalog list` shows it
    #[arg(value_name = "THREAD", value_parser = ThreadId::parse)]
    thread_id: ThreadId,
    /// The agent whose session it becomes; else the default agent
    #[arg(long)]
    agent: Option<String>,
    /// A session that watches it from now on
    #[arg(long, value_name = "KEY")]
    watch_by: Option<SessionKey>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings sessions list --host laptop --active-minutes 60")]
pub(super) struct ListArgs {
    /// Only of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Only of this kind
    #[arg(long, value_parser = kind_parser())]
    kind: Option<SessionKind>,
    /// Only those whose thread is on this machine: `local`, a node's name or its id
    #[arg(long, value_parser = host_parser())]
    host: Option<String>,
    /// Only those that changed within this many minutes
    #[arg(long, value_name = "MINUTES")]
    active_minutes: Option<u32>,
    /// The archived ones instead of the active ones
    #[arg(long)]
    archived: bool,
    /// How many, at most 200
    #[arg(long, value_name = "N",
        value_parser = value_parser!(u32).range(1..=i64::from(MAX_SESSIONS_PER_PAGE)))]
    limit: Option<u32>,
    /// How many to pass over
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u32,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    tidings sessions status agent:main:main --changes-since 42")]
pub(super) struct StatusArgs {
    /// The session
    #[arg(value_name = "KEY")]
    session: SessionKey,
    /// The agent of a key that names none; else the default agent
    #[arg(long)]
    agent: Option<String>,
    /// With the events after this version
    #[arg(long, value_name = "VERSION", allow_negative_numbers = true,
        value_parser = value_parser!(i64).range(0..))]
    changes_since: Option<i64>,
}

fn kind_parser() -> impl TypedValueParser<Value = SessionKind> {
    PossibleValuesParser::new(SessionKind::ALL.map(SessionKind::as_str))
        .try_map(|name| SessionKind::parse(&name).ok_or("not a kind of session"))
}

impl SessionArgs {
    /// The session's key.
    pub(super) fn session(&self) -> &SessionKey {
        &self.session
    }

    /// The session as requests name it.
    pub(super) fn into_ref(self) -> SessionRef {
        SessionRef {
            session_key: self.session,
            agent: self.agent,
        }
    }
}

pub(super) async fn run(
    command: SessionsCommand,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    match command {
        SessionsCommand::Adopt(args) => adopt(args, context).await,
        SessionsCommand::List(args) => list(args, context).await,
        SessionsCommand::Show(args) => {
            entry(args.into_ref(), Request::SessionShow, show_page, context).await
        }
        SessionsCommand::Status(args) => status(args, context).await,
        SessionsCommand::History(args) => history::run(args, context).await,
        SessionsCommand::Send(args) => sending::send(args, context).await,
        SessionsCommand::Spawn(args) => sending::spawn(args, context).await,
        SessionsCommand::Reset(args) => endings::reset(args, context).await,
        SessionsCommand::Compact(args) => compacting::run(args, context).await,
        SessionsCommand::Delete(args) => endings::delete(args, context).await,
        SessionsCommand::Import(args) => sessions_import::run(args, context).await,
        SessionsCommand::Runs(args) => session_runs::run(args, context).await,
        SessionsCommand::Cleanup(args) => sessions_cleanup::run(args, context).await,
        SessionsCommand::Archive(args) => {
            entry(args.into_ref(), Request::SessionArchive, mark_page, context).await
        }
        SessionsCommand::Unarchive(args) => {
            entry(
                args.into_ref(),
                Request::SessionUnarchive,
                mark_page,
                context,
            )
            .await
        }
        SessionsCommand::Pin(args) => {
            entry(args.into_ref(), Request::SessionPin, mark_page, context).await
        }
        SessionsCommand::Unpin(args) => {
            entry(args.into_ref(), Request::SessionUnpin, mark_page, context).await
        }
    }
}

async fn adopt(args: AdoptArgs, context: &mut Context<'_>) -> Result<(), CommandError> {
    let adopt = Adopt {
        catalog: args.catalog,
        host: args.host,
        thread_id: args.thread_id,
        agent: args.agent,
        watch_by: args.watch_by,
    };
    let client = &mut context.client;
    match client
        .ask(Request::Adopt(adopt.clone()), answer!(Adopt))
        .await
    {
        Ok(adopted) => context.output.answer(&adopted, adopted_page),
        Err(error) => Err(suggest::threads(client, error, &adopt).await.into()),
    }
}

async fn list(args: ListArgs, context: &mut Context<'_>) -> Result<(), CommandError> {
    let request = Request::SessionsList(SessionsList {
        agent: args.agent.clone(),
        kind: args.kind,
        host: args.host.clone(),
        active_minutes: args.active_minutes,
        archived: args.archived,
        limit: args.limit,
        offset: args.offset,
    });
    let client = &mut context.client;
    match client.ask(request, answer!(SessionsList)).await {
        Ok(sessions) => {
            if sessions.count == 0
                && let Some(agent) = &args.agent
            {
                suggest::unknown_agent(context, agent).await;
            }
            context.output.answer(&sessions, list_page)
        }
        Err(error) => Err(suggest::hosts(client, error, args.host.as_deref())
            .await
            .into()),
    }
}

/// Asks what is answered with a session's entry.
async fn entry(
    session: SessionRef,
    request: impl FnOnce(SessionRef) -> Request,
    page: impl FnOnce(&ShownEntry) -> Page,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let client = &mut context.client;
    match client
        .ask(request(session.clone()), answer!(SessionShow))
        .await
    {
        Ok(entry) => {
            let shown = ShownEntry::of(*entry)?;
            context.output.answer(&shown, page)
        }
        Err(error) => {
            let key = session.session_key.as_str();
            Err(suggest::sessions(client, error, key).await.into())
        }
    }
}

async fn status(args: StatusArgs, context: &mut Context<'_>) -> Result<(), CommandError> {
    let query = StatusQuery {
        session_key: args.session,
        agent: args.agent,
        changes_since: args.changes_since,
        reader: None,
    };
    let key = query.session_key.clone();
    let request = Request::SessionStatus(query);
    let client = &mut context.client;
    match client.ask(request, answer!(SessionStatus)).await {
        Ok(status) => context.output.answer(&status, status_page),
        Err(error) => Err(suggest::sessions(client, error, key.as_str()).await.into()),
    }
}
