//! What most requests ask for: which node, thread, session, watch or signals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SessionKind;
use crate::signal::RunOutcome;
use crate::{Catalog, SessionKey, SignalKind};

/// Asks for a join link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodesInvite {
    /// Host name and first display name of the new node; else its machine's name.
    pub name: Option<String>,
    /// The address in the link, `host:port`; else the listen address, else the first
    /// address that is not loopback.
    pub address: Option<String>,
}

/// Asks for threads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CatalogList {
    /// Only this host: a node id, a host name, or `local`.
    pub host: Option<String>,
    /// Only this catalog.
    pub catalog: Option<Catalog>,
    /// With titles made of prompt text where the program wrote none.
    pub titles: bool,
}

/// Asks to adopt a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Adopt {
    /// The family of the transcript.
    pub catalog: Catalog,
    /// A node id, a host name, or `local`.
    pub host: String,
    /// The program's own id of the conversation.
    pub thread_id: crate::ThreadId,
    /// The agent whose session it becomes; else the default agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// A watcher to register at once, from the head after `adopted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_by: Option<SessionKey>,
}

/// Asks for sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionsList {
    /// Only of this agent.
    pub agent: Option<String>,
    /// Only of this kind.
    pub kind: Option<SessionKind>,
    /// Only those whose upstream is on this host: a node id, a host name, or `local`.
    pub host: Option<String>,
    /// Only those updated within this many minutes.
    pub active_minutes: Option<u32>,
    /// The archived ones instead of the active ones.
    pub archived: bool,
    /// How many rows, at most [`MAX_SESSIONS_PER_PAGE`](super::MAX_SESSIONS_PER_PAGE).
    pub limit: Option<u32>,
    /// How many rows to pass over.
    pub offset: u32,
}

/// Names a session. A bare key belongs to `agent`, else to the default agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRef {
    /// The session.
    pub session_key: SessionKey,
    /// The agent of a bare key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// Names the session that speaks. A bare key belongs to `agent`, else to the default agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpeakerRef {
    /// The session; none for that of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    /// The agent of a bare key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// Asks how a session stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusQuery {
    /// The session.
    pub session_key: SessionKey,
    /// The agent of a bare key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Asks for what changed after this version. Negative is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes_since: Option<i64>,
    /// The watcher that asks: what its turn was told of this session, it has read by this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<SessionKey>,
}

/// A watcher and its target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatchPair {
    /// The session that watches; none for that of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watcher: Option<SessionKey>,
    /// The session it watches.
    pub target: SessionKey,
    /// The agent of a bare target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_agent: Option<String>,
}

/// Asks for watches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WatchFilter {
    /// Only of this watcher.
    pub watcher: Option<SessionKey>,
    /// Only on this target.
    pub target: Option<SessionKey>,
}

/// Asks for signals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SignalsQuery {
    /// Only of this session.
    pub session: Option<SessionKey>,
    /// Only after this sequence; for `signals_follow` none means from the head on.
    pub after: Option<u64>,
    /// How many, default [`DEFAULT_SIGNALS_PER_PAGE`](super::DEFAULT_SIGNALS_PER_PAGE), at most [`MAX_SIGNALS_PER_PAGE`](super::MAX_SIGNALS_PER_PAGE).
    pub limit: Option<u32>,
}

/// Records a signal by hand: log and cursors only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignalsRecord {
    /// The session it is about.
    pub session: SessionKey,
    /// What happened.
    pub kind: SignalKind,
    /// `human`, `system`, or the acting session's key.
    pub actor: String,
    /// The parent whose cursor a `child_spawned` seeds; else the actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionKey>,
    /// The channel a message came by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// How a failed run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<RunOutcome>,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// One line instead of the kind's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Records once per session under this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe_key: Option<String>,
}
