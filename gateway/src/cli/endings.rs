//! `tidings sessions reset|delete`, `tidings agents`: what ends a conversation, a session,
//! or all that an agent has.

use clap::Subcommand;
use tidings_node::cli::format::utc_or_nothing;
use tidings_node::cli::{Column, CommandError, Note, Page, Table, nearest};
use tidings_protocol::session_api::{
    AgentDeleted, AgentRef, Agents, ApiError, ErrorType, Request, SessionDeleted, SessionResetDone,
    SpeakerRef,
};

use super::client::{Client, answer};
use super::sessions::SessionArgs;
use super::{Context, suggest};

#[derive(Debug, Subcommand)]
pub(super) enum AgentsCommand {
    /// Lists the agents that have sessions
    #[command(after_help = "Example:\n  tidings agents list")]
    List,
    /// Removes an agent's sessions with their log, links, messages and watches
    #[command(after_help = "Example:\n  tidings agents delete ops")]
    Delete {
        /// The agent
        agent: String,
    },
}

pub(super) async fn run(
    command: AgentsCommand,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let client = &mut context.client;
    match command {
        AgentsCommand::List => {
            let agents = client.ask(Request::AgentsList {}, answer!(AgentsList));
            context.output.answer(&agents.await?, agents_page)
        }
        AgentsCommand::Delete { agent } => {
            let request = Request::AgentsDelete(AgentRef {
                agent: agent.clone(),
            });
            match client.ask(request, answer!(AgentsDelete)).await {
                Ok(deleted) => context.output.answer(&deleted, agent_deleted_page),
                Err(error) => Err(with_the_agents(client, error, &agent).await.into()),
            }
        }
    }
}

pub(super) async fn reset(
    args: SessionArgs,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let session = args.into_ref();
    let key = session.session_key.clone();
    let client = &mut context.client;
    let request = Request::SessionReset(SpeakerRef {
        session_key: Some(session.session_key),
        agent: session.agent,
    });
    match client.ask(request, answer!(SessionReset)).await {
        Ok(reset) => context.output.answer(&reset, reset_page),
        Err(error) => Err(suggest::sessions(client, error, key.as_str()).await.into()),
    }
}

pub(super) async fn delete(
    args: SessionArgs,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let session = args.into_ref();
    let key = session.session_key.clone();
    let client = &mut context.client;
    let request = Request::SessionDelete(session);
    match client.ask(request, answer!(SessionDelete)).await {
        Ok(deleted) => context.output.answer(&deleted, deleted_page),
        Err(error) => Err(suggest::sessions(client, error, key.as_str()).await.into()),
    }
}

/// Completes an error about an agent. Its own failure changes nothing.
async fn with_the_agents(client: &mut Client, error: ApiError, given: &str) -> ApiError {
    if error.error_type != ErrorType::NotFound {
        return error;
    }
    let Ok(agents) = client
        .ask(Request::AgentsList {}, answer!(AgentsList))
        .await
    else {
        return error;
    };
    let names: Vec<&str> = agents
        .agents
        .iter()
        .map(|agent| agent.agent_id.as_str())
        .collect();
    let hint = nearest::hint(given, "agents", &names, names.len(), "tidings agents list");
    error.with_hint(hint)
}

fn agents_page(agents: &Agents) -> Page {
    if agents.agents.is_empty() {
        return Page::empty(
            "no agents",
            "tidings catalog list shows threads, tidings sessions adopt takes one in",
        );
    }
    let table = Table::new([
        Column::left("AGENT"),
        Column::right("SESSIONS"),
        Column::left("CHANGED (UTC)"),
    ])
    .with_rows(&agents.agents, |agent| {
        [
            agent.agent_id.clone(),
            agent.sessions.to_string(),
            utc_or_nothing(agent.updated_at),
        ]
    });
    Page::of(table)
}

fn agent_deleted_page(deleted: &AgentDeleted) -> Page {
    let noun = if deleted.sessions == 1 {
        "session"
    } else {
        "sessions"
    };
    Page::of(format_args!(
        "{} and its {} {noun} are deleted\n",
        deleted.agent_id, deleted.sessions
    ))
}

fn reset_page(reset: &SessionResetDone) -> Page {
    let page = Page::of(format_args!(
        "{} goes on as {}\n",
        reset.session_key, reset.session_id
    ));
    match reset.watches_ended {
        0 => page,
        1 => page.with(Note::Info("1 watch of it ended".to_owned())),
        ended => page.with(Note::Info(format!("{ended} watches of it ended"))),
    }
}

fn deleted_page(deleted: &SessionDeleted) -> Page {
    Page::of(format_args!("{} is deleted\n", deleted.session_key))
}
