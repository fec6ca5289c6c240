//! Requests and replies about nodes, as the gateway sees them.

use serde::{Deserialize, Serialize};

use super::RootStatus;
use crate::{EpochMs, Host, HostName, NodeId};

/// The longest display name of a node, in characters: it stands in a column of a table.
pub const MAX_NODE_NAME_CHARS: usize = 128;

/// Names a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRef {
    /// Its id, or its host name.
    pub node: String,
}

/// Asks for another display name; the host name is fixed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodesRename {
    /// Its id, or its host name.
    pub node: String,
    /// What it is to be called, at most [`MAX_NODE_NAME_CHARS`].
    pub name: String,
}

/// A join link for one new machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nodes {
    /// The nodes, the gateway's own first.
    pub nodes: Vec<Node>,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// When its certificate expires.
    pub certificate_not_after: EpochMs,
    /// What its agent warns of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Where it looks for transcripts; only an answer about one node says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<RootStatus>,
}

/// How a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRemoved {
    /// True once it is gone from the list.
    pub removed: bool,
    /// Its id.
    pub id: NodeId,
    /// Its host name, which stays its machine's.
    pub host_name: HostName,
}
