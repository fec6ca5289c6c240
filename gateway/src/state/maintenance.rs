//! What the upkeep of an agent's store knows of its entries, and removes.

use tidings_protocol::{EpochMs, SessionKey};

use super::State;
use super::address::{AgentId, SessionAddress};
use super::engine::{Priority, ReadError};
use super::entry::{ENTRY_COLUMNS, Entry};
use super::error::StateError;
use super::lifecycle;
use super::sql::parsed;
use super::turns::TURN_MS;
use crate::upstream::trust::is_adopted;

/// True while something needs the session: a turn that runs, a watch that somebody asked
/// for, on it or its own, a notice that is pending for it, a message that it has not taken,
/// or a thread that is followed for it. The first parameter is since when a turn that runs
/// has begun, at the earliest.
const IS_NEEDED: &str = "(
    EXISTS (SELECT 1 FROM running_turns WHERE session = session.id AND began_at > ?1)
    OR EXISTS (SELECT 1 FROM links WHERE session = session.id)
    OR EXISTS (SELECT 1 FROM messages WHERE target = session.id AND delivered_at IS NULL)
    OR EXISTS (SELECT 1 FROM cursors
               WHERE target = session.id AND provenance = 'explicit')
    OR EXISTS (SELECT 1 FROM cursors
               WHERE watcher = session.key
                 AND (provenance = 'explicit' OR notified > last_seen)))";

/// An entry, and what its upkeep asks besides.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEntry {
    /// The session.
    pub session: SessionAddress,
    /// The entry.
    pub entry: Entry,
    /// True while something needs it.
    pub is_needed: bool,
    /// True where the transcript is with an agent program.
    pub is_adopted: bool,
}

impl State {
    /// The entries of an agent, and what their upkeep asks.
    pub async fn stored_entries(&self, agent: AgentId) -> Result<Vec<StoredEntry>, StateError> {
        let turns_since = self.inner.clock.now().saturating_sub(TURN_MS);
        self.read(move |conn| {
            let sql = format!(
                "SELECT session_key.session_key, {IS_NEEDED}, {ENTRY_COLUMNS}
                 FROM entries AS entry
                 JOIN sessions AS session ON session.id = entry.session
                 JOIN session_keys AS session_key ON session_key.id = session.key
                 WHERE session.agent_id = ?2
                 ORDER BY session_key.session_key"
            );
            let rows = conn
                .prepare_cached(&sql)?
                .query_map((turns_since, agent.as_str()), |row| {
                    let key = parsed(row, 0, SessionKey::parse)?;
                    Ok((key, row.get(1)?, Entry::from_row(row, 2)?))
                })?
                .collect::<Result<Vec<_>, _>>()?;
            let stored = |(key, is_needed, entry)| {
                let session = SessionAddress::resolve(key, &agent)
                    .map_err(|error| ReadError::Refused(StateError::invalid(error.to_string())))?;
                Ok(StoredEntry {
                    is_adopted: is_adopted(session.key()),
                    session,
                    entry,
                    is_needed,
                })
            };
            rows.into_iter().map(stored).collect()
        })
        .await
    }

    /// Removes a session as [`State::delete_session`] does, if its entry did not change since
    /// `updated_at` and nothing needs it by now.
    pub async fn remove_unneeded(
        &self,
        session: SessionAddress,
        updated_at: EpochMs,
    ) -> Result<bool, StateError> {
        self.write(Priority::Upkeep, move |tx| {
            let Some(number) = tx.find_session(&session)? else {
                return Ok(false);
            };
            let sql = format!(
                "SELECT 1 FROM entries AS entry
                 JOIN sessions AS session ON session.id = entry.session
                 WHERE entry.session = ?2 AND entry.updated_at = ?3 AND NOT {IS_NEEDED}"
            );
            let turns_since = tx.now().saturating_sub(TURN_MS);
            let unneeded = tx.row(&sql, (turns_since, number, updated_at), |_| Ok(()))?;
            if unneeded.is_none() {
                return Ok(false);
            }
            lifecycle::delete(tx, &session)
        })
        .await
    }
}
