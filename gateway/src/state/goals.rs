//! A session's goal: it stands in the entry, and the log says only that it changed.

use std::fmt;

use tidings_protocol::session_api::GoalChanged;
use tidings_protocol::signal::Summary;
use tidings_protocol::{Actor, SignalKind};

use super::State;
use super::address::SessionAddress;
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::messages::existing;
use super::random;
use super::sessions::{ensure_entry, entries_changed};
use super::signals::{NewSignal, Prepared, Recording, record};
use crate::awareness::goal::goal_move;

/// The longest goal, in bytes: a paragraph or two. It stands in every projection.
pub const MAX_GOAL_BYTES: usize = 4 * 1024;

/// A goal to set or clear.
#[derive(Clone, PartialEq, Eq)]
pub struct GoalChange {
    /// The session. It must exist, unless it changes its own goal.
    pub session: SessionAddress,
    /// The goal; `None` clears it.
    pub goal: Option<String>,
    /// Who does it.
    pub actor: Actor,
}

impl fmt::Debug for GoalChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GoalChange")
            .field("session", &self.session)
            .field("actor", &self.actor)
            .finish_non_exhaustive()
    }
}

impl State {
    /// Sets or clears a session's goal. The goal it has already is no change, and no signal.
    pub async fn change_goal(&self, change: GoalChange) -> Result<GoalChanged, StateError> {
        let goal = match &change.goal {
            Some(goal) => Some(checked(goal)?),
            None => None,
        };
        let fresh_id = random::session_id()?;
        self.write(Priority::Interactive, move |tx| {
            change_goal(tx, &change, goal.as_deref(), &fresh_id)
        })
        .await
    }
}

/// The goal without what surrounds it.
fn checked(goal: &str) -> Result<String, StateError> {
    let goal = goal.trim();
    if goal.is_empty() {
        return Err(StateError::invalid(
            "a goal must say something; goal_clear takes it away",
        ));
    }
    if goal.len() > MAX_GOAL_BYTES {
        return Err(StateError::invalid(format!(
            "a goal has at most {MAX_GOAL_BYTES} bytes, this one {}",
            goal.len()
        )));
    }
    Ok(goal.to_owned())
}

fn change_goal(
    tx: &mut Tx<'_>,
    change: &GoalChange,
    goal: Option<&str>,
    fresh_id: &str,
) -> OpResult<GoalChanged> {
    let session = &change.session;
    if change.actor.id() != Some(session.key()) {
        existing(tx, session)?;
    }
    ensure_entry(tx, session, fresh_id)?;
    let number = tx.session(session)?;
    let before: Option<String> = tx
        .row(
            "SELECT goal FROM entries WHERE session = ?1",
            [number],
            |row| row.get(0),
        )?
        .flatten();
    if before.as_deref() != goal {
        tx.execute(
            "UPDATE entries SET goal = ?2, updated_at = ?3 WHERE session = ?1",
            (number, goal, tx.now()),
        )?;
        entries_changed(tx, session);
    }
    let sequence = tell_goal(tx, session, (before.as_deref(), goal), &change.actor)?;
    Ok(GoalChanged {
        changed: sequence.is_some(),
        sequence,
    })
}

/// Records that a session's goal was the first of these and is the second; nothing where it
/// is the same.
pub(crate) fn tell_goal(
    tx: &mut Tx<'_>,
    session: &SessionAddress,
    (before, after): (Option<&str>, Option<&str>),
    actor: &Actor,
) -> OpResult<Option<u64>> {
    let Some(moved) = goal_move(before, after) else {
        return Ok(None);
    };
    let signal = NewSignal {
        summary: Summary::from_text(moved.summary()),
        ..NewSignal::new(session.clone(), SignalKind::GoalChanged, actor.clone())
    };
    Ok(match record(tx, &Prepared::new(signal)?)? {
        Recording::New(sequence) | Recording::Repeat(sequence) => Some(sequence),
        Recording::Unwatched => None,
    })
}
