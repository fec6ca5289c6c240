//! Nodes: who they are, how they stand, when they were last seen.

use rusqlite::{Connection, OptionalExtension, Row};
use tidings_protocol::{EpochMs, Host, HostName, NodeId};

use super::State;
use super::audit::{AuditAction, operator_did};
use super::effect::Effect;
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::sql::{named, parsed};

/// The longest display name and version, in characters.
const MAX_NAME_CHARS: usize = 128;

/// How a paired node stands, whether or not it is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeStanding {
    /// One of ours.
    Active,
    /// Turned away for good: its key is never accepted again.
    Revoked,
    /// Removed; the same machine may pair again and keeps its host name.
    Removed,
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    /// Its id.
    pub node: NodeId,
    /// Its display name.
    pub name: String,
    /// Its name in keys.
    pub host_name: HostName,
    /// Where its files are.
    pub host: Host,
    /// How it stands.
    pub standing: NodeStanding,
    /// When it was last connected or disconnected.
    pub last_seen_at: Option<EpochMs>,
    /// Its agent's version.
    pub version: Option<String>,
    /// When its newest certificate expires.
    pub certificate_not_after: Option<EpochMs>,
}

impl NodeStanding {
    fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Revoked => "revoked",
            Self::Removed => "removed",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Active, Self::Revoked, Self::Removed]
            .into_iter()
            .find(|standing| standing.as_str() == name)
    }
}

impl State {
    /// Every node, the gateway's own first.
    pub async fn nodes(&self) -> Result<Vec<NodeRecord>, StateError> {
        self.read(|conn| {
            let nodes = conn
                .prepare_cached(
                    "SELECT node.id, node.name, node.host_name, node.host, node.standing,
                            node.last_seen_at, node.version,
                            (SELECT not_after FROM node_certificates
                             WHERE node = node.number AND revoked_at IS NULL
                             ORDER BY number DESC LIMIT 1)
                     FROM nodes AS node
                     ORDER BY node.host <> 'gateway:local', node.number",
                )?
                .query_map([], node_row)?
                .collect::<Result<_, _>>()?;
            Ok(nodes)
        })
        .await
    }

    /// The node with this id.
    pub async fn node(&self, node: NodeId) -> Result<Option<NodeRecord>, StateError> {
        self.read(move |conn| Ok(read_node(conn, &node)?)).await
    }

    /// The node of this host.
    pub async fn node_of_host(&self, host: Host) -> Result<Option<NodeRecord>, StateError> {
        self.read(move |conn| {
            let node: Option<String> = conn
                .prepare_cached("SELECT id FROM nodes WHERE host = ?1")?
                .query_row([host.to_string()], |row| row.get(0))
                .optional()?;
            match node.and_then(|id| NodeId::parse(&id).ok()) {
                Some(id) => Ok(read_node(conn, &id)?),
                None => Ok(None),
            }
        })
        .await
    }

    /// A node is connected: its version and time are noted, and its misses count anew.
    pub async fn node_connected(&self, node: NodeId, version: String) -> Result<(), StateError> {
        let version = cut(&version);
        self.write(Priority::Interactive, move |tx| {
            let host: Option<String> = tx.row(
                "UPDATE nodes SET last_seen_at = ?2, version = ?3
                 WHERE id = ?1 AND standing = 'active' RETURNING host",
                (node.as_str(), tx.now(), &version),
                |row| row.get(0),
            )?;
            let Some(host) = host else {
                return Err(StateError::NodeNotActive(node.to_string()).into());
            };
            tx.execute(
                "UPDATE links SET misses = 0, last_miss_at = NULL WHERE host = ?1 AND misses > 0",
                [host],
            )?;
            Ok(())
        })
        .await
    }

    /// A node is no longer connected.
    pub async fn node_disconnected(&self, node: NodeId) -> Result<(), StateError> {
        self.write(Priority::Interactive, move |tx| {
            tx.execute(
                "UPDATE nodes SET last_seen_at = ?2 WHERE id = ?1",
                (node.as_str(), tx.now()),
            )?;
            Ok(())
        })
        .await
    }

    /// Revokes or removes a node; a revoked one stays revoked. False where there is no such
    /// node. The gateway's own machine stays active.
    pub async fn set_node_standing(
        &self,
        node: NodeId,
        standing: NodeStanding,
    ) -> Result<bool, StateError> {
        self.write(Priority::Interactive, move |tx| {
            let Some(record) = read_node(tx.conn(), &node)? else {
                return Ok(false);
            };
            if record.host == Host::GatewayLocal {
                let reason = "the gateway's own machine stays a node";
                return Err(StateError::invalid(reason).into());
            }
            tx.execute(
                "UPDATE nodes SET standing = ?2 WHERE id = ?1 AND standing <> 'revoked'",
                (node.as_str(), standing.as_str()),
            )?;
            let action = match standing {
                NodeStanding::Removed => AuditAction::Remove,
                NodeStanding::Active | NodeStanding::Revoked => AuditAction::Revoke,
            };
            operator_did(tx, action, node.as_str())?;
            tx.tell(Effect::NodeChanged { node: node.clone() });
            Ok(true)
        })
        .await
    }

    /// Changes a node's display name; its host name is fixed. False where there is no such
    /// node.
    pub async fn rename_node(&self, node: NodeId, name: String) -> Result<bool, StateError> {
        let name = cut(&name);
        if name.is_empty() {
            return Err(StateError::invalid("a node's name must not be empty"));
        }
        self.write(Priority::Interactive, move |tx| {
            let renamed = tx.execute(
                "UPDATE nodes SET name = ?2 WHERE id = ?1",
                (node.as_str(), &name),
            )?;
            if renamed > 0 {
                operator_did(tx, AuditAction::Rename, node.as_str())?;
                tx.tell(Effect::NodeChanged { node: node.clone() });
            }
            Ok(renamed > 0)
        })
        .await
    }
}

/// The host name of a host whose node is active; the error that a report from any other
/// gets.
pub(crate) fn active_node(tx: &Tx<'_>, host: &Host) -> OpResult<HostName> {
    let host = host.to_string();
    let host_name = tx.row(
        "SELECT host_name FROM nodes WHERE host = ?1 AND standing = 'active'",
        [&host],
        |row| parsed(row, 0, HostName::parse),
    )?;
    host_name.ok_or_else(|| StateError::NodeNotActive(host).into())
}

/// The node with this id.
pub(crate) fn read_node(conn: &Connection, node: &NodeId) -> rusqlite::Result<Option<NodeRecord>> {
    conn.prepare_cached(
        "SELECT node.id, node.name, node.host_name, node.host, node.standing,
                node.last_seen_at, node.version,
                (SELECT not_after FROM node_certificates
                             WHERE node = node.number AND revoked_at IS NULL
                 ORDER BY number DESC LIMIT 1)
         FROM nodes AS node WHERE node.id = ?1",
    )?
    .query_row([node.as_str()], node_row)
    .optional()
}

fn node_row(row: &Row<'_>) -> rusqlite::Result<NodeRecord> {
    Ok(NodeRecord {
        node: parsed(row, 0, NodeId::parse)?,
        name: row.get(1)?,
        host_name: parsed(row, 2, HostName::parse)?,
        host: parsed(row, 3, Host::parse)?,
        standing: named(row, 4, NodeStanding::parse)?,
        last_seen_at: row.get(5)?,
        version: row.get(6)?,
        certificate_not_after: row.get(7)?,
    })
}

/// One line of bounded length.
pub(crate) fn cut(name: &str) -> String {
    let plain = name.chars().filter(|c| !c.is_control());
    let name: String = plain.take(MAX_NAME_CHARS).collect();
    name.trim().to_owned()
}
