//! Session entries: what the gateway keeps about a session besides its transcript.

use rusqlite::{Connection, OptionalExtension, Row};
use tidings_protocol::session_api::{
    MAX_SESSIONS_PER_PAGE, SessionEntry, SessionKind, SessionRow, Sessions,
};
use tidings_protocol::{EpochMs, Host, HostName, SessionKey};

use super::State;
use super::address::{AgentId, SessionAddress};
use super::changes::find;
use super::effect::Effect;
use super::engine::{OpResult, Priority, ReadError, Tx};
use super::entry::{ENTRY_COLUMNS, Entry, put_entry, read_entry};
use super::error::StateError;
use super::random;
use super::sql::{number, parsed, parsed_opt};

/// How many generations of children a tree has, at most: an entry may be edited into a
/// circle.
const MAX_GENERATIONS: u32 = 32;

/// The most of a label that a row of a list shows, in characters.
const MAX_SHOWN_LABEL_CHARS: usize = 200;

/// How many entries are added in one transaction: a few milliseconds of the writer.
const ADDED_TOGETHER: usize = 100;

/// Which entries a list shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shelf {
    /// The active ones.
    #[default]
    Active,
    /// The archived ones.
    Archived,
}

/// A page of sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionsPage {
    /// Only those that the caller may see; `None` for all.
    pub visible: Option<VisibleSessions>,
    /// Only of this agent.
    pub agent: Option<AgentId>,
    /// Only of this kind.
    pub kind: Option<SessionKind>,
    /// The last part of the key of an agent's main session.
    pub main_key: String,
    /// Only those whose upstream is on this host.
    pub host: Option<Host>,
    /// Only those updated at or after this time.
    pub updated_since: Option<EpochMs>,
    /// Which.
    pub shelf: Shelf,
    /// How many, at most [`MAX_SESSIONS_PER_PAGE`].
    pub limit: u32,
    /// How many to pass over.
    pub offset: u32,
}

/// The transcript that continues a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// Its id.
    pub session_id: String,
    /// Its file, where the name does not follow from the id.
    pub session_file: Option<String>,
}

/// Sessions that a caller may see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VisibleSessions {
    /// All of this agent.
    pub agent: Option<AgentId>,
    /// And these.
    pub keys: Vec<SessionKey>,
}

/// A session that exists now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnsuredSession {
    /// The transcript that continues it.
    pub session_id: String,
    /// False when it stood already.
    pub created: bool,
}

/// A mark on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionMark {
    /// Out of the active lists; clears the pin.
    Archive,
    /// Back into the active lists.
    Unarchive,
    /// First in the lists.
    Pin,
    /// In its place again.
    Unpin,
}

impl State {
    /// Makes sure that a session that speaks for itself has an entry.
    pub async fn ensure_session(
        &self,
        session: SessionAddress,
    ) -> Result<EnsuredSession, StateError> {
        let fresh_id = random::session_id()?;
        self.write(Priority::Interactive, move |tx| {
            ensure_entry(tx, &session, &fresh_id)
        })
        .await
    }

    /// Adds entries of sessions that have none; answers how many those were.
    pub async fn add_entries(
        &self,
        entries: Vec<(SessionAddress, Entry)>,
    ) -> Result<usize, StateError> {
        let mut added = 0;
        for batch in entries.chunks(ADDED_TOGETHER) {
            let batch = batch.to_vec();
            added += self
                .write(Priority::Upkeep, move |tx| add_entries(tx, &batch))
                .await?;
        }
        Ok(added)
    }

    /// A page of sessions, pinned first, then the newest.
    pub async fn sessions(&self, page: SessionsPage) -> Result<Sessions, StateError> {
        self.read(move |conn| Ok(read_sessions(conn, &page)?)).await
    }

    /// One session's entry.
    pub async fn session_entry(&self, session: SessionAddress) -> Result<SessionEntry, StateError> {
        self.read(move |conn| {
            let found = find(conn, &session)?.filter(|found| found.has_entry);
            let found = found.ok_or_else(|| StateError::UnknownSession(session.to_string()))?;
            let entry = conn
                .prepare_cached(&format!(
                    "SELECT {ENTRY_COLUMNS} FROM entries AS entry WHERE entry.session = ?1"
                ))?
                .query_row([found.number], |row| Entry::from_row(row, 0))?;
            Ok(SessionEntry {
                session_key: session.key().clone(),
                agent_id: session.agent().to_string(),
                state_version: found.head,
                archived: entry.archived_at.is_some(),
                pinned: entry.pinned_at.is_some(),
                entry: serde_json::to_string(&entry).map_err(|error| not_json(&error))?,
            })
        })
        .await
    }

    /// Which transcript continues a session.
    pub async fn transcript_of(&self, session: SessionAddress) -> Result<Transcript, StateError> {
        self.read(move |conn| {
            let transcript = conn
                .prepare_cached(
                    "SELECT session_id, session_file FROM session_entries
                     WHERE session_key = ?1 AND agent_id = ?2",
                )?
                .query_row((session.key().as_str(), session.agent().as_str()), |row| {
                    Ok(Transcript {
                        session_id: row.get(0)?,
                        session_file: row.get(1)?,
                    })
                })
                .optional()?;
            Ok(transcript.ok_or_else(|| StateError::UnknownSession(session.to_string()))?)
        })
        .await
    }

    /// These sessions, their children, and theirs, as their entries say.
    pub async fn tree_of(&self, roots: Vec<SessionKey>) -> Result<Vec<SessionKey>, StateError> {
        self.read(move |conn| Ok(read_tree(conn, &roots)?)).await
    }

    /// True when the session has an entry or kept events.
    pub async fn session_exists(&self, session: SessionAddress) -> Result<bool, StateError> {
        self.read(move |conn| Ok(find(conn, &session)?.is_some_and(|found| found.exists())))
            .await
    }

    /// Archives or pins an entry, or takes that back.
    pub async fn mark_session(
        &self,
        session: SessionAddress,
        mark: SessionMark,
    ) -> Result<(), StateError> {
        self.write(Priority::Interactive, move |tx| {
            mark_entry(tx, &session, mark)
        })
        .await
    }
}

fn add_entries(tx: &mut Tx<'_>, entries: &[(SessionAddress, Entry)]) -> OpResult<usize> {
    let mut added = 0;
    for (session, entry) in entries {
        if read_entry(tx, session)?.is_none() {
            let number = tx.session(session)?;
            put_entry(tx, number, entry)?;
            entries_changed(tx, session);
            added += 1;
        }
    }
    Ok(added)
}

fn not_json(error: &serde_json::Error) -> ReadError {
    ReadError::Refused(StateError::invalid(error.to_string()))
}

/// Makes sure that a session has an entry; a new one gets `fresh_id`.
pub(crate) fn ensure_entry(
    tx: &mut Tx<'_>,
    session: &SessionAddress,
    fresh_id: &str,
) -> OpResult<EnsuredSession> {
    let number = tx.session(session)?;
    let standing = tx.row(
        "SELECT session_id FROM entries WHERE session = ?1",
        [number],
        |row| row.get(0),
    )?;
    if let Some(session_id) = standing {
        return Ok(EnsuredSession {
            session_id,
            created: false,
        });
    }
    tx.execute(
        "INSERT INTO entries (session, session_id, session_started_at, updated_at)
         VALUES (?1, ?2, ?3, ?3)",
        (number, fresh_id, tx.now()),
    )?;
    entries_changed(tx, session);
    entry_added(tx, session);
    Ok(EnsuredSession {
        session_id: fresh_id.to_owned(),
        created: true,
    })
}

/// Says that the projection of the session's agent is due.
pub(crate) fn entries_changed(tx: &mut Tx<'_>, session: &SessionAddress) {
    tx.tell(Effect::EntriesChanged {
        agent: session.agent().clone(),
    });
}

/// Says that the gateway added an entry.
pub(crate) fn entry_added(tx: &mut Tx<'_>, session: &SessionAddress) {
    tx.tell(Effect::EntryAdded {
        agent: session.agent().clone(),
    });
}

fn mark_entry(tx: &mut Tx<'_>, session: &SessionAddress, mark: SessionMark) -> OpResult<()> {
    let unknown = || StateError::UnknownSession(session.to_string());
    let number = tx.find_session(session)?.ok_or_else(unknown)?;
    let archived: bool = tx
        .row(
            "SELECT archived_at IS NOT NULL FROM entries WHERE session = ?1",
            [number],
            |row| row.get(0),
        )?
        .ok_or_else(unknown)?;
    if archived && mark == SessionMark::Pin {
        let reason = format!("{session} is archived; only an active session is pinned");
        return Err(StateError::Invalid(reason).into());
    }
    let sql = match mark {
        SessionMark::Archive => {
            "UPDATE entries SET archived_at = ?2, pinned_at = NULL, updated_at = ?2
             WHERE session = ?1 AND archived_at IS NULL"
        }
        SessionMark::Unarchive => {
            "UPDATE entries SET archived_at = NULL, updated_at = ?2
             WHERE session = ?1 AND archived_at IS NOT NULL"
        }
        SessionMark::Pin => {
            "UPDATE entries SET pinned_at = ?2, updated_at = ?2
             WHERE session = ?1 AND pinned_at IS NULL"
        }
        SessionMark::Unpin => {
            "UPDATE entries SET pinned_at = NULL, updated_at = ?2
             WHERE session = ?1 AND pinned_at IS NOT NULL"
        }
    };
    if tx.execute(sql, (number, tx.now()))? > 0 {
        entries_changed(tx, session);
    }
    Ok(())
}

/// The entries of a page, before it is cut: the parameters up to the eighth.
const MATCHING: &str = "FROM entries AS entry
    JOIN sessions AS session ON session.id = entry.session
    JOIN session_keys AS session_key ON session_key.id = session.key
    LEFT JOIN links AS link ON link.session = session.id
    LEFT JOIN nodes AS node ON node.host = link.host
    WHERE (entry.archived_at IS NOT NULL) = ?1
      AND (?2 IS NULL OR session.agent_id = ?2)
      AND (?3 IS NULL OR link.host = ?3)
      AND (?4 IS NULL OR entry.updated_at >= ?4)
      AND (?5 IS NULL OR session.agent_id = ?6
           OR session_key.session_key IN (SELECT value FROM json_each(?5)))
      AND (?7 IS NULL OR ?7 = CASE
          WHEN session_key.session_key LIKE 'cron:%' THEN 'cron'
          WHEN session_key.session_key LIKE 'hook:%' THEN 'hook'
          WHEN session_key.session_key = 'global'
            OR session_key.session_key = 'agent:' || session.agent_id || ':' || ?8 THEN 'main'
          WHEN session_key.session_key LIKE 'agent:%:subagent:%' THEN 'subagent'
          WHEN session_key.session_key LIKE 'agent:%:acp:%' THEN 'acp'
          WHEN session_key.session_key LIKE 'agent:%:adopted:%' THEN 'adopted'
          WHEN session_key.session_key LIKE 'agent:%:group:%' THEN 'group'
          WHEN session_key.session_key LIKE 'agent:%:channel:%'
            OR session_key.session_key LIKE 'agent:%:room:%' THEN 'room'
          WHEN session_key.session_key LIKE 'agent:%:direct:%' THEN 'direct'
          WHEN entry.chat_type IN ('group', 'room', 'direct') THEN entry.chat_type
          ELSE 'other' END)";

fn read_sessions(conn: &Connection, page: &SessionsPage) -> rusqlite::Result<Sessions> {
    let archived = page.shelf == Shelf::Archived;
    let agent = page.agent.as_ref().map(AgentId::as_str);
    let host = page.host.as_ref().map(Host::to_string);
    let since = page.updated_since;
    let visible = page.visible.as_ref();
    let keys = visible.map(|visible| key_list(&visible.keys));
    let of_agent = visible.and_then(|visible| visible.agent.as_ref().map(AgentId::as_str));
    let limit = page.limit.min(MAX_SESSIONS_PER_PAGE);
    let kind = page.kind.map(SessionKind::as_str);
    let filter = (
        archived,
        agent,
        &host,
        since,
        &keys,
        of_agent,
        kind,
        &page.main_key,
    );
    let is_narrow = agent.is_some() || host.is_some() || visible.is_some() || kind.is_some();
    let count: u64 = if is_narrow {
        conn.prepare_cached(&format!("SELECT count(*) {MATCHING}"))?
            .query_row(filter, |row| number(row, 0))?
    } else {
        // Without a look at any session's name: the index alone tells.
        conn.prepare_cached(
            "SELECT count(*) FROM entries AS entry
             WHERE (entry.archived_at IS NOT NULL) = ?1
               AND (?2 IS NULL OR entry.updated_at >= ?2)",
        )?
        .query_row((archived, since), |row| number(row, 0))?
    };
    let sessions: Vec<SessionRow> = conn
        .prepare_cached(&format!(
            "SELECT session_key.session_key, session.agent_id, entry.session_id, entry.label,
                    entry.updated_at, entry.archived_at IS NOT NULL, entry.pinned_at IS NOT NULL,
                    link.host, node.host_name, session.last_sequence, entry.context_tokens,
                    entry.compaction_count, entry.context_tokens_estimated
             {MATCHING}
             ORDER BY (entry.pinned_at IS NULL), entry.updated_at DESC, entry.session
             LIMIT ?9 OFFSET ?10"
        ))?
        .query_map(
            (
                archived,
                agent,
                &host,
                since,
                &keys,
                of_agent,
                kind,
                &page.main_key,
                limit,
                page.offset,
            ),
            session_row,
        )?
        .collect::<Result<_, _>>()?;
    let shown = u32::try_from(sessions.len()).unwrap_or(u32::MAX);
    let next = page.offset.saturating_add(shown);
    let has_more = u64::from(next) < count && shown > 0;
    Ok(Sessions {
        sessions,
        count,
        has_more,
        next_offset: has_more.then_some(next),
    })
}

/// Keys as one parameter.
fn key_list(keys: &[SessionKey]) -> String {
    let keys: Vec<&str> = keys.iter().map(SessionKey::as_str).collect();
    serde_json::Value::from(keys).to_string()
}

/// These sessions, their children, and theirs.
fn read_tree(conn: &Connection, roots: &[SessionKey]) -> rusqlite::Result<Vec<SessionKey>> {
    conn.prepare_cached(
        "WITH RECURSIVE tree (session_key, generation) AS (
             SELECT value, 0 FROM json_each(?1)
             UNION
             SELECT entry.session_key, tree.generation + 1
             FROM session_entries AS entry
             JOIN tree ON entry.parent_session_key = tree.session_key
             WHERE tree.generation < ?2)
         SELECT DISTINCT session_key FROM tree ORDER BY session_key",
    )?
    .query_map((key_list(roots), MAX_GENERATIONS), |row| {
        parsed(row, 0, SessionKey::parse)
    })?
    .collect()
}

/// A label as a row of a list shows it.
fn shown_label(label: String) -> String {
    if label.chars().nth(MAX_SHOWN_LABEL_CHARS).is_none() {
        return label;
    }
    let kept = label.chars().take(MAX_SHOWN_LABEL_CHARS - 1);
    kept.chain(['…']).collect()
}

fn session_row(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        session_key: parsed(row, 0, SessionKey::parse)?,
        agent_id: row.get(1)?,
        session_id: row.get(2)?,
        label: row.get::<_, Option<String>>(3)?.map(shown_label),
        updated_at: row.get(4)?,
        archived: row.get(5)?,
        pinned: row.get(6)?,
        host: parsed_opt(row, 7, Host::parse)?,
        node: parsed_opt(row, 8, HostName::parse)?,
        state_version: Some(number(row, 9)?).filter(|version| *version > 0),
        context_tokens: row.get(10)?,
        context_tokens_estimated: row.get(12)?,
        compaction_count: row.get(11)?,
    })
}
