//! The upkeep of session stores, and the runs of cron jobs.

use serde::{Deserialize, Serialize};

use crate::{EpochMs, SessionKey};

/// Asks for the upkeep of one store, or of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionsCleanup {
    /// Of which agents.
    pub agents: CleanupAgents,
    /// Whether it acts.
    pub doing: CleanupDoing,
}

/// Whose stores are looked after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CleanupAgents {
    /// The default agent's.
    Default {},
    /// This agent's.
    One {
        /// The agent.
        agent: String,
    },
    /// All.
    All {},
}

/// Whether upkeep acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CleanupDoing {
    /// It only says what it would do.
    DryRun,
    /// It acts, whatever the configured mode.
    Enforce,
}

/// What upkeep did, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CleanedUp {
    /// The configured mode: `enforce` or `warn`.
    pub mode: String,
    /// True where nothing was changed.
    pub dry_run: bool,
    /// Entries before.
    pub before_count: u64,
    /// Entries after.
    pub after_count: u64,
    /// Entries that go for their age.
    pub pruned: u64,
    /// Entries that go for their number, or for the budget of the disk.
    pub capped: u64,
    /// Entries without a transcript: counted, and kept.
    pub missing: u64,
    /// Bytes of files that are gone.
    pub freed_bytes: u64,
    /// Files that could not be removed.
    pub failed: u64,
    /// What goes, in order.
    pub actions: Vec<CleanupAction>,
    /// The agents, where all were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stores: Vec<CleanedStore>,
}

/// One thing that goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CleanupAction {
    /// Whose store.
    pub agent_id: String,
    /// The entry; nothing where only files go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// The files, in the agent's session directory.
    pub files: Vec<String>,
    /// How large they are together.
    pub bytes: u64,
    /// The setting that asks for it, or `orphan`, `modelRun`.
    pub reason: String,
}

/// One store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CleanedStore {
    /// Whose.
    pub agent_id: String,
    /// Entries before.
    pub before_count: u64,
    /// Entries after.
    pub after_count: u64,
}

/// Begins a run of a cron job in a session of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronRunBegin {
    /// The job.
    pub job_id: String,
    /// A new conversation, whatever stands; else the standing one goes on.
    #[serde(default)]
    pub force: bool,
    /// The agent; else the default agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// A run of a cron job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronRun {
    /// The run.
    pub run_id: u64,
    /// The job's session.
    pub session_key: SessionKey,
    /// The conversation it runs in.
    pub session_id: String,
    /// True where that is a new one.
    pub is_new: bool,
    /// When it began.
    pub started_at: EpochMs,
}
