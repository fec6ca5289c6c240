//! Requests and replies about nodes, as the gateway sees them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RootStatus;
use crate::pairing::PairingWords;
use crate::{EpochMs, Host, HostName, NodeId};

/// The longest display name of a node, in characters: it stands in a column of a table.
pub const MAX_NODE_NAME_CHARS: usize = 128;

/// Names a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeRef {
    /// Its id, or its host name.
    pub node: String,
}

/// Asks for another display name; the host name is fixed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodesRename {
    /// Its id, or its host name.
    pub node: String,
    /// What it is to be called, at most [`MAX_NODE_NAME_CHARS`].
    pub name: String,
}

/// A join link for one new machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Invitation {
    /// The link: a secret until it is used or expires.
    pub link: String,
    /// The host name it will give, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it stops working.
    pub expires_at: EpochMs,
}

/// Every node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Nodes {
    /// The nodes, the gateway's own first.
    pub nodes: Vec<Node>,
    /// The join links that nobody has used yet, oldest first.
    #[serde(default)]
    pub invitations: Vec<OpenInvitation>,
}

/// A join link that nobody has used yet. The link itself is a secret and not shown again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenInvitation {
    /// Names it, and nothing else.
    pub id: String,
    /// The host name that the new node gets; else its machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<HostName>,
    /// When it was printed.
    pub created_at: EpochMs,
    /// When it stops working.
    pub expires_at: EpochMs,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// Its display name.
    pub name: String,
    /// Its name in keys.
    pub host_name: HostName,
    /// Where its files are.
    pub host: Host,
    /// How it stands.
    pub status: NodeState,
    /// When it was last connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<EpochMs>,
    /// Its agent's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When its certificate expires; one that waits for approval has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_not_after: Option<EpochMs>,
    /// What its agent warns of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Where it looks for transcripts; only an answer about one node says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<RootStatus>,
    /// What it asks for, while it waits for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<PairingRequest>,
    /// What operators did to it, newest first; only an answer about one node says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audit: Vec<AuditEntry>,
}

/// A machine that asks to become a node, and waits for somebody to approve it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PairingRequest {
    /// The id that it will have: the digest of its key.
    pub id: NodeId,
    /// What the machine calls itself.
    pub machine_name: String,
    /// Its agent's version.
    pub version: String,
    /// Where it asks from.
    pub address: String,
    /// What both sides show, to be compared.
    pub words: PairingWords,
    /// When it gives up.
    pub expires_at: EpochMs,
}

/// Names a machine that waits for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairingRef {
    /// The six words that it shows, or its id.
    pub request: String,
}

/// Approves a machine that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodesApprove {
    /// The six words that it shows, or its id.
    pub request: String,
    /// Host name and first display name; else what the machine calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A machine that is told no, or a join link that is withdrawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PairingRejected {
    /// True once it has been told, or the link works no more.
    pub rejected: bool,
    /// The id that the node would have had; of a link, the link's own.
    pub id: String,
    /// What the machine calls itself, or the link calls it.
    pub machine_name: String,
}

/// What whoever listens for machines is told, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PairingNews {
    /// What happened.
    pub event: PairingEvent,
    /// Where machines ask; with `listening`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Until when new machines may ask; with `listening`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<EpochMs>,
    /// Which machine; with all events but `listening` and `closed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<PairingRequest>,
}

/// What happened to those who ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairingEvent {
    /// From now on machines may ask.
    Listening,
    /// One asks.
    Requested,
    /// It was approved.
    Approved,
    /// It was rejected.
    Rejected,
    /// Nobody approved it in time.
    Expired,
    /// It has gone, or has asked anew with other words.
    Withdrawn,
    /// No machine may ask any more.
    Closed,
}

/// One line of the record of what operators did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    /// When.
    pub at: EpochMs,
    /// Who.
    pub actor: String,
    /// What.
    pub action: String,
    /// `done`, or why not.
    pub outcome: String,
}

/// How a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// Connected and lively.
    Connected,
    /// Connected, but no sign of life for 45 s.
    Stalled,
    /// Not connected.
    Offline,
    /// Waits for approval.
    Pending,
    /// Turned away for good.
    Revoked,
}

/// A node that is one no longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeRemoved {
    /// True once it is gone from the list.
    pub removed: bool,
    /// Its id.
    pub id: NodeId,
    /// Its host name, which stays its machine's.
    pub host_name: HostName,
}
