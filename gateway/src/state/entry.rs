//! A session's entry as `sessions.json` spells it.

use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidings_protocol::EpochMs;

use super::address::SessionAddress;
use super::engine::{OpResult, Tx};
use super::error::StateError;
use super::sql::parsed;

/// One entry. Fields that this version does not know are kept as they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The transcript that continues the session.
    pub session_id: String,
    /// When that conversation began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_started_at: Option<EpochMs>,
    /// When somebody last spoke in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_interaction_at: Option<EpochMs>,
    /// When the entry last changed.
    pub updated_at: EpochMs,
    /// When it was archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<EpochMs>,
    /// When it was pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned_at: Option<EpochMs>,
    /// The transcript's file, where its name does not follow from the session id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// `direct`, `group` or `room`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_type: Option<String>,
    /// The channel's provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The chat's subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The chat's room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// The chat's space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    /// A name to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// How much to think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// How much to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbose_level: Option<String>,
    /// How much of the reasoning to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_level: Option<String>,
    /// What is permitted beyond the usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elevated_level: Option<String>,
    /// Faster, for less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_mode: Option<bool>,
    /// Whether replies are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_policy: Option<String>,
    /// A provider chosen for this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_override: Option<String>,
    /// A model chosen for this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_override: Option<String>,
    /// Credentials chosen for this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_profile_override: Option<String>,
    /// Tokens sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<i64>,
    /// Tokens received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<i64>,
    /// Both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<i64>,
    /// A running estimate of what the context holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<i64>,
    /// True where that is an estimate, false where the provider counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens_estimated: Option<bool>,
    /// Automatic compactions that completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_count: Option<i64>,
    /// When durable notes were last written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_flush_at: Option<EpochMs>,
    /// The compaction count at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_flush_compaction_count: Option<i64>,
    /// The session that spawned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<String>,
    /// The session whose child it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_key: Option<String>,
    /// A label its caller gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// What this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The columns that [`Entry::from_row`] reads, in its order.
pub(crate) const ENTRY_COLUMNS: &str = "entry.session_id, entry.session_started_at,
    entry.last_interaction_at, entry.updated_at, entry.archived_at, entry.pinned_at,
    entry.session_file, entry.chat_type, entry.provider, entry.subject, entry.room,
    entry.space, entry.display_name, entry.thinking_level, entry.verbose_level,
    entry.reasoning_level, entry.elevated_level, entry.fast_mode, entry.send_policy,
    entry.provider_override, entry.model_override, entry.auth_profile_override,
    entry.input_tokens, entry.output_tokens, entry.total_tokens, entry.context_tokens,
    entry.compaction_count, entry.memory_flush_at, entry.memory_flush_compaction_count,
    entry.spawned_by, entry.parent_session_key, entry.label, entry.goal,
    entry.context_tokens_estimated, entry.extra";

impl Entry {
    /// The entry in the columns of [`ENTRY_COLUMNS`], which begin at `first`.
    pub(crate) fn from_row(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        let at = |column: usize| first + column;
        Ok(Self {
            session_id: row.get(at(0))?,
            session_started_at: row.get(at(1))?,
            last_interaction_at: row.get(at(2))?,
            updated_at: row.get(at(3))?,
            archived_at: row.get(at(4))?,
            pinned_at: row.get(at(5))?,
            session_file: row.get(at(6))?,
            chat_type: row.get(at(7))?,
            provider: row.get(at(8))?,
            subject: row.get(at(9))?,
            room: row.get(at(10))?,
            space: row.get(at(11))?,
            display_name: row.get(at(12))?,
            thinking_level: row.get(at(13))?,
            verbose_level: row.get(at(14))?,
            reasoning_level: row.get(at(15))?,
            elevated_level: row.get(at(16))?,
            fast_mode: row.get(at(17))?,
            send_policy: row.get(at(18))?,
            provider_override: row.get(at(19))?,
            model_override: row.get(at(20))?,
            auth_profile_override: row.get(at(21))?,
            input_tokens: row.get(at(22))?,
            output_tokens: row.get(at(23))?,
            total_tokens: row.get(at(24))?,
            context_tokens: row.get(at(25))?,
            compaction_count: row.get(at(26))?,
            memory_flush_at: row.get(at(27))?,
            memory_flush_compaction_count: row.get(at(28))?,
            spawned_by: row.get(at(29))?,
            parent_session_key: row.get(at(30))?,
            label: row.get(at(31))?,
            goal: row.get(at(32))?,
            context_tokens_estimated: row.get(at(33))?,
            extra: parsed(row, at(34), |json| serde_json::from_str(json))?,
        })
    }
}

/// The entry of a session, where it has one.
pub(crate) fn read_entry(tx: &mut Tx<'_>, session: &SessionAddress) -> OpResult<Option<Entry>> {
    let Some(number) = tx.find_session(session)? else {
        return Ok(None);
    };
    let sql = format!("SELECT {ENTRY_COLUMNS} FROM entries AS entry WHERE entry.session = ?1");
    Ok(tx.row(&sql, [number], |row| Entry::from_row(row, 0))?)
}

/// Gives a session this entry, in the place of the one it has.
pub(crate) fn put_entry(tx: &Tx<'_>, session: i64, entry: &Entry) -> OpResult<()> {
    let extra = serde_json::to_string(&entry.extra)
        .map_err(|error| StateError::invalid(error.to_string()))?;
    tx.execute(
        "INSERT INTO entries (
            session, session_id, session_started_at, last_interaction_at, updated_at,
            archived_at, pinned_at, session_file, chat_type, provider, subject, room, space,
            display_name, thinking_level, verbose_level, reasoning_level, elevated_level,
            fast_mode, send_policy, provider_override, model_override, auth_profile_override,
            input_tokens, output_tokens, total_tokens, context_tokens, compaction_count,
            memory_flush_at, memory_flush_compaction_count, spawned_by, parent_session_key,
            label, goal, context_tokens_estimated, extra)
         VALUES (
            ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
            ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36)
         ON CONFLICT (session) DO UPDATE SET
            session_id = excluded.session_id, session_started_at = excluded.session_started_at,
            last_interaction_at = excluded.last_interaction_at,
            updated_at = excluded.updated_at, archived_at = excluded.archived_at,
            pinned_at = excluded.pinned_at, session_file = excluded.session_file,
            chat_type = excluded.chat_type, provider = excluded.provider,
            subject = excluded.subject, room = excluded.room, space = excluded.space,
            display_name = excluded.display_name, thinking_level = excluded.thinking_level,
            verbose_level = excluded.verbose_level, reasoning_level = excluded.reasoning_level,
            elevated_level = excluded.elevated_level, fast_mode = excluded.fast_mode,
            send_policy = excluded.send_policy, provider_override = excluded.provider_override,
            model_override = excluded.model_override,
            auth_profile_override = excluded.auth_profile_override,
            input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
            total_tokens = excluded.total_tokens, context_tokens = excluded.context_tokens,
            compaction_count = excluded.compaction_count,
            memory_flush_at = excluded.memory_flush_at,
            memory_flush_compaction_count = excluded.memory_flush_compaction_count,
            spawned_by = excluded.spawned_by, parent_session_key = excluded.parent_session_key,
            label = excluded.label, goal = excluded.goal,
            context_tokens_estimated = excluded.context_tokens_estimated, extra = excluded.extra",
        params![
            session,
            entry.session_id,
            entry.session_started_at,
            entry.last_interaction_at,
            entry.updated_at,
            entry.archived_at,
            entry.pinned_at,
            entry.session_file,
            entry.chat_type,
            entry.provider,
            entry.subject,
            entry.room,
            entry.space,
            entry.display_name,
            entry.thinking_level,
            entry.verbose_level,
            entry.reasoning_level,
            entry.elevated_level,
            entry.fast_mode,
            entry.send_policy,
            entry.provider_override,
            entry.model_override,
            entry.auth_profile_override,
            entry.input_tokens,
            entry.output_tokens,
            entry.total_tokens,
            entry.context_tokens,
            entry.compaction_count,
            entry.memory_flush_at,
            entry.memory_flush_compaction_count,
            entry.spawned_by,
            entry.parent_session_key,
            entry.label,
            entry.goal,
            entry.context_tokens_estimated,
            extra
        ],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_back_as_written_and_keeps_what_it_does_not_know() {
        let json = r#"{"sessionId":"s","updatedAt":5,"fastMode":true,"goal":"g","later":{"a":1}}"#;
        let entry: Entry = serde_json::from_str(json).expect("entry");
        assert_eq!(entry.fast_mode, Some(true));
        assert_eq!(serde_json::to_string(&entry).expect("json"), json);
    }

    #[test]
    fn a_fractional_time_is_no_entry() {
        let json = r#"{"sessionId":"s","updatedAt":5.5}"#;
        assert!(serde_json::from_str::<Entry>(json).is_err());
    }
}
