//! What happened in a session that runs elsewhere: an input, a compaction.

use tidings_protocol::session_api::Recorded;
use tidings_protocol::signal::Payload;
use tidings_protocol::{Actor, EpochMs, SignalKind};

use super::State;
use super::address::SessionAddress;
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::random;
use super::sessions::{ensure_entry, entries_changed};
use super::signals::{NewSignal, Prepared, Recording, record, repeat_of};
use crate::awareness::actor::{Provenance, actor_of_input};
use crate::awareness::recording::occurred_at;

/// An input that a session got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewInput {
    /// The session.
    pub session: SessionAddress,
    /// Where it came from.
    pub provenance: Provenance,
    /// The channel it came by; none is `unknown`.
    pub channel: Option<String>,
    /// When it came; now where nobody knows.
    pub occurred_at: Option<EpochMs>,
    /// Records once per session under this key.
    pub dedupe_key: Option<String>,
}

/// A compaction of a session's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction {
    /// The session.
    pub session: SessionAddress,
    /// True where nobody asked for it: only those are counted in the entry.
    pub automatic: bool,
    /// Records once per session under this key.
    pub dedupe_key: Option<String>,
    /// What it left, where the gateway made it.
    pub left: Option<Compacted>,
}

/// What a compaction left of a conversation whose transcript is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compacted {
    /// How many tokens the context has now, by estimate.
    pub context_tokens: u64,
    /// The file in which the conversation goes on, where that is another.
    pub session_file: Option<String>,
}

impl State {
    /// Records an input. Only a human's becomes a signal, and only where somebody watches;
    /// only a human's keeps the conversation fresh. Where an upstream file is followed, its
    /// node reports what humans say, and nothing else does.
    pub async fn record_input(&self, input: NewInput) -> Result<Recorded, StateError> {
        let actor = actor_of_input(input.provenance);
        let ready = ReadyInput {
            signal: Prepared::new(NewSignal {
                occurred_at: input.occurred_at,
                payload: Payload {
                    channel: input.channel,
                    ..Payload::default()
                },
                dedupe_key: input.dedupe_key.clone(),
                ..NewSignal::new(
                    input.session.clone(),
                    SignalKind::HumanDirectMessage,
                    actor.clone(),
                )
            })?,
            session: input.session,
            actor,
            occurred_at: input.occurred_at,
            dedupe_key: input.dedupe_key,
            fresh_id: random::session_id()?,
        };
        self.write(Priority::Interactive, move |tx| record_input(tx, &ready))
            .await
    }

    /// Records a compaction, and in the same transaction what it left.
    pub async fn record_compaction(&self, compaction: Compaction) -> Result<Recorded, StateError> {
        let fresh_id = random::session_id()?;
        let session = compaction.session;
        let signal = Prepared::new(NewSignal {
            dedupe_key: compaction.dedupe_key,
            ..NewSignal::new(session.clone(), SignalKind::Compacted, Actor::System)
        })?;
        self.write(Priority::Interactive, move |tx| {
            ensure_entry(tx, &session, &fresh_id)?;
            let counted = compaction.automatic.then_some(&session);
            let recording = compacted(tx, &signal, counted)?;
            if let (Some(left), Recording::New(_)) = (&compaction.left, recording) {
                write_left(tx, &session, left)?;
            }
            Ok(recording.into())
        })
        .await
    }
}

/// Records a compaction, and counts it in the entry of `counted`.
pub(crate) fn compacted(
    tx: &mut Tx<'_>,
    signal: &Prepared,
    counted: Option<&SessionAddress>,
) -> OpResult<Recording> {
    let recording = record(tx, signal)?;
    if let (Some(session), Recording::New(_)) = (counted, recording) {
        count_compaction(tx, session)?;
    }
    Ok(recording)
}

struct ReadyInput {
    signal: Prepared,
    session: SessionAddress,
    actor: Actor,
    occurred_at: Option<EpochMs>,
    dedupe_key: Option<String>,
    fresh_id: String,
}

fn record_input(tx: &mut Tx<'_>, input: &ReadyInput) -> OpResult<Recorded> {
    ensure_entry(tx, &input.session, &input.fresh_id)?;
    let number = tx.session(&input.session)?;
    if let Some(dedupe_key) = &input.dedupe_key
        && let Some(sequence) = repeat_of(tx, number, dedupe_key)?
    {
        return Ok(Recording::Repeat(sequence).into());
    }
    if input.actor != Actor::Human {
        touched(tx, &input.session, number)?;
        return Ok(Recorded {
            recorded: false,
            sequence: None,
            reason: Some("only what a human says is a signal".to_owned()),
        });
    }
    if has_link(tx, number)? {
        return Ok(Recorded {
            recorded: false,
            sequence: None,
            reason: Some("what a human says there is recorded from its transcript".to_owned()),
        });
    }
    let recording = record(tx, &input.signal)?;
    let spoken_at = occurred_at(input.occurred_at, tx.now());
    spoken_in(tx, &input.session, number, spoken_at)?;
    Ok(recording.into())
}

/// True for a session whose upstream file is followed: its node reports what humans say.
fn has_link(tx: &Tx<'_>, session: i64) -> rusqlite::Result<bool> {
    tx.prepare("SELECT 1 FROM links WHERE session = ?1")?
        .exists([session])
}

/// Somebody spoke in a session: lists show it by that, watched or not, and its conversation
/// is fresh.
pub(crate) fn spoken_in(
    tx: &mut Tx<'_>,
    session: &SessionAddress,
    number: i64,
    spoken_at: EpochMs,
) -> OpResult<()> {
    let spoken = tx.execute(
        "UPDATE entries
         SET last_interaction_at = max(coalesce(last_interaction_at, 0), ?2), updated_at = ?3
         WHERE session = ?1",
        (number, spoken_at, tx.now()),
    )?;
    if spoken > 0 {
        entries_changed(tx, session);
    }
    Ok(())
}

/// Something happened in a session that keeps no conversation fresh.
fn touched(tx: &mut Tx<'_>, session: &SessionAddress, number: i64) -> OpResult<()> {
    tx.execute(
        "UPDATE entries SET updated_at = ?2 WHERE session = ?1",
        (number, tx.now()),
    )?;
    entries_changed(tx, session);
    Ok(())
}

/// What a compaction left. Notes that were written before it belong to a cycle that is over.
fn write_left(tx: &mut Tx<'_>, session: &SessionAddress, left: &Compacted) -> OpResult<()> {
    let number = tx.session(session)?;
    let tokens = i64::try_from(left.context_tokens).unwrap_or(i64::MAX);
    tx.execute(
        "UPDATE entries
         SET context_tokens = ?2, context_tokens_estimated = 1,
             session_file = coalesce(?3, session_file),
             memory_flush_compaction_count = NULL, updated_at = ?4
         WHERE session = ?1",
        (number, tokens, &left.session_file, tx.now()),
    )?;
    entries_changed(tx, session);
    Ok(())
}

fn count_compaction(tx: &mut Tx<'_>, session: &SessionAddress) -> OpResult<()> {
    let number = tx.session(session)?;
    tx.execute(
        "UPDATE entries
         SET compaction_count = coalesce(compaction_count, 0) + 1, updated_at = ?2
         WHERE session = ?1",
        (number, tx.now()),
    )?;
    entries_changed(tx, session);
    Ok(())
}
