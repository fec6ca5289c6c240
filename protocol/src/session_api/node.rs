//! What a node agent says about itself on its own socket.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CertificateState;
use crate::report::LinkId;
use crate::{Catalog, EpochMs, ThreadId};

/// The node agent at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// The agent's version.
    pub version: String,
    /// This node's id.
    pub node_id: crate::NodeId,
    /// This node's name in keys.
    pub host_name: crate::HostName,
    /// The gateway's address.
    pub gateway: String,
    /// `connected`, `connecting` or `refused`.
    pub connection: String,
    /// When it last changed.
    pub connection_since: EpochMs,
    /// Why it is not connected, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_error: Option<String>,
    /// What to do alone, where the gateway has turned this node away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_hint: Option<String>,
    /// When this node's certificate expires.
    pub certificate_not_after: EpochMs,
    /// How that certificate stands now.
    pub certificate_state: CertificateState,
    /// How far the gateway's clock was ahead of this machine's, in milliseconds, when it last
    /// welcomed this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_ahead_ms: Option<i64>,
    /// Where transcripts are looked for.
    pub roots: Vec<RootStatus>,
    /// What is followed.
    pub links: Vec<NodeLinkStatus>,
    /// What an operator should know.
    pub warnings: Vec<String>,
}

/// One root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RootStatus {
    /// The family of its transcripts.
    pub catalog: Catalog,
    /// The directory.
    pub path: String,
    /// `watched`, `polled` (no file events: read at every sweep) or `unavailable`.
    pub state: String,
}

/// One followed thread, as its node sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeLinkStatus {
    /// The link.
    pub link: LinkId,
    /// The family of the transcript.
    pub catalog: Catalog,
    /// The program's own id of the conversation.
    pub thread_id: ThreadId,
    /// Where the file was last seen.
    pub path: String,
    /// How far it has been recorded.
    pub offset: u64,
    /// `idle`, `reading`, `reporting` or `blocked`.
    pub state: String,
}
