//! Children: spawned with a task, and what becomes of their runs.

use std::fmt;

use tidings_protocol::session_api::{ChildRuntime, RunEnd, RunEnded};
use tidings_protocol::signal::{Payload, Summary};
use tidings_protocol::{Actor, SessionKey, SignalKind};

use super::State;
use super::address::{AgentId, SessionAddress};
use super::changes::{Found, find};
use super::cron::{end_cron_run, finish_cron_run};
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::messages::{check_room, check_text, enqueue, existing};
use super::random;
use super::runner::mark_run;
use super::sessions::ensure_entry;
use super::signals::{NewSignal, Prepared, Recording, check_id, record, repeat_of};
use super::sql::parsed;
use crate::awareness::recording::seeded_parent;
use crate::awareness::run::{run_dedupe_key, run_message};

/// A child to spawn.
#[derive(Clone, PartialEq, Eq)]
pub struct NewChild {
    /// The session that spawns it.
    pub parent: SessionAddress,
    /// The child's agent.
    pub agent: AgentId,
    /// Who runs it.
    pub runtime: ChildRuntime,
    /// A name to show: one line.
    pub label: Option<String>,
    /// Its first message.
    pub task: String,
    /// Whether the gateway runs it from the start.
    pub run_by: RunBy,
}

/// Whose turns a child's are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunBy {
    /// Whoever takes them.
    #[default]
    Anybody,
    /// The gateway's.
    Gateway,
}

/// A child that was spawned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnedChild {
    /// The child.
    pub session: SessionAddress,
    /// The transcript that continues it.
    pub session_id: String,
    /// The message that is its task.
    pub message: u64,
    /// The `child_spawned` signal.
    pub sequence: u64,
    /// True when the parent watches it.
    pub watched: bool,
}

/// A run that has ended, of a child or of a cron job.
#[derive(Clone, PartialEq, Eq)]
pub struct FinishedRun {
    /// The child, or the job's session.
    pub session: SessionAddress,
    /// How it ended.
    pub outcome: RunEnd,
    /// What came of it.
    pub result: Option<String>,
    /// Which run it was; else the one run of the child's conversation.
    pub run_id: Option<String>,
    /// The session that says so: the child or its parent; `None` for an operator.
    pub caller: Option<SessionKey>,
}

impl fmt::Debug for NewChild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewChild")
            .field("parent", &self.parent)
            .field("runtime", &self.runtime)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for FinishedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FinishedRun")
            .field("session", &self.session)
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}

/// A child with everything that is made before the transaction.
struct ReadyChild {
    parent: SessionAddress,
    child: SessionAddress,
    label: Option<Summary>,
    task: String,
    run_by: RunBy,
    signal: Prepared,
    parent_id: String,
    child_id: String,
}

impl State {
    /// Makes a child: its entry, its task as the first message, `child_spawned`, and the
    /// parent's cursor from there on.
    pub async fn spawn(&self, child: NewChild) -> Result<SpawnedChild, StateError> {
        check_text("a task", &child.task)?;
        let (runtime, uuid) = (child.runtime.as_str(), random::session_id()?);
        let key = SessionKey::parse(&format!("agent:{}:{runtime}:{uuid}", child.agent))
            .map_err(|error| StateError::invalid(error.to_string()))?;
        let address = SessionAddress::resolve(key, &child.agent)
            .map_err(|error| StateError::invalid(error.to_string()))?;
        let parent = child.parent.key().clone();
        let signal = NewSignal {
            parent: Some(parent.clone()),
            ..NewSignal::new(
                address.clone(),
                SignalKind::ChildSpawned,
                Actor::Agent(parent),
            )
        };
        let ready = ReadyChild {
            parent: child.parent,
            child: address,
            label: child.label.as_deref().and_then(Summary::from_text),
            task: child.task,
            run_by: child.run_by,
            signal: Prepared::new(signal)?,
            parent_id: random::session_id()?,
            child_id: random::session_id()?,
        };
        self.write(Priority::Interactive, move |tx| spawn(tx, &ready))
            .await
    }

    /// Ends a child's run: the signal, and one message with the result to the parent. Ends a
    /// cron job's run in its history. The same run again changes nothing and gets the same
    /// answer.
    pub async fn finish_run(&self, run: FinishedRun) -> Result<RunEnded, StateError> {
        check_id("run id", run.run_id.as_deref())?;
        if let Some(result) = &run.result {
            check_text("a result", result)?;
        }
        self.write(Priority::Interactive, move |tx| finish_run(tx, &run))
            .await
    }
}

fn spawn(tx: &mut Tx<'_>, ready: &ReadyChild) -> OpResult<SpawnedChild> {
    ensure_entry(tx, &ready.parent, &ready.parent_id)?;
    ensure_entry(tx, &ready.child, &ready.child_id)?;
    let number = tx.session(&ready.child)?;
    tx.execute(
        "UPDATE entries SET spawned_by = ?2, parent_session_key = ?2, label = ?3
         WHERE session = ?1",
        (
            number,
            ready.parent.key().as_str(),
            ready.label.as_ref().map(Summary::as_str),
        ),
    )?;
    let Recording::New(sequence) = record(tx, &ready.signal)? else {
        let reason = format!("{} was spawned before", ready.child);
        return Err(StateError::Invalid(reason).into());
    };
    if ready.run_by == RunBy::Gateway {
        mark_run(tx, &ready.child)?;
    }
    let parent = ready.parent.key();
    let message = enqueue(tx, number, Some(parent), &ready.task)?;
    let actor = Actor::Agent(parent.clone());
    Ok(SpawnedChild {
        session: ready.child.clone(),
        session_id: ready.child_id.clone(),
        message,
        sequence,
        watched: seeded_parent(ready.child.key(), Some(parent), &actor).is_some(),
    })
}

/// What the entry of a child says about it.
pub(crate) struct Child {
    pub(crate) session_id: String,
    parent: SessionKey,
    label: Option<String>,
}

/// The child that this session is; `None` where it is nobody's, or not there.
pub(crate) fn child_of(tx: &mut Tx<'_>, session: &SessionAddress) -> OpResult<Option<Child>> {
    match tx.find_session(session)? {
        Some(number) => read_child(tx, number),
        None => Ok(None),
    }
}

fn finish_run(tx: &mut Tx<'_>, run: &FinishedRun) -> OpResult<RunEnded> {
    let session = &run.session;
    let number = existing(tx, session)?;
    let Some(child) = read_child(tx, number)? else {
        return finish_cron_run(tx, run, number);
    };
    if let Some(caller) = &run.caller
        && caller != session.key()
        && *caller != child.parent
    {
        return Err(StateError::NotPermitted(format!(
            "only {session} and its parent report the end of its runs"
        ))
        .into());
    }
    let parent = living_parent(tx, &child.parent, session.agent())?;
    let ended = |sequence| RunEnded {
        sequence: Some(sequence),
        parent: parent.as_ref().map(|(address, _)| address.key().clone()),
    };
    let dedupe_key = run_dedupe_key(run.run_id.as_deref(), &child.session_id);
    if let Some(sequence) = repeat_of(tx, number, &dedupe_key)? {
        return Ok(ended(sequence));
    }
    if let Some((address, parent)) = &parent {
        check_room(tx, *parent, address)?;
    }
    let sequence = say(tx, run, dedupe_key)?;
    tx.execute("DELETE FROM running_turns WHERE session = ?1", [number])?;
    end_cron_run(tx, session, None, run.outcome.as_str())?;
    if let Some((_, parent)) = &parent {
        let message = run_message(
            session.key(),
            child.label.as_deref(),
            run.outcome,
            run.result.as_deref(),
        );
        enqueue(tx, *parent, Some(session.key()), &message)?;
    }
    Ok(ended(sequence))
}

fn read_child(tx: &Tx<'_>, session: i64) -> OpResult<Option<Child>> {
    let child = tx.row(
        "SELECT session_id, parent_session_key, label FROM entries
         WHERE session = ?1 AND parent_session_key IS NOT NULL",
        [session],
        |row| {
            Ok(Child {
                session_id: row.get(0)?,
                parent: parsed(row, 1, SessionKey::parse)?,
                label: row.get(2)?,
            })
        },
    )?;
    Ok(child)
}

/// The parent, unless it was deleted. A bare one is of the child's agent.
fn living_parent(
    tx: &Tx<'_>,
    parent: &SessionKey,
    agent: &AgentId,
) -> OpResult<Option<(SessionAddress, i64)>> {
    let Ok(address) = SessionAddress::resolve(parent.clone(), agent) else {
        return Ok(None);
    };
    let found = find(tx.conn(), &address)?.filter(Found::exists);
    Ok(found.map(|found| (address, found.number)))
}

fn say(tx: &mut Tx<'_>, run: &FinishedRun, dedupe_key: String) -> OpResult<u64> {
    let outcome = run.outcome.failure();
    let kind = match outcome {
        None => SignalKind::RunCompleted,
        Some(_) => SignalKind::RunFailed,
    };
    let signal = NewSignal {
        run_id: run.run_id.clone(),
        payload: Payload {
            outcome,
            ..Payload::default()
        },
        dedupe_key: Some(dedupe_key),
        ..NewSignal::new(run.session.clone(), kind, Actor::System)
    };
    match record(tx, &Prepared::new(signal)?)? {
        Recording::New(sequence) | Recording::Repeat(sequence) => Ok(sequence),
        Recording::Unwatched => {
            Err(StateError::invalid("the end of a run is always recorded").into())
        }
    }
}
