//! `agents/<agentId>/sessions/sessions.json`: the entries of an agent, readable by people
//! and by programs of that layout. The database is the authority; this follows each commit.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidings_node::private_files::{self, FileError};
use tokio::sync::mpsc;

use crate::state::{AgentId, State, StateError};

/// The projection's name in an agent's session directory.
pub const PROJECTION_NAME: &str = "sessions.json";
/// Changes within this time are written together.
const COALESCE: Duration = Duration::from_millis(100);
/// How soon a projection that could not be written is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// Agents that wait for their projection; senders wait beyond it.
pub const QUEUE: usize = 64;

/// Why a projection was not written. It is tried again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectionError {
    /// The entries cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// The file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Where an agent's sessions are.
#[must_use]
pub fn sessions_dir(state_dir: &Path, agent: &AgentId) -> PathBuf {
    state_dir
        .join("agents")
        .join(agent.as_str())
        .join("sessions")
}

/// Writes the projection of every agent that `changed` names, until the channel closes. What
/// could not be written is tried again by itself: a full disk has room some time.
pub async fn follow(state: State, state_dir: PathBuf, mut changed: mpsc::Receiver<AgentId>) {
    let mut due = BTreeSet::new();
    loop {
        let patience = if due.is_empty() { None } else { Some(RETRY) };
        match next(&mut changed, patience).await {
            Next::Changed(agent) => {
                due.insert(agent);
                tokio::time::sleep(COALESCE).await;
                while let Ok(more) = changed.try_recv() {
                    due.insert(more);
                }
            }
            Next::Nothing => {}
            Next::Closed => return,
        }
        let mut failed = BTreeSet::new();
        for agent in due {
            if let Err(error) = write(&state, &state_dir, agent.clone()).await {
                tracing::warn!(%agent, %error, "{PROJECTION_NAME} was not written");
                failed.insert(agent);
            }
        }
        due = failed;
    }
}

enum Next {
    Changed(AgentId),
    /// Nothing, for as long as there was patience.
    Nothing,
    Closed,
}

async fn next(changed: &mut mpsc::Receiver<AgentId>, patience: Option<Duration>) -> Next {
    let changed = match patience {
        None => changed.recv().await,
        Some(patience) => match tokio::time::timeout(patience, changed.recv()).await {
            Ok(changed) => changed,
            Err(_) => return Next::Nothing,
        },
    };
    changed.map_or(Next::Closed, Next::Changed)
}

/// Writes the projection of one agent now.
pub async fn write(state: &State, state_dir: &Path, agent: AgentId) -> Result<(), ProjectionError> {
    let dir = sessions_dir(state_dir, &agent);
    let mut json = state.projection(agent).await?.json;
    json.push('\n');
    let written = tokio::task::spawn_blocking(move || {
        private_files::create_dir(&dir)?;
        let path = dir.join(PROJECTION_NAME);
        match private_files::read(&path, json.len() as u64) {
            Ok(current) if current == json.as_bytes() => Ok(()),
            _ => private_files::replace(&path, json.as_bytes()),
        }
    });
    match written.await {
        Ok(result) => Ok(result?),
        // Only a panic or a stopping runtime ends a blocking task early.
        Err(_) => Ok(()),
    }
}
