//! What the readable projection of an agent's entries showed last, and what somebody else
//! made of it.

use std::collections::BTreeMap;

use rusqlite::Connection;
use tidings_protocol::{Actor, EpochMs, SessionKey};

use super::State;
use super::address::{AgentId, SessionAddress};
use super::engine::{OpResult, Priority, ReadError, Tx};
use super::entry::{ENTRY_COLUMNS, Entry, put_entry, read_entry};
use super::error::StateError;
use super::goals::tell_goal;
use super::lifecycle;
use super::sessions::entries_changed;
use super::sql::parsed;
use crate::sessions::differences::Differences;
use crate::sessions::merge::{EntryDigest, HandEdit, Known, Settled, digest_of, settle};

/// Tells a file from another.
pub type FileDigest = [u8; 32];

/// All entries of an agent, as its projection shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projection {
    /// The agent.
    pub agent: AgentId,
    /// A JSON object: session key → entry, sorted by key.
    pub json: String,
    /// What tells its entries apart.
    pub entries: BTreeMap<SessionKey, EntryDigest>,
}

/// What the projection of an agent showed last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastProjection {
    /// The newest file; `None` before the first.
    pub file: Option<FileDigest>,
    /// The one before, while the newest may not be in place yet.
    pub before: Option<FileDigest>,
    /// Its entries.
    pub entries: BTreeMap<SessionAddress, Known>,
}

/// Which of the files that may stand there does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InPlace {
    /// The newest.
    Last,
    /// The one before.
    Before,
}

/// A projection that is about to take its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextProjection {
    /// The agent.
    pub agent: AgentId,
    /// Which file it replaces.
    pub in_place: InPlace,
    /// What tells it from others.
    pub file: FileDigest,
    /// What it shows otherwise than the file that it replaces.
    pub differences: Differences,
}

/// A file that somebody else wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignFile {
    /// Whose store it is.
    pub agent: AgentId,
    /// What tells it from others.
    pub file: FileDigest,
    /// What it shows otherwise than the last file; an entry that cannot be meant does not
    /// count.
    pub differences: Differences,
    /// What was changed in it.
    pub edits: Vec<HandEdit>,
}

/// What became of edits by hand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merged {
    /// How many were taken.
    pub taken: usize,
    /// The sessions that the gateway had changed too.
    pub conflicts: Vec<SessionAddress>,
}

impl State {
    /// All entries of an agent.
    pub async fn projection(&self, agent: AgentId) -> Result<Projection, StateError> {
        self.read(move |conn| read_projection(conn, agent)).await
    }

    /// What the projection of an agent showed last.
    pub async fn last_projection(&self, agent: AgentId) -> Result<LastProjection, StateError> {
        self.read(move |conn| read_last(conn, &agent)).await
    }

    /// When a projection was last written, of whatever agent: a gateway ran then.
    pub async fn last_projected_at(&self) -> Result<Option<EpochMs>, StateError> {
        self.read(|conn| {
            Ok(conn
                .prepare_cached("SELECT max(written_at) FROM projections")?
                .query_row([], |row| row.get(0))?)
        })
        .await
    }

    /// Remembers a projection that is about to take its place: from now on either is ours.
    pub async fn announce_projection(&self, next: NextProjection) -> Result<(), StateError> {
        self.write(Priority::Upkeep, move |tx| announce(tx, &next))
            .await
    }

    /// Remembers that the newest projection is in place, and durable.
    pub async fn projection_in_place(&self, agent: AgentId) -> Result<(), StateError> {
        self.write(Priority::Upkeep, move |tx| {
            resolve_pending(tx, &agent, InPlace::Last)
        })
        .await
    }

    /// Takes what somebody changed in the file, where the gateway did not change it too. From
    /// then on the file is as good as one of ours.
    pub async fn merge_hand_edits(&self, foreign: ForeignFile) -> Result<Merged, StateError> {
        self.write(Priority::Upkeep, move |tx| {
            let merged = merge(tx, &foreign.edits)?;
            set_last(tx, &foreign)?;
            Ok(merged)
        })
        .await
    }
}

fn read_projection(conn: &Connection, agent: AgentId) -> Result<Projection, ReadError> {
    let entries: BTreeMap<String, Entry> = conn
        .prepare_cached(&format!(
            "SELECT session_key.session_key, {ENTRY_COLUMNS}
             FROM entries AS entry
             JOIN sessions AS session ON session.id = entry.session
             JOIN session_keys AS session_key ON session_key.id = session.key
             WHERE session.agent_id = ?1"
        ))?
        .query_map([agent.as_str()], |row| {
            Ok((row.get(0)?, Entry::from_row(row, 1)?))
        })?
        .collect::<Result<_, _>>()?;
    let failed = |error: String| ReadError::Refused(StateError::Invalid(error));
    let json = serde_json::to_string_pretty(&entries).map_err(|error| failed(error.to_string()))?;
    let digests = entries.iter().map(|(key, entry)| {
        let key = SessionKey::parse(key).map_err(|error| failed(error.to_string()))?;
        Ok((key, digest_of(entry)))
    });
    Ok(Projection {
        entries: digests.collect::<Result<_, ReadError>>()?,
        agent,
        json,
    })
}

fn read_last(conn: &Connection, agent: &AgentId) -> Result<LastProjection, ReadError> {
    let mut last = LastProjection::default();
    let mut files =
        conn.prepare_cached("SELECT digest, previous_digest FROM projections WHERE agent_id = ?1")?;
    let mut rows = files.query([agent.as_str()])?;
    if let Some(row) = rows.next()? {
        last.file = Some(row.get(0)?);
        last.before = row.get(1)?;
    }
    let known = conn
        .prepare_cached(
            "SELECT session_key, digest, pending, previous_digest FROM projected_entries
             WHERE agent_id = ?1",
        )?
        .query_map([agent.as_str()], |row| {
            let key = parsed(row, 0, SessionKey::parse)?;
            let pending: bool = row.get(2)?;
            let before: Option<EntryDigest> = row.get(3)?;
            let known = Known {
                last: row.get(1)?,
                before: pending.then_some(before),
            };
            Ok((key, known))
        })?
        .collect::<Result<Vec<_>, _>>()?;
    for (key, known) in known {
        let session = SessionAddress::resolve(key, agent)
            .map_err(|error| ReadError::Refused(StateError::invalid(error.to_string())))?;
        last.entries.insert(session, known);
    }
    Ok(last)
}

fn announce(tx: &mut Tx<'_>, next: &NextProjection) -> OpResult<()> {
    let agent = next.agent.as_str();
    resolve_pending(tx, &next.agent, next.in_place)?;
    for (key, digest) in &next.differences {
        tx.execute(
            "INSERT INTO projected_entries (agent_id, session_key, digest, pending)
             VALUES (?1, ?2, ?3, 1)
             ON CONFLICT DO UPDATE SET digest = excluded.digest, pending = 1,
                previous_digest = digest",
            (agent, key.as_str(), digest),
        )?;
    }
    tx.execute(
        "INSERT INTO projections (agent_id, digest, written_at) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET previous_digest = digest, digest = excluded.digest,
            written_at = excluded.written_at",
        (agent, next.file, tx.now()),
    )?;
    Ok(())
}

/// Ends the doubt about which of two projections is in place.
fn resolve_pending(tx: &Tx<'_>, agent: &AgentId, in_place: InPlace) -> OpResult<()> {
    let agent = [agent.as_str()];
    if in_place == InPlace::Before {
        tx.execute(
            "UPDATE projected_entries SET digest = previous_digest
             WHERE agent_id = ?1 AND pending",
            agent,
        )?;
        tx.execute(
            "UPDATE projections SET digest = previous_digest
             WHERE agent_id = ?1 AND previous_digest IS NOT NULL",
            agent,
        )?;
    }
    tx.execute(
        "DELETE FROM projected_entries WHERE agent_id = ?1 AND pending AND digest IS NULL",
        agent,
    )?;
    tx.execute(
        "UPDATE projected_entries SET pending = 0, previous_digest = NULL
         WHERE agent_id = ?1 AND pending",
        agent,
    )?;
    tx.execute(
        "UPDATE projections SET previous_digest = NULL
         WHERE agent_id = ?1 AND previous_digest IS NOT NULL",
        agent,
    )?;
    Ok(())
}

/// Makes a file that somebody else wrote the last that is known.
fn set_last(tx: &mut Tx<'_>, foreign: &ForeignFile) -> OpResult<()> {
    let agent = foreign.agent.as_str();
    for (key, digest) in &foreign.differences {
        match digest {
            Some(digest) => tx.execute(
                "INSERT INTO projected_entries (agent_id, session_key, digest, pending)
                 VALUES (?1, ?2, ?3, 0)
                 ON CONFLICT DO UPDATE SET digest = excluded.digest, pending = 0,
                    previous_digest = NULL",
                (agent, key.as_str(), digest),
            )?,
            None => tx.execute(
                "DELETE FROM projected_entries WHERE agent_id = ?1 AND session_key = ?2",
                (agent, key.as_str()),
            )?,
        };
    }
    tx.execute(
        "INSERT INTO projections (agent_id, digest, written_at) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET digest = excluded.digest, previous_digest = NULL,
            written_at = excluded.written_at",
        (agent, foreign.file, tx.now()),
    )?;
    Ok(())
}

fn merge(tx: &mut Tx<'_>, edits: &[HandEdit]) -> OpResult<Merged> {
    let mut merged = Merged::default();
    let mut changed = None;
    for edit in edits {
        let current = read_entry(tx, &edit.session)?;
        match settle(edit, current.as_ref()) {
            Settled::Stands => {}
            Settled::Conflict => merged.conflicts.push(edit.session.clone()),
            Settled::Take => {
                take(
                    tx,
                    edit,
                    current.as_ref().and_then(|entry| entry.goal.as_deref()),
                )?;
                merged.taken += 1;
                changed = Some(&edit.session);
            }
        }
    }
    // Once for all of them: they are of one agent.
    if let Some(session) = changed {
        entries_changed(tx, session);
    }
    Ok(merged)
}

/// Takes what somebody wrote; who watches hears of another goal.
fn take(tx: &mut Tx<'_>, edit: &HandEdit, goal_before: Option<&str>) -> OpResult<()> {
    let Some(entry) = &edit.wanted else {
        lifecycle::delete_leaving_archive(tx, &edit.session)?;
        return Ok(());
    };
    let number = tx.session(&edit.session)?;
    put_entry(tx, number, entry)?;
    let goals = (goal_before, entry.goal.as_deref());
    tell_goal(tx, &edit.session, goals, &Actor::Human)?;
    Ok(())
}
