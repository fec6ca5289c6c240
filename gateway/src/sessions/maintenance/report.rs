//! Outcomes as requests answer them.

use tidings_protocol::session_api::{CleanedStore, CleanedUp, CleanupAction};

use super::facts::Action;
use super::run::{Doing, Outcome};
use crate::config::MaintenanceMode;
use crate::state::AgentId;

/// What was done with these stores.
#[must_use]
pub fn report(mode: MaintenanceMode, doing: Doing, outcomes: &[(AgentId, Outcome)]) -> CleanedUp {
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(|(_, outcome)| of(outcome)).sum();
    let actions = outcomes
        .iter()
        .flat_map(|(agent, outcome)| outcome.actions.iter().map(|action| shown(agent, action)));
    let store = |(agent, outcome): &(AgentId, Outcome)| CleanedStore {
        agent_id: agent.to_string(),
        before_count: outcome.before as u64,
        after_count: outcome.after as u64,
    };
    CleanedUp {
        mode: match mode {
            MaintenanceMode::Enforce => "enforce".to_owned(),
            MaintenanceMode::Warn => "warn".to_owned(),
        },
        dry_run: doing == Doing::Nothing,
        before_count: sum(|outcome| outcome.before as u64),
        after_count: sum(|outcome| outcome.after as u64),
        pruned: sum(|outcome| outcome.pruned as u64),
        capped: sum(|outcome| outcome.capped as u64),
        missing: sum(|outcome| outcome.missing as u64),
        freed_bytes: sum(|outcome| outcome.freed_bytes),
        failed: sum(|outcome| outcome.stuck.len() as u64),
        actions: actions.collect(),
        stores: outcomes.iter().map(store).collect(),
    }
}

fn shown(agent: &AgentId, action: &Action) -> CleanupAction {
    let (session_key, reason) = match action {
        Action::Entry {
            session, reason, ..
        } => (Some(session.key().clone()), *reason),
        Action::File { reason, .. } => (None, *reason),
    };
    CleanupAction {
        agent_id: agent.to_string(),
        session_key,
        files: action
            .files()
            .iter()
            .map(|file| file.name.clone())
            .collect(),
        bytes: action.bytes(),
        reason: reason.as_str().to_owned(),
    }
}
