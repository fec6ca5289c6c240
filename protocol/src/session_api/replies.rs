//! The replies of the session interface. In `--json` each is one document under these names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Node;
use crate::report::LinkId;
use crate::signal::Payload;
use crate::{ActorType, Catalog, EpochMs, Host, HostName, SessionKey, SignalKind, ThreadId};

/// The gateway at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The process.
    pub gateway: GatewayStatus,
    /// Every node.
    pub nodes: Vec<Node>,
    /// Every upstream link.
    pub links: Vec<LinkStatus>,
    /// How much there is.
    pub counts: Counts,
}

/// The gateway process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayStatus {
    /// Its version.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// Its state directory.
    pub state_dir: String,
    /// Where nodes connect.
    pub listen: String,
    /// Where HTTP is answered, as the beginning of an address; nothing where it is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// When it started.
    pub started_at: EpochMs,
    /// `ok`, or `read_only` while the disk is full.
    pub database: String,
    /// What an operator should know.
    pub warnings: Vec<String>,
    /// The model that turns are run against; none where the gateway runs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When the certificate that it shows to nodes expires.
    pub server_certificate_not_after: EpochMs,
    /// When its authority's expires.
    pub authority_not_after: EpochMs,
}

/// How much there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Session entries.
    pub sessions: u64,
    /// Signals kept.
    pub signals: u64,
    /// The highest sequence so far.
    pub head: u64,
    /// Watches.
    pub watches: u64,
    /// Pending notices.
    pub notices: u64,
    /// Upstream links.
    pub links: u64,
}

/// One upstream link, for an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkStatus {
    /// The session it feeds.
    pub session_key: SessionKey,
    /// The family of the transcript.
    pub catalog: Catalog,
    /// Where the file is.
    pub host: Host,
    /// The program's own id of the conversation.
    pub thread_id: ThreadId,
    /// How far it can be trusted.
    pub state: UpstreamState,
    /// The last report's outcome: `activity`, `quiet`, `missing`, `inconclusive`, or
    /// `none` before the first.
    pub last_outcome: String,
    /// When the last report was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_report_at: Option<EpochMs>,
    /// Bytes known to be unread.
    pub lag_bytes: u64,
    /// Records that no rule knew.
    pub unclassified: u64,
    /// Why reports on it are rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
}

/// Threads on all machines asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CatalogThreads {
    /// The threads, newest first.
    pub threads: Vec<CatalogThread>,
    /// The hosts that could not be asked.
    pub errors: Vec<HostError>,
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogThread {
    /// The family of the transcript.
    pub catalog: Catalog,
    /// Where the file is.
    pub host: Host,
    /// That host's name in keys.
    pub node: HostName,
    /// The program's own id of the conversation.
    pub thread_id: ThreadId,
    /// The file.
    pub path: String,
    /// The working directory it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The title the program wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The file's last change.
    pub updated_at: EpochMs,
    /// The file's size.
    pub size_bytes: u64,
    /// The oldest session that adopted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted_as: Option<SessionKey>,
}

/// A host that could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostError {
    /// The host.
    pub host: Host,
    /// Its name in keys.
    pub node: HostName,
    /// Why.
    pub message: String,
}

/// A thread that was adopted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Adopted {
    /// The session it became.
    pub session_key: SessionKey,
    /// The link that feeds it.
    pub link: LinkSummary,
    /// For `watchBy`: whether the watch stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
}

/// A link, as the adopter sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkSummary {
    /// The link.
    pub id: LinkId,
    /// The family of the transcript.
    pub catalog: Catalog,
    /// Where the file is.
    pub host: Host,
    /// The program's own id of the conversation.
    pub thread_id: ThreadId,
    /// The file.
    pub path: String,
    /// Where following begins.
    pub offset: u64,
    /// False when the link stood already.
    pub created: bool,
}

/// Sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sessions {
    /// The rows.
    pub sessions: Vec<SessionRow>,
    /// How many there are in all.
    pub count: u64,
    /// True when there are more rows.
    pub has_more: bool,
    /// Where the next page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u32>,
}

/// One session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    /// The session.
    pub session_key: SessionKey,
    /// Its agent.
    pub agent_id: String,
    /// The transcript that continues it.
    pub session_id: String,
    /// Its label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When its entry last changed.
    pub updated_at: EpochMs,
    /// True when it is archived.
    pub archived: bool,
    /// True when it is pinned.
    pub pinned: bool,
    /// Where its upstream is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// That host's name in keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<HostName>,
    /// Its highest sequence, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_version: Option<u64>,
    /// How many tokens its context holds, once a turn of it was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<i64>,
    /// True where that is an estimate, false where the provider counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens_estimated: Option<bool>,
    /// How often its history was compacted without somebody asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_count: Option<i64>,
}

/// One session's entry: the entry's own fields at top level, as in `sessions.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry {
    /// The session.
    pub session_key: SessionKey,
    /// Its agent.
    pub agent_id: String,
    /// Its highest sequence.
    pub state_version: u64,
    /// True when it is archived.
    pub archived: bool,
    /// True when it is pinned.
    pub pinned: bool,
    /// The entry, one JSON object.
    pub entry: String,
}

/// How a session stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionStatus {
    /// The session.
    pub session_key: SessionKey,
    /// Its highest sequence, 0 before the first.
    pub state_version: u64,
    /// For an adopted session: how far the answer can be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<UpstreamStatus>,
    /// What changed, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_changes: Option<StateChanges>,
}

/// How far an answer about an adopted session can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamStatus {
    /// Whether its file is followed now.
    pub state: UpstreamState,
    /// Up to when an empty delta is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<EpochMs>,
}

/// Whether an upstream file is followed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UpstreamState {
    /// Its node is connected.
    Live,
    /// Its node is not.
    Offline,
    /// Its reports are rejected.
    Blocked,
    /// It has no link any more.
    Unlinked,
}

/// What changed in a session after a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateChanges {
    /// The events, ascending, at most [`super::MAX_CHANGES`].
    pub events: Vec<StateChange>,
    /// True when there are more.
    pub truncated: bool,
    /// The version to go on from, when there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_since: Option<u64>,
    /// The smallest sequence kept, else the head's successor, else 0.
    pub earliest_available_sequence: u64,
    /// True when events after the version have been pruned: this is not the exact delta.
    pub history_gap: bool,
}

/// One event of a delta.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateChange {
    /// Its place in the log.
    pub sequence: u64,
    /// What happened.
    pub kind: SignalKind,
    /// Who did it.
    pub actor_type: ActorType,
    /// The acting session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_id: Option<String>,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// When it happened.
    pub occurred_at: EpochMs,
    /// One line.
    pub summary: String,
    /// More, from a closed set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
}

/// Whether a watch stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Watched {
    /// True when it does.
    pub watched: bool,
    /// The version it watches from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_version: Option<u64>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Whether a watch was ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchRemoved {
    /// False when there was none.
    pub removed: bool,
}

/// Watches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Watches {
    /// The watches, by watcher and target.
    pub watches: Vec<Watch>,
}

/// One watch: a cursor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    /// The session that watches.
    pub watcher: SessionKey,
    /// The session it watches.
    pub target: SessionKey,
    /// The target's agent.
    pub target_agent_id: String,
    /// `spawn` or `explicit`.
    pub provenance: String,
    /// What the watcher has seen.
    pub last_seen_sequence: u64,
    /// What it has been told of.
    pub notified_sequence: u64,
    /// The newest event that matters to it.
    pub material_sequence: u64,
    /// True when a notice is pending.
    pub pending: bool,
    /// When the watch began.
    pub created_at: EpochMs,
    /// When it last moved.
    pub updated_at: EpochMs,
}

/// Pending notices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notices {
    /// The notices, by target.
    pub notices: Vec<Notice>,
}

/// One notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// The session that changed.
    pub target: SessionKey,
    /// The line for the watcher's prompt.
    pub text: String,
    /// The version to ask changes since.
    pub changes_since: u64,
}

/// A page of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Signals {
    /// The signals, ascending.
    pub signals: Vec<SignalRow>,
    /// The oldest signal still kept, where some after the one asked for are kept no more:
    /// this page is not all that happened since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest_available_sequence: Option<u64>,
}

/// One signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalRow {
    /// Its place in the log.
    pub sequence: u64,
    /// The session it is about.
    pub session_key: SessionKey,
    /// That session's agent.
    pub agent_id: String,
    /// What happened.
    pub kind: SignalKind,
    /// Who did it.
    pub actor_type: ActorType,
    /// The acting session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor_id: Option<String>,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// When it happened.
    pub occurred_at: EpochMs,
    /// When it was recorded.
    pub recorded_at: EpochMs,
    /// One line.
    pub summary: String,
    /// More, from a closed set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
}

/// Why an upstream signal was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignalWhy {
    /// The signal.
    pub sequence: u64,
    /// One entry per human turn; none for a signal that no transcript caused.
    pub evidence: Vec<SignalEvidence>,
}

/// Why a turn counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalEvidence {
    /// The machine, by its name in keys.
    pub node: HostName,
    /// The family of the transcript.
    pub catalog: Catalog,
    /// The file's name, without its directories.
    pub file: String,
    /// Where the record begins.
    pub byte_start: u64,
    /// Where it ends.
    pub byte_end: u64,
    /// The program's own id of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_id: Option<String>,
    /// The rule that judged it.
    pub rule: String,
}

/// What became of a signal, or of what may have been one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recorded {
    /// True when it is a new row of the log.
    pub recorded: bool,
    /// Its sequence, or that of the row it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Why it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
