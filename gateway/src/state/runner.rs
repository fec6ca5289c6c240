//! Sessions that the gateway itself runs.

use rusqlite::OptionalExtension;
use tidings_protocol::{EpochMs, SessionKey};

use super::State;
use super::address::{AgentId, SessionAddress};
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::leases::close_lease;
use super::random;
use super::sessions::{ensure_entry, entries_changed};
use super::sql::{conversion, int, parsed};

/// A session that the gateway runs, as it stands at a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSession {
    /// The session.
    pub session: SessionAddress,
    /// True where a turn of it was cut off by the end of the process before.
    pub was_running: bool,
    /// True where messages wait for it.
    pub has_messages: bool,
    /// True for somebody's child.
    pub is_child: bool,
}

/// What a turn cost, and how much the context holds behind it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnCost {
    /// Tokens of its prompts.
    pub input: u64,
    /// Tokens of its answers.
    pub output: u64,
    /// What the context holds; `None` where that is what it was.
    pub context: Option<ContextSize>,
}

/// How many tokens a context holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextSize {
    /// So many.
    pub tokens: u64,
    /// True for an estimate, false where the provider counted.
    pub estimated: bool,
}

impl State {
    /// From now on the gateway runs this session.
    pub async fn run_session(&self, session: SessionAddress) -> Result<(), StateError> {
        let fresh_id = random::session_id()?;
        self.write(Priority::Interactive, move |tx| {
            ensure_entry(tx, &session, &fresh_id)?;
            mark_run(tx, &session)
        })
        .await
    }

    /// True for a session that the gateway runs.
    pub async fn is_run_session(&self, session: SessionAddress) -> Result<bool, StateError> {
        self.read(move |conn| {
            let found = conn
                .prepare_cached(
                    "SELECT 1 FROM run_sessions
                     JOIN sessions AS session ON session.id = run_sessions.session
                     JOIN session_keys AS session_key ON session_key.id = session.key
                     WHERE session_key.session_key = ?1 AND session.agent_id = ?2",
                )?
                .query_row((session.key().as_str(), session.agent().as_str()), |_| {
                    Ok(())
                })
                .optional()?;
            Ok(found.is_some())
        })
        .await
    }

    /// The sessions that the gateway runs, at its start: what their turns held is available
    /// again, and no turn of them runs any more.
    pub async fn resume_run_sessions(&self) -> Result<Vec<RunSession>, StateError> {
        self.write(Priority::Interactive, |tx| {
            let leases: Vec<i64> = tx.rows(
                "SELECT leases.id FROM leases JOIN run_sessions USING (session)
                 WHERE leases.closed_at IS NULL",
                [],
                |row| row.get(0),
            )?;
            let sessions = tx.rows(
                "SELECT session_key.session_key, session.agent_id,
                        EXISTS (SELECT 1 FROM running_turns WHERE session = session.id),
                        EXISTS (SELECT 1 FROM messages WHERE target = session.id
                                                         AND delivered_at IS NULL),
                        EXISTS (SELECT 1 FROM entries WHERE session = session.id
                                                        AND parent_session_key IS NOT NULL)
                 FROM run_sessions
                 JOIN sessions AS session ON session.id = run_sessions.session
                 JOIN session_keys AS session_key ON session_key.id = session.key
                 ORDER BY session.id",
                [],
                run_session,
            )?;
            for lease in leases {
                close_lease(tx, lease)?;
            }
            tx.execute(
                "DELETE FROM running_turns WHERE session IN (SELECT session FROM run_sessions)",
                [],
            )?;
            Ok(sessions)
        })
        .await
    }

    /// Counts what a turn cost.
    pub async fn count_turn(
        &self,
        session: SessionAddress,
        cost: TurnCost,
    ) -> Result<(), StateError> {
        self.write(Priority::Interactive, move |tx| {
            let number = tx.session(&session)?;
            tx.execute(
                "UPDATE entries
                 SET input_tokens = coalesce(input_tokens, 0) + ?2,
                     output_tokens = coalesce(output_tokens, 0) + ?3,
                     total_tokens = coalesce(total_tokens, 0) + ?2 + ?3,
                     context_tokens = coalesce(?4, context_tokens),
                     context_tokens_estimated = coalesce(?5, context_tokens_estimated),
                     updated_at = ?6
                 WHERE session = ?1",
                (
                    number,
                    int(cost.input),
                    int(cost.output),
                    cost.context.map(|context| int(context.tokens)),
                    cost.context.map(|context| context.estimated),
                    tx.now(),
                ),
            )?;
            entries_changed(tx, &session);
            Ok(())
        })
        .await
    }

    /// Notes that a session's agent has written what must outlast a compaction: once in each
    /// cycle.
    pub async fn note_flush(&self, session: SessionAddress) -> Result<(), StateError> {
        self.write(Priority::Interactive, move |tx| {
            let number = tx.session(&session)?;
            let now: EpochMs = tx.now();
            tx.execute(
                "UPDATE entries
                 SET memory_flush_at = ?2, updated_at = ?2,
                     memory_flush_compaction_count = coalesce(compaction_count, 0)
                 WHERE session = ?1",
                (number, now),
            )?;
            entries_changed(tx, &session);
            Ok(())
        })
        .await
    }
}

/// The gateway runs this session, whose entry stands.
pub(crate) fn mark_run(tx: &mut Tx<'_>, session: &SessionAddress) -> OpResult<()> {
    let number = tx.session(session)?;
    tx.execute(
        "INSERT INTO run_sessions (session, since) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        (number, tx.now()),
    )?;
    Ok(())
}

fn run_session(row: &rusqlite::Row<'_>) -> rusqlite::Result<RunSession> {
    let key = parsed(row, 0, SessionKey::parse)?;
    let agent = parsed(row, 1, AgentId::parse)?;
    Ok(RunSession {
        session: SessionAddress::resolve(key, &agent).map_err(|error| conversion(0, error))?,
        was_running: row.get(2)?,
        has_messages: row.get(3)?,
        is_child: row.get(4)?,
    })
}
