//! `tidings sessions cleanup`: the upkeep of the stores, when somebody asks for it.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use tidings_node::cli::format::size;
use tidings_node::cli::{Column, CommandError, Note, Page, Table};
use tidings_protocol::session_api::{
    ApiError, CleanedUp, CleanupAction, CleanupAgents, CleanupDoing, ErrorType, Request,
    SessionsCleanup,
};

use super::Context;
use super::client::answer;
use super::offline::Offline;
use crate::config::Layers;
use crate::sessions::maintenance::facts::Occasion;
use crate::sessions::maintenance::keep::settings;
use crate::sessions::maintenance::report::report;
use crate::sessions::maintenance::run::Doing;
use crate::sessions::names;
use crate::sessions::projection::Stores;
use crate::state::{AgentId, DATABASE_FILE};

#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("doing").required(true),
    after_help = "Example:\n  tidings sessions cleanup --dry-run --all-agents"
)]
pub(super) struct CleanupArgs {
    /// Only says what would go
    #[arg(long, group = "doing")]
    dry_run: bool,
    /// Applies the limits now, whatever `session.maintenance.mode` says
    #[arg(long, group = "doing")]
    enforce: bool,
    /// The agent whose store is looked after; else the default agent
    #[arg(long, conflicts_with_all = ["all_agents", "store"])]
    agent: Option<String>,
    /// The stores of all agents
    #[arg(long, conflicts_with = "store")]
    all_agents: bool,
    /// The store of a gateway that does not run, by its sessions.json
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
}

pub(super) async fn run(args: CleanupArgs, context: &mut Context<'_>) -> Result<(), CommandError> {
    let doing = if args.dry_run {
        CleanupDoing::DryRun
    } else {
        CleanupDoing::Enforce
    };
    let cleaned_up = if let Some(store) = args.store {
        offline(&store, doing).await?
    } else {
        let agents = match args.agent {
            Some(agent) => CleanupAgents::One { agent },
            None if args.all_agents => CleanupAgents::All {},
            None => CleanupAgents::Default {},
        };
        let request = Request::SessionsCleanup(SessionsCleanup { agents, doing });
        let client = &mut context.client;
        client.ask(request, answer!(SessionsCleanup)).await?
    };
    context.output.answer(&cleaned_up, page)
}

/// Looks after a store whose gateway does not run; one that does is refused.
async fn offline(store: &Path, doing: CleanupDoing) -> Result<CleanedUp, ApiError> {
    let (state_dir, agent) = place(store)?;
    let hint = "leave --store out: the running gateway does it";
    let offline = Offline::open(&state_dir, hint).await?;
    let done = clean(&offline.stores, &agent, doing).await;
    offline.close().await;
    done
}

async fn clean(
    stores: &Stores,
    agent: &AgentId,
    doing: CleanupDoing,
) -> Result<CleanedUp, ApiError> {
    let config = Layers::of_this_process(&stores.state_dir, None)
        .load()?
        .config;
    let settings = settings(&config);
    let doing = match doing {
        CleanupDoing::DryRun => Doing::Nothing,
        CleanupDoing::Enforce => Doing::Everything,
    };
    if doing == Doing::Everything {
        // What was edited by hand counts before anything goes.
        stores.sync(agent).await?;
    }
    let outcome = stores
        .maintain(agent, &settings, Occasion::Asked, doing)
        .await?;
    if doing == Doing::Everything {
        stores.sync(agent).await?;
    }
    let mut done = report(
        settings.maintenance.mode,
        doing,
        &[(agent.clone(), outcome)],
    );
    done.stores.clear();
    Ok(done)
}

/// The state directory and the agent of `<state-dir>/agents/<agent>/sessions/sessions.json`,
/// or of the directory that file is in.
fn place(store: &Path) -> Result<(PathBuf, AgentId), ApiError> {
    let refused = |why: String| {
        let message = format!("{} is no store: {why}", store.display());
        let hint = "give <state-dir>/agents/<agent>/sessions/sessions.json";
        ApiError::new(ErrorType::InvalidRequest, message).with_hint(hint)
    };
    let path = std::path::absolute(store).map_err(|error| refused(error.to_string()))?;
    let dir = match path.file_name() {
        Some(name) if name == names::STORE => path.parent().unwrap_or(&path),
        _ => &path,
    };
    let parts = || {
        let agent = dir.parent()?;
        let state_dir = agent.parent()?.parent()?;
        Some((agent.file_name()?.to_str()?, state_dir))
    };
    let (agent, state_dir) = parts().ok_or_else(|| refused("its path is too short".to_owned()))?;
    let agent = AgentId::parse(agent).map_err(|error| refused(error.to_string()))?;
    if names::sessions_dir(state_dir, &agent) != dir {
        return Err(refused(
            "it is not in an agent's session directory".to_owned(),
        ));
    }
    if !state_dir.join(DATABASE_FILE).is_file() {
        let why = format!("there is no {DATABASE_FILE} in {}", state_dir.display());
        return Err(refused(why));
    }
    Ok((state_dir.to_owned(), agent))
}

fn page(done: &CleanedUp) -> Page {
    let table = Table::new([
        Column::left("SESSION OR FILE"),
        Column::left("AGENT"),
        Column::left("WHY"),
        Column::right("FILES"),
        Column::right("SIZE"),
    ])
    .with_rows(&done.actions, |action| {
        [
            subject(action),
            action.agent_id.clone(),
            action.reason.clone(),
            action.files.len().to_string(),
            size(action.bytes),
        ]
    });
    let verb = if done.dry_run { "would go" } else { "gone" };
    let summary = format!(
        "{} of {} entries {verb} ({} by age, {} by number or size), {} in files; \
         {} without a transcript",
        done.before_count - done.after_count,
        done.before_count,
        done.pruned,
        done.capped,
        size(done.freed_bytes),
        done.missing,
    );
    let page = if done.actions.is_empty() {
        Page::of("")
    } else {
        Page::of(table)
    };
    let page = page.with(Note::Info(summary));
    match done.failed {
        0 => page,
        failed => page.with(Note::Warning(format!(
            "{failed} files could not be removed"
        ))),
    }
}

fn subject(action: &CleanupAction) -> String {
    match &action.session_key {
        Some(key) => key.to_string(),
        None => action.files.join(" "),
    }
}
