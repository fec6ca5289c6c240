//! The record of what operators did, and of machines that were let in. Each line is written
//! in the transaction that it tells of.

use rusqlite::Connection;
use tidings_protocol::session_api::AuditEntry;
use tidings_protocol::{HostName, NodeId};

use super::State;
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;

/// How many lines are kept, newest first: what people do by hand in years.
const KEPT: i64 = 10_000;
/// The longest outcome, in characters.
const MAX_OUTCOME_CHARS: usize = 200;
/// How many lines are shown of one node.
const SHOWN: i64 = 10;

/// Whoever uses the gateway's own socket, or an admin token.
pub(crate) const OPERATOR: &str = "operator";
/// What was asked for was done.
const DONE: &str = "done";

/// What somebody did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditAction {
    /// A join link was made.
    Invite,
    /// A machine became a node by a join link.
    Join,
    /// A machine that asked was made a node.
    Approve,
    /// A machine that asked was told no.
    Reject,
    /// A node got another display name.
    Rename,
    /// A node's key was turned away for good.
    Revoke,
    /// A node was taken off the list.
    Remove,
    /// A node was made of a signing request.
    IssueCertificate,
    /// A node's key got a new certificate from an operator.
    RenewCertificate,
    /// A certificate was revoked.
    RevokeCertificate,
    /// An API token was made.
    CreateToken,
    /// An API token was ended.
    RevokeToken,
    /// A session was deleted.
    DeleteSession,
    /// An agent was deleted, with all that was its own.
    DeleteAgent,
    /// The upkeep of a store was asked for, and had something to remove.
    Cleanup,
}

impl AuditAction {
    /// The command that does it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invite => "nodes.invite",
            Self::Join => "nodes.join",
            Self::Approve => "nodes.approve",
            Self::Reject => "nodes.reject",
            Self::Rename => "nodes.rename",
            Self::Revoke => "nodes.revoke",
            Self::Remove => "nodes.remove",
            Self::IssueCertificate => "cert.issue",
            Self::RenewCertificate => "cert.renew",
            Self::RevokeCertificate => "cert.revoke",
            Self::CreateToken => "token.create",
            Self::RevokeToken => "token.revoke",
            Self::DeleteSession => "sessions.delete",
            Self::DeleteAgent => "agents.delete",
            Self::Cleanup => "sessions.cleanup",
        }
    }
}

impl State {
    /// Records what is no transaction of its own: a machine was rejected, an operator was
    /// refused something and why, or what an upkeep that begins removes.
    pub async fn audit(
        &self,
        action: AuditAction,
        target: String,
        outcome: Option<String>,
    ) -> Result<(), StateError> {
        self.write(Priority::Interactive, move |tx| {
            let outcome = outcome.as_deref().unwrap_or(DONE);
            Ok(insert(tx, OPERATOR, action, &target, outcome)?)
        })
        .await
    }

    /// The newest lines about one node, newest first.
    pub async fn audit_of(
        &self,
        node: NodeId,
        host_name: HostName,
    ) -> Result<Vec<AuditEntry>, StateError> {
        self.read(move |conn| Ok(lines_about(conn, &node, &host_name)?))
            .await
    }
}

/// Records in this transaction that an operator did it.
pub(crate) fn operator_did(
    tx: &Tx<'_>,
    action: AuditAction,
    target: impl AsRef<str>,
) -> OpResult<()> {
    Ok(insert(tx, OPERATOR, action, target.as_ref(), DONE)?)
}

/// Records in this transaction that a machine became a node by a join link.
pub(crate) fn joined(tx: &Tx<'_>, node: &NodeId) -> OpResult<()> {
    let actor = format!("node:{node}");
    Ok(insert(tx, &actor, AuditAction::Join, node.as_str(), DONE)?)
}

fn insert(
    tx: &Tx<'_>,
    actor: &str,
    action: AuditAction,
    target: &str,
    outcome: &str,
) -> rusqlite::Result<()> {
    let cut = |text: &str| -> String {
        let plain = text.chars().filter(|c| !c.is_control());
        plain.take(MAX_OUTCOME_CHARS).collect()
    };
    tx.execute(
        "INSERT INTO audit_log (at, actor, action, target, outcome) VALUES (?1, ?2, ?3, ?4, ?5)",
        (tx.now(), actor, action.as_str(), cut(target), cut(outcome)),
    )?;
    let oldest = tx.last_row().saturating_sub(KEPT);
    tx.execute("DELETE FROM audit_log WHERE id <= ?1", [oldest])?;
    Ok(())
}

fn lines_about(
    conn: &Connection,
    node: &NodeId,
    host_name: &HostName,
) -> rusqlite::Result<Vec<AuditEntry>> {
    conn.prepare_cached(
        "SELECT at, actor, action, outcome FROM audit_log WHERE target IN (?1, ?2)
         ORDER BY id DESC LIMIT ?3",
    )?
    .query_map((node.as_str(), host_name.as_str(), SHOWN), |row| {
        Ok(AuditEntry {
            at: row.get(0)?,
            actor: row.get(1)?,
            action: row.get(2)?,
            outcome: row.get(3)?,
        })
    })?
    .collect()
}
