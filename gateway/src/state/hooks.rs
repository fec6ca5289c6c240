//! What the hooks of an agent program do: take, confirm and give back a lease without its
//! token, and record what became of sub-agents and of the session itself.

use rusqlite::Connection;
use tidings_protocol::session_api::{CompactionTrigger, HookEvent};
use tidings_protocol::signal::{Payload, RunOutcome, Summary};
use tidings_protocol::{Actor, Catalog, Host, SessionKey, SignalKind, ThreadId};

use super::State;
use super::address::SessionAddress;
use super::children::child_of;
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::inputs::compacted;
use super::leases::{NewLease, close_lease, end_lease};
use super::lifecycle::end_watches_of;
use super::links::read_sessions_of;
use super::random;
use super::room::Room;
use super::sessions::{ensure_entry, entries_changed};
use super::signals::{NewSignal, Prepared, check_id, record};
use super::turns::{TurnBegun, TurnToken, confirm_lease, mark_turn, take};
use crate::awareness::hook::{HookStep, Standing};
use crate::awareness::run::run_dedupe_key;

/// Under which key the spawning of a sub-agent is recorded once.
const SPAWNED_ONCE: &str = "hook:child-spawned";

/// What a hook finds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookStanding {
    /// The sessions that continue the thread, the one it speaks as first; none where nobody
    /// adopted it.
    pub sessions: Vec<SessionAddress>,
    /// What they have.
    pub standing: Standing,
}

/// What to do for a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hooked {
    /// The session that the thread speaks as.
    pub speaker: SessionAddress,
    /// Every session that continues the thread.
    pub sessions: Vec<SessionAddress>,
    /// What the hook said.
    pub event: HookEvent,
    /// What that asks for, in order.
    pub steps: Vec<HookStep>,
}

/// What is made before the transaction.
struct Ready {
    hooked: Hooked,
    prompt: String,
    token: TurnToken,
    fresh_id: String,
    child_id: String,
}

impl State {
    /// What a hook in this thread finds. Writes nothing.
    pub async fn hook_standing(
        &self,
        host: Host,
        (catalog, thread): (Catalog, ThreadId),
    ) -> Result<HookStanding, StateError> {
        let now = self.inner.clock.now();
        self.read(move |conn| {
            let sessions = read_sessions_of(conn, &host, (catalog, &thread))?;
            let mut standing = Standing::default();
            for session in &sessions {
                let found = read_standing(conn, session, now)?;
                standing.leased |= found.leased;
                standing.available |= found.available;
                standing.running |= found.running;
            }
            Ok(HookStanding { sessions, standing })
        })
        .await
    }

    /// Does for a hook what it asks for, in one transaction; what its turn takes.
    pub async fn hook(&self, hooked: Hooked) -> Result<TurnBegun, StateError> {
        check_id("prompt id", hooked.event.prompt_id.as_deref())?;
        check_id("sub-agent's id", hooked.event.agent_id.as_deref())?;
        let ready = Ready {
            prompt: hooked.event.prompt_id.clone().unwrap_or_default(),
            token: TurnToken(random::bytes()?),
            fresh_id: random::session_id()?,
            child_id: random::session_id()?,
            hooked,
        };
        self.write(Priority::Interactive, move |tx| {
            let mut begun = TurnBegun::default();
            for step in &ready.hooked.steps {
                if let Some(taken) = run(tx, &ready, *step)? {
                    begun = taken;
                }
            }
            Ok(begun)
        })
        .await
    }
}

fn read_standing(
    conn: &Connection,
    session: &SessionAddress,
    now: i64,
) -> rusqlite::Result<Standing> {
    conn.prepare_cached(
        "SELECT
           EXISTS (SELECT 1 FROM leases AS lease
             WHERE lease.session = session.id AND lease.hook_prompt IS NOT NULL
               AND (lease.closed_at IS NULL OR lease.closed_at >= lease.expires_at)
               AND (EXISTS (SELECT 1 FROM cursors WHERE lease = lease.id)
                 OR EXISTS (SELECT 1 FROM messages WHERE lease = lease.id))),
           EXISTS (SELECT 1 FROM cursors AS cursor
             WHERE cursor.watcher = session.key AND cursor.notified > cursor.last_seen
               AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.id = cursor.lease
                               AND closed_at IS NULL AND expires_at > ?3))
           OR EXISTS (SELECT 1 FROM messages AS message
             WHERE message.target = session.id AND message.delivered_at IS NULL
               AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.id = message.lease
                               AND closed_at IS NULL AND expires_at > ?3)),
           EXISTS (SELECT 1 FROM running_turns WHERE session = session.id)
         FROM sessions AS session
         JOIN session_keys AS session_key ON session_key.id = session.key
         WHERE session_key.session_key = ?1 AND session.agent_id = ?2",
    )?
    .query_row(
        (session.key().as_str(), session.agent().as_str(), now),
        |row| {
            Ok(Standing {
                leased: row.get(0)?,
                available: row.get(1)?,
                running: row.get(2)?,
            })
        },
    )
}

fn run(tx: &mut Tx<'_>, ready: &Ready, step: HookStep) -> OpResult<Option<TurnBegun>> {
    let Hooked {
        speaker, sessions, ..
    } = &ready.hooked;
    match step {
        HookStep::Show => show_lease(tx, ready)?,
        HookStep::Confirm => confirm_leases(tx, ready)?,
        HookStep::Release => release_leases(tx, ready)?,
        HookStep::Mark => mark_turn(tx, speaker, &ready.fresh_id)?,
        HookStep::Begin => {
            mark_turn(tx, speaker, &ready.fresh_id)?;
            let new = NewLease {
                token: ready.token,
                hook_prompt: Some(ready.prompt.clone()),
                room: Room::Hook,
            };
            return Ok(Some(take(tx, speaker, &new)?));
        }
        HookStep::TakeNotices => {
            let new = NewLease {
                token: ready.token,
                hook_prompt: Some(ready.prompt.clone()),
                room: Room::Wake,
            };
            let begun = take(tx, speaker, &new)?;
            if begun.token.is_some() {
                mark_turn(tx, speaker, &ready.fresh_id)?;
            }
            return Ok(Some(begun));
        }
        HookStep::EndTurn => {
            for session in sessions {
                if let Some(number) = tx.find_session(session)? {
                    tx.execute("DELETE FROM running_turns WHERE session = ?1", [number])?;
                }
            }
        }
        HookStep::EndWatches => {
            for session in sessions {
                end_watches_of(tx, session)?;
            }
        }
        HookStep::SpawnChild => spawn_child(tx, ready)?,
        HookStep::CompleteChild => end_child(tx, ready, None)?,
        HookStep::FailChild => end_child(tx, ready, Some(RunOutcome::Error))?,
        HookStep::Fail => fail(tx, ready)?,
        HookStep::Compact => {
            let automatic = ready.hooked.event.trigger == CompactionTrigger::Automatic;
            let signal = NewSignal::new(speaker.clone(), SignalKind::Compacted, Actor::System);
            compacted(tx, &Prepared::new(signal)?, automatic.then_some(speaker))?;
        }
    }
    Ok(None)
}

/// A lease that hooks took and that was not given back.
struct HookLease {
    id: i64,
    token: TurnToken,
    /// The prompt that it was taken for, empty where the program named none.
    prompt: String,
    /// Its hook has handed the program what it is over.
    shown: bool,
}

/// The leases that hooks of these sessions took and that were not given back: those of this
/// prompt, where both sides name one.
fn hook_leases(tx: &mut Tx<'_>, ready: &Ready, prompt: &str) -> OpResult<Vec<HookLease>> {
    let mut leases = Vec::new();
    for session in &ready.hooked.sessions {
        let Some(number) = tx.find_session(session)? else {
            continue;
        };
        leases.extend(tx.rows(
            "SELECT id, token, hook_prompt, hook_shown FROM leases
             WHERE session = ?1 AND hook_prompt IS NOT NULL
               AND (closed_at IS NULL OR closed_at >= expires_at)
               AND (?2 = '' OR hook_prompt IN ('', ?2))",
            (number, prompt),
            |row| {
                Ok(HookLease {
                    id: row.get(0)?,
                    token: TurnToken(row.get(1)?),
                    prompt: row.get(2)?,
                    shown: row.get(3)?,
                })
            },
        )?);
    }
    Ok(leases)
}

/// Notes that the program has been handed what a lease is over.
fn show_lease(tx: &mut Tx<'_>, ready: &Ready) -> OpResult<()> {
    let token = ready.hooked.event.lease.as_deref();
    let Some(token) = token.and_then(TurnToken::parse) else {
        return Ok(());
    };
    for lease in hook_leases(tx, ready, "")? {
        if lease.token == token {
            tx.execute("UPDATE leases SET hook_shown = 1 WHERE id = ?1", [lease.id])?;
        }
    }
    Ok(())
}

/// Confirms what was handed over. What no hook has said to have shown may have come too late
/// for the program, or not at all: it is told again.
fn confirm_leases(tx: &mut Tx<'_>, ready: &Ready) -> OpResult<()> {
    for lease in hook_leases(tx, ready, &ready.prompt)? {
        if lease.shown {
            confirm_lease(tx, lease.id)?;
        }
    }
    Ok(())
}

/// Gives back what no hook has confirmed. Where the same hook takes it again, nobody is
/// woken for it; and what another hook of the same prompt has taken stays with that one.
fn release_leases(tx: &mut Tx<'_>, ready: &Ready) -> OpResult<()> {
    let takes_again = ready.hooked.steps.contains(&HookStep::Begin);
    for lease in hook_leases(tx, ready, "")? {
        let of_this_prompt = !ready.prompt.is_empty() && lease.prompt == ready.prompt;
        if takes_again && of_this_prompt {
            continue;
        }
        if takes_again {
            end_lease(tx, lease.id)?;
        } else {
            close_lease(tx, lease.id)?;
        }
    }
    Ok(())
}

/// The session of a sub-agent: `agent:<id>:subagent:<agent_id>`.
fn child(ready: &Ready) -> OpResult<Option<SessionAddress>> {
    let Some(id) = &ready.hooked.event.agent_id else {
        return Ok(None);
    };
    let agent = ready.hooked.speaker.agent();
    let key = ThreadId::parse(id)
        .map_err(|error| StateError::invalid(error.to_string()))
        .and_then(|id| {
            SessionKey::parse(&format!("agent:{agent}:subagent:{}", id.key_part()))
                .map_err(|error| StateError::invalid(error.to_string()))
        })?;
    let address = SessionAddress::resolve(key, agent)
        .map_err(|error| StateError::invalid(error.to_string()))?;
    Ok(Some(address))
}

fn spawn_child(tx: &mut Tx<'_>, ready: &Ready) -> OpResult<()> {
    let Some(child) = child(ready)? else {
        return Ok(());
    };
    let parent = ready.hooked.speaker.key().clone();
    let label = ready.hooked.event.agent_type.as_deref();
    if ensure_entry(tx, &child, &ready.child_id)?.created {
        let number = tx.session(&child)?;
        tx.execute(
            "UPDATE entries SET spawned_by = ?2, parent_session_key = ?2, label = ?3
             WHERE session = ?1",
            (
                number,
                parent.as_str(),
                label
                    .and_then(Summary::from_text)
                    .as_ref()
                    .map(Summary::as_str),
            ),
        )?;
        entries_changed(tx, &child);
    }
    let signal = NewSignal {
        parent: Some(parent.clone()),
        dedupe_key: Some(SPAWNED_ONCE.to_owned()),
        ..NewSignal::new(child, SignalKind::ChildSpawned, Actor::Agent(parent))
    };
    record(tx, &Prepared::new(signal)?)?;
    Ok(())
}

/// The end of a sub-agent's run, once. One that no hook has seen begin is the program's own
/// helper, and nobody's child.
fn end_child(tx: &mut Tx<'_>, ready: &Ready, failure: Option<RunOutcome>) -> OpResult<()> {
    let Some(child) = child(ready)? else {
        return Ok(());
    };
    let Some(entry) = child_of(tx, &child)? else {
        return Ok(());
    };
    let kind = match failure {
        None => SignalKind::RunCompleted,
        Some(_) => SignalKind::RunFailed,
    };
    let signal = NewSignal {
        payload: Payload {
            outcome: failure,
            ..Payload::default()
        },
        dedupe_key: Some(run_dedupe_key(None, &entry.session_id)),
        ..NewSignal::new(child, kind, Actor::System)
    };
    record(tx, &Prepared::new(signal)?)?;
    Ok(())
}

/// The failure of the session's own turn, which is news where somebody spawned it.
fn fail(tx: &mut Tx<'_>, ready: &Ready) -> OpResult<()> {
    for session in &ready.hooked.sessions {
        if child_of(tx, session)?.is_none() {
            continue;
        }
        let prompt = ready.hooked.event.prompt_id.as_deref();
        let signal = NewSignal {
            run_id: prompt.map(str::to_owned),
            payload: Payload {
                outcome: Some(RunOutcome::Error),
                ..Payload::default()
            },
            dedupe_key: prompt.map(|prompt| run_dedupe_key(Some(prompt), "")),
            ..NewSignal::new(session.clone(), SignalKind::RunFailed, Actor::System)
        };
        record(tx, &Prepared::new(signal)?)?;
    }
    Ok(())
}
