//! Agents: what they have, and the end of all of it.

use rusqlite::Row;
use tidings_protocol::SessionKey;
use tidings_protocol::session_api::AgentRow;

use super::State;
use super::address::{AgentId, SessionAddress};
use super::audit::{AuditAction, operator_did};
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::lifecycle::delete;
use super::sql::{conversion, number, parsed};

/// How many sessions one transaction deletes, at most: it holds the writer for a moment.
const DELETE_BATCH: i64 = 16;

impl State {
    /// Every agent that has an entry.
    pub async fn agents(&self) -> Result<Vec<AgentId>, StateError> {
        self.read(|conn| {
            let agents = conn
                .prepare_cached(
                    "SELECT DISTINCT session.agent_id FROM entries AS entry
                     JOIN sessions AS session ON session.id = entry.session
                     ORDER BY session.agent_id",
                )?
                .query_map([], |row| parsed(row, 0, AgentId::parse))?
                .collect::<Result<_, _>>()?;
            Ok(agents)
        })
        .await
    }

    /// Every agent that has a session, by name: a session has an entry or kept events.
    pub async fn agent_rows(&self) -> Result<Vec<AgentRow>, StateError> {
        self.read(|conn| {
            let rows = conn
                .prepare_cached(
                    "SELECT session.agent_id, count(*), max(entry.updated_at)
                     FROM sessions AS session
                     LEFT JOIN entries AS entry ON entry.session = session.id
                     WHERE entry.session IS NOT NULL
                        OR EXISTS (SELECT 1 FROM events WHERE session = session.id)
                     GROUP BY session.agent_id ORDER BY session.agent_id",
                )?
                .query_map([], agent_row)?
                .collect::<Result<_, _>>()?;
            Ok(rows)
        })
        .await
    }

    /// Removes an agent with all that is its own in the database, some sessions at a time.
    /// From the first on the agent leaves ([`State::leaving_agents`]), until
    /// [`State::agent_left`]. Answers how many sessions went.
    pub async fn delete_agent(&self, agent: AgentId) -> Result<u64, StateError> {
        let mut deleted = 0;
        loop {
            let agent = agent.clone();
            let begins = deleted == 0;
            let batch = self
                .write(Priority::Interactive, move |tx| {
                    let batch = delete_some(tx, &agent)?;
                    if begins && batch > 0 {
                        note_leaving(tx, &agent)?;
                        operator_did(tx, AuditAction::DeleteAgent, agent.as_str())?;
                    }
                    Ok(batch)
                })
                .await?;
            if batch == 0 {
                return Ok(deleted);
            }
            deleted += batch;
        }
    }
}

fn agent_row(row: &Row<'_>) -> rusqlite::Result<AgentRow> {
    Ok(AgentRow {
        agent_id: row.get(0)?,
        sessions: number(row, 1)?,
        updated_at: row.get(2)?,
    })
}

/// Remembers that an agent leaves, until nothing of it is left.
fn note_leaving(tx: &Tx<'_>, agent: &AgentId) -> OpResult<()> {
    tx.execute(
        "INSERT INTO leaving_agents (agent_id, asked_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        (agent.as_str(), tx.now()),
    )?;
    Ok(())
}

/// Deletes some sessions of an agent that have anything left, and once none has, the
/// watches of keys that never were sessions themselves, and what is remembered of cron runs.
fn delete_some(tx: &mut Tx<'_>, agent: &AgentId) -> OpResult<u64> {
    let sessions = tx.rows(
        "SELECT session_key.session_key FROM sessions AS session
         JOIN session_keys AS session_key ON session_key.id = session.key
         WHERE session.agent_id = ?1
           AND (EXISTS (SELECT 1 FROM entries WHERE session = session.id)
             OR EXISTS (SELECT 1 FROM events WHERE session = session.id)
             OR EXISTS (SELECT 1 FROM messages WHERE target = session.id)
             OR EXISTS (SELECT 1 FROM cursors WHERE target = session.id))
         LIMIT ?2",
        (agent.as_str(), DELETE_BATCH),
        |row| address_of(row, agent),
    )?;
    for session in &sessions {
        delete(tx, session)?;
    }
    if sessions.is_empty() {
        end_watches_of_agent(tx, agent)?;
        let runs = "DELETE FROM cron_runs WHERE agent_id = ?1";
        tx.execute(runs, [agent.as_str()])?;
    }
    Ok(sessions.len() as u64)
}

fn address_of(row: &Row<'_>, agent: &AgentId) -> rusqlite::Result<SessionAddress> {
    let key = parsed(row, 0, SessionKey::parse)?;
    SessionAddress::resolve(key, agent).map_err(|error| conversion(0, error))
}

/// A parent that only ever spawned holds cursors without being a session.
fn end_watches_of_agent(tx: &Tx<'_>, agent: &AgentId) -> OpResult<()> {
    // The first key after every `agent:<agent>:…`: a semicolon follows the colon.
    let (from, to) = (format!("agent:{agent}:"), format!("agent:{agent};"));
    for sql in [
        "DELETE FROM cursors WHERE watcher IN (
             SELECT id FROM session_keys WHERE session_key >= ?1 AND session_key < ?2)",
        "DELETE FROM watchers WHERE watcher IN (
             SELECT id FROM session_keys WHERE session_key >= ?1 AND session_key < ?2)",
    ] {
        tx.execute(sql, (&from, &to))?;
    }
    Ok(())
}
