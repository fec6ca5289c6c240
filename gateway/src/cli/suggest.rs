//! What to say when a name does not exist: the nearest one, and what there is. It takes a
//! second request, so it is made only then, and its own failure changes nothing.

use tidings_node::cli::{Note, nearest};
use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{
    Adopt, ApiError, CatalogList, ErrorType, MAX_SESSIONS_PER_PAGE, Request, SessionsList,
    StatusQuery,
};

use super::Context;
use super::client::{Client, answer};

/// Completes an error about a session key.
pub(super) async fn sessions(client: &mut Client, error: ApiError, given: &str) -> ApiError {
    if error.error_type != ErrorType::NotFound {
        return error;
    }
    match session_hint(client, given).await {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// What to say about a session key that may not exist; `None` where it is listed.
pub(super) async fn session_hint(client: &mut Client, given: &str) -> Option<String> {
    let request = Request::SessionsList(SessionsList {
        limit: Some(MAX_SESSIONS_PER_PAGE),
        ..SessionsList::default()
    });
    let page = client.ask(request, answer!(SessionsList)).await.ok()?;
    let keys = page.sessions.iter().map(|row| row.session_key.as_str());
    let keys: Vec<&str> = keys.collect();
    if keys.contains(&given) {
        return None;
    }
    let total = usize::try_from(page.count).unwrap_or(usize::MAX);
    Some(nearest::hint(
        given,
        "sessions",
        &keys,
        total,
        "tidings sessions list",
    ))
}

/// A session was asked about and the answer is empty, which stays the answer. Where there is no
/// such session, says so, and which was perhaps meant.
pub(super) async fn unknown_session(context: &mut Context<'_>, key: &SessionKey) {
    let client = &mut context.client;
    if !exists(client, key).await {
        let hint = session_hint(client, key.as_str()).await;
        context.note(Some(unknown("session", key.as_str(), hint)));
    }
}

/// False where the gateway says that there is no such session.
pub(super) async fn exists(client: &mut Client, key: &SessionKey) -> bool {
    let request = Request::SessionStatus(StatusQuery {
        session_key: key.clone(),
        agent: None,
        changes_since: None,
        reader: None,
    });
    let asked = client.ask(request, answer!(SessionStatus)).await;
    !asked.is_err_and(|error| error.error_type == ErrorType::NotFound)
}

/// The same of an agent.
pub(super) async fn unknown_agent(context: &mut Context<'_>, given: &str) {
    let agents = Request::AgentsList {};
    let Ok(found) = context.client.ask(agents, answer!(AgentsList)).await else {
        return;
    };
    let names = found.agents.iter().map(|row| row.agent_id.as_str());
    let names: Vec<&str> = names.collect();
    if !names.contains(&given) {
        let list = "tidings agents list";
        let hint = nearest::hint(given, "agents", &names, names.len(), list);
        context.note(Some(unknown("agent", given, Some(hint))));
    }
}

fn unknown(what: &str, name: &str, hint: Option<String>) -> Note {
    let hint = hint.map(|hint| format!(": {hint}")).unwrap_or_default();
    Note::Warning(format!("there is no {what} {name}{hint}"))
}

/// Completes an error about a host.
pub(super) async fn hosts(client: &mut Client, error: ApiError, given: Option<&str>) -> ApiError {
    let Some(given) = given.filter(|_| error.error_type == ErrorType::NotFound) else {
        return error;
    };
    match host_hint(client, "hosts", given).await {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Completes an error about a node.
pub(super) async fn nodes(client: &mut Client, error: ApiError, given: &str) -> ApiError {
    if error.error_type != ErrorType::NotFound {
        return error;
    }
    match host_hint(client, "nodes", given).await {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Completes an error about a host or a thread on it.
pub(super) async fn threads(client: &mut Client, error: ApiError, given: &Adopt) -> ApiError {
    if error.error_type != ErrorType::NotFound {
        return error;
    }
    let hint = match host_hint(client, "hosts", &given.host).await {
        Some(hint) => Some(hint),
        None => thread_hint(client, given).await,
    };
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// What to say about a host that does not exist, in a list of `what`; `None` where it does.
async fn host_hint(client: &mut Client, what: &str, given: &str) -> Option<String> {
    let request = Request::NodesList {};
    let nodes = client.ask(request, answer!(NodesList)).await.ok()?.nodes;
    let is_known = nodes
        .iter()
        .any(|node| given == node.host_name.as_str() || given == node.id.as_str());
    if is_known {
        return None;
    }
    let names: Vec<&str> = nodes.iter().map(|node| node.host_name.as_str()).collect();
    Some(nearest::hint(
        given,
        what,
        &names,
        names.len(),
        "tidings nodes list",
    ))
}

/// What to say about a thread that is not on its host; `None` where it is.
async fn thread_hint(client: &mut Client, given: &Adopt) -> Option<String> {
    let request = Request::CatalogList(CatalogList {
        host: Some(given.host.clone()),
        catalog: Some(given.catalog),
        titles: false,
    });
    let found = client.ask(request, answer!(CatalogList)).await.ok()?;
    let threads: Vec<&str> = found
        .threads
        .iter()
        .map(|thread| thread.thread_id.as_str())
        .collect();
    if threads.contains(&given.thread_id.as_str()) {
        return None;
    }
    let list = format!("tidings catalog list --host {}", given.host);
    Some(nearest::hint(
        given.thread_id.as_str(),
        "threads",
        &threads,
        threads.len(),
        &list,
    ))
}
