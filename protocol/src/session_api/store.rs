//! The upkeep of session stores, and the runs of cron jobs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EpochMs, SessionKey};

/// The most runs one `cron_runs_list` answers: with names at their longest they fit a frame.
pub const MAX_CRON_RUNS_PER_PAGE: u32 = 100;

/// Asks for the upkeep of one store, or of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionsCleanup {
    /// Of which agents.
    pub agents: CleanupAgents,
    /// Whether it acts.
    pub doing: CleanupDoing,
}

/// Whose stores are looked after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CleanupDoing {
    /// It only says what it would do.
    DryRun,
    /// It acts, whatever the configured mode.
    Enforce,
}

/// What upkeep did, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// Asks for runs of cron jobs, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CronRunsList {
    /// Only of this job.
    pub job_id: Option<String>,
    /// Only of this agent.
    pub agent: Option<String>,
    /// How many, at most [`MAX_CRON_RUNS_PER_PAGE`].
    pub limit: Option<u32>,
    /// Only those before this run: `before` of the page that precedes.
    pub before: Option<u64>,
}

/// Runs of cron jobs, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CronRuns {
    /// The runs.
    pub runs: Vec<CronRunRow>,
    /// Where the next page goes on, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
}

/// One run of a cron job, as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CronRunRow {
    /// The run.
    pub run_id: u64,
    /// The job.
    pub job_id: String,
    /// The job's session.
    pub session_key: SessionKey,
    /// The agent.
    pub agent_id: String,
    /// The conversation it ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// When it began.
    pub started_at: EpochMs,
    /// When it ended; none while nobody has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<EpochMs>,
    /// `completed`, `error`, `timeout`, `cancelled`; or `abandoned`, where the next one began
    /// before anybody said how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// A run of a cron job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
