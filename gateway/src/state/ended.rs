//! What is left of conversations and agents that have ended: the files, which no transaction
//! can move. A row stands for each until somebody has put it away, whatever ends meanwhile.

use rusqlite::Row;
use tidings_protocol::EpochMs;

use super::State;
use super::address::{AgentId, SessionAddress};
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::sql::parsed;
use crate::sessions::names;
use crate::upstream::trust::is_adopted;

/// How many ended transcripts are read at once.
const PAGE: i64 = 256;

/// What becomes of a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Another conversation has begun in its session.
    Reset,
    /// Its session was deleted.
    Deleted,
}

/// The transcript of a conversation that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedTranscript {
    /// What tells it from others.
    pub number: i64,
    /// Whose.
    pub agent: AgentId,
    /// The conversation.
    pub session_id: String,
    /// Its file, where the name does not follow from the id.
    pub session_file: Option<String>,
    /// What becomes of it.
    pub fate: Fate,
    /// When it ended.
    pub ended_at: EpochMs,
}

/// What stands in the database is no fate.
#[derive(Debug, thiserror::Error)]
#[error("it is no fate of a transcript")]
struct UnknownFate;

impl Fate {
    /// The word that stands in an archive's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Deleted => "deleted",
        }
    }

    fn parse(text: &str) -> Result<Self, UnknownFate> {
        [Self::Reset, Self::Deleted]
            .into_iter()
            .find(|fate| fate.as_str() == text)
            .ok_or(UnknownFate)
    }
}

impl State {
    /// Transcripts that are to be put away, the oldest first, after the one of this number.
    pub async fn ended_transcripts(&self, after: i64) -> Result<Vec<EndedTranscript>, StateError> {
        self.read(move |conn| {
            let ended = conn
                .prepare_cached(
                    "SELECT id, agent_id, session_id, session_file, fate, ended_at
                     FROM ended_transcripts WHERE id > ?1 ORDER BY id LIMIT ?2",
                )?
                .query_map((after, PAGE), ended_row)?
                .collect::<Result<_, _>>()?;
            Ok(ended)
        })
        .await
    }

    /// Forgets a transcript that was put away.
    pub async fn transcript_put_away(&self, number: i64) -> Result<(), StateError> {
        self.write(Priority::Upkeep, move |tx| {
            tx.execute("DELETE FROM ended_transcripts WHERE id = ?1", [number])?;
            Ok(())
        })
        .await
    }

    /// The agents whose end was begun and is not through.
    pub async fn leaving_agents(&self) -> Result<Vec<AgentId>, StateError> {
        self.read(|conn| {
            let agents = conn
                .prepare_cached("SELECT agent_id FROM leaving_agents ORDER BY agent_id")?
                .query_map([], |row| parsed(row, 0, AgentId::parse))?
                .collect::<Result<_, _>>()?;
            Ok(agents)
        })
        .await
    }

    /// Forgets an agent of which nothing is left.
    pub async fn agent_left(&self, agent: AgentId) -> Result<(), StateError> {
        self.write(Priority::Upkeep, move |tx| {
            let agent = [agent.as_str()];
            tx.execute("DELETE FROM leaving_agents WHERE agent_id = ?1", agent)?;
            tx.execute("DELETE FROM ended_transcripts WHERE agent_id = ?1", agent)?;
            Ok(())
        })
        .await
    }
}

fn ended_row(row: &Row<'_>) -> rusqlite::Result<EndedTranscript> {
    Ok(EndedTranscript {
        number: row.get(0)?,
        agent: parsed(row, 1, AgentId::parse)?,
        session_id: row.get(2)?,
        session_file: row.get(3)?,
        fate: parsed(row, 4, Fate::parse)?,
        ended_at: row.get(5)?,
    })
}

/// Remembers in this transaction that the conversation which continues a session ends now, and
/// what becomes of its transcript. Nothing where that is with an agent program, or where
/// another entry of the agent names it too.
pub(crate) fn conversation_ends(
    tx: &Tx<'_>,
    session: &SessionAddress,
    number: i64,
    fate: Fate,
) -> OpResult<()> {
    let standing = tx.row(
        "SELECT session_id, session_file FROM entries WHERE session = ?1",
        [number],
        |row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?)),
    )?;
    let Some((session_id, session_file)) = standing.filter(|_| !is_adopted(session.key())) else {
        return Ok(());
    };
    tx.execute(
        "DELETE FROM kept_conversations WHERE session = ?1",
        [number],
    )?;
    let of_topic = || {
        let topic = names::topic_of(session.key())?;
        Some(names::transcript(&session_id, Some(topic)))
    };
    let session_file = session_file.or_else(of_topic);
    let agent = session.agent();
    if is_shared(tx, agent, number, (&session_id, session_file.as_deref()))? {
        return Ok(());
    }
    tx.execute(
        "INSERT INTO ended_transcripts (agent_id, session_id, session_file, fate, ended_at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        (
            agent.as_str(),
            &session_id,
            &session_file,
            fate.as_str(),
            tx.now(),
        ),
    )?;
    Ok(())
}

/// True where another entry of the agent names the same file.
fn is_shared(
    tx: &Tx<'_>,
    agent: &AgentId,
    session: i64,
    (session_id, session_file): (&str, Option<&str>),
) -> OpResult<bool> {
    let usual = format!("{session_id}.jsonl");
    let path = session_file.unwrap_or(&usual);
    let name = path.rsplit('/').next().unwrap_or(path);
    let shared = tx
        .prepare(
            "SELECT 1 FROM entries AS entry
             JOIN sessions AS session ON session.id = entry.session
             JOIN session_keys AS session_key ON session_key.id = session.key
             WHERE session.agent_id = ?1 AND entry.session <> ?2
               AND CASE WHEN entry.session_file IS NULL
                        THEN entry.session_id || '.jsonl' = ?3
                         AND session_key.session_key NOT LIKE 'agent:%:topic:%'
                        ELSE entry.session_file = ?3
                          OR substr(entry.session_file, -length(?3) - 1) = '/' || ?3 END",
        )?
        .exists((agent.as_str(), session, name))?;
    Ok(shared)
}
