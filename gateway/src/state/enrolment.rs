//! How a machine becomes a node, whichever way it came: names are given once, keys that were
//! turned away stay so, and its certificate stands in the same transaction.

use std::collections::HashSet;

use rusqlite::Connection;
use tidings_protocol::{Host, HostName, NodeId};

use super::State;
use super::audit::{AuditAction, operator_did};
use super::certificates::{NewCertificate, keep_certificate};
use super::effect::Effect;
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::nodes::{NodeRecord, NodeStanding, cut, read_node};

/// A machine that is to be a node, with the certificate made for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNode {
    /// The digest of its public key.
    pub node: NodeId,
    /// What it is to be called.
    pub name: NameWish,
    /// The version of its agent; empty where it is not known yet.
    pub version: String,
    /// Its certificate.
    pub certificate: NewCertificate,
}

/// Where a new node's host name comes from. One that was a node before keeps its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameWish {
    /// An operator gave it: exactly this one.
    Given(HostName),
    /// The machine calls itself so: the next that is free.
    Machine(String),
}

/// Why a machine does not become a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnrolRefusal {
    /// Its key has been turned away for good.
    Revoked,
    /// The name that it is to have is another's.
    NameTaken {
        /// One that is free.
        free: HostName,
    },
}

impl State {
    /// Makes a machine that somebody approved a node.
    pub async fn approve_node(
        &self,
        new: NewNode,
    ) -> Result<Result<NodeRecord, EnrolRefusal>, StateError> {
        self.enrol_by_operator(new, AuditAction::Approve).await
    }

    /// Makes a node of a signing request, or gives the node of its key one more certificate.
    pub async fn issue_node(
        &self,
        new: NewNode,
    ) -> Result<Result<NodeRecord, EnrolRefusal>, StateError> {
        self.enrol_by_operator(new, AuditAction::IssueCertificate)
            .await
    }

    async fn enrol_by_operator(
        &self,
        new: NewNode,
        action: AuditAction,
    ) -> Result<Result<NodeRecord, EnrolRefusal>, StateError> {
        self.write(Priority::Interactive, move |tx| {
            let enrolled = enrol(tx, &new)?;
            if enrolled.is_ok() {
                operator_did(tx, action, new.node.as_str())?;
            }
            Ok(enrolled)
        })
        .await
    }

    /// Makes sure that the gateway's own machine is the node `local`. Its key may change.
    pub async fn ensure_local_node(
        &self,
        node: NodeId,
        version: String,
        certificate: NewCertificate,
    ) -> Result<NodeRecord, StateError> {
        let version = cut(&version);
        self.write(Priority::Interactive, move |tx| {
            tx.execute(
                "INSERT INTO nodes (id, name, host_name, host, standing, paired_at, version)
                 VALUES (?1, ?2, ?2, ?3, 'active', ?4, ?5)
                 ON CONFLICT (host) DO UPDATE SET id = ?1, version = ?5",
                (
                    node.as_str(),
                    HostName::LOCAL,
                    Host::GatewayLocal.to_string(),
                    tx.now(),
                    &version,
                ),
            )?;
            keep_certificate(tx, &node, &certificate)?;
            written(tx, &node)
        })
        .await
    }
}

/// Makes a machine a node, or a node that was removed one again.
pub(crate) fn enrol(tx: &mut Tx<'_>, new: &NewNode) -> OpResult<Result<NodeRecord, EnrolRefusal>> {
    match read_node(tx.conn(), &new.node)? {
        Some(known) if known.standing == NodeStanding::Revoked => {
            return Ok(Err(EnrolRefusal::Revoked));
        }
        Some(_) => {
            tx.execute(
                "UPDATE nodes SET standing = 'active', version = coalesce(nullif(?2, ''), version)
                 WHERE id = ?1",
                (new.node.as_str(), cut(&new.version)),
            )?;
        }
        None => {
            let taken = taken_names(tx.conn())?;
            match &new.name {
                NameWish::Given(name) if taken.contains(name.as_str()) => {
                    let free = next_free(name, &taken);
                    return Ok(Err(EnrolRefusal::NameTaken { free }));
                }
                NameWish::Given(name) => add_node(tx, new, name, name.to_string())?,
                NameWish::Machine(machine) => {
                    let name = next_free(&HostName::slug(machine), &taken);
                    let called = Some(cut(machine)).filter(|called| !called.is_empty());
                    let called = called.unwrap_or_else(|| name.to_string());
                    add_node(tx, new, &name, called)?;
                }
            }
        }
    }
    keep_certificate(tx, &new.node, &new.certificate)?;
    tx.tell(Effect::NodeChanged {
        node: new.node.clone(),
    });
    Ok(Ok(written(tx, &new.node)?))
}

fn add_node(
    tx: &Tx<'_>,
    new: &NewNode,
    host_name: &HostName,
    called: String,
) -> rusqlite::Result<()> {
    tx.execute(
        "INSERT INTO nodes (id, name, host_name, host, standing, paired_at, version)
         VALUES (?1, ?2, ?3, ?4, 'active', ?5, nullif(?6, ''))",
        (
            new.node.as_str(),
            called,
            host_name.as_str(),
            Host::Node(new.node.clone()).to_string(),
            tx.now(),
            cut(&new.version),
        ),
    )?;
    Ok(())
}

/// Every name that was ever given; `local` always is.
pub(crate) fn taken_names(conn: &Connection) -> rusqlite::Result<HashSet<String>> {
    let mut taken: HashSet<String> = conn
        .prepare_cached("SELECT host_name FROM nodes")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    taken.insert(HostName::LOCAL.to_owned());
    Ok(taken)
}

/// This name, else the first numbered one that is free.
pub(crate) fn next_free(name: &HostName, taken: &HashSet<String>) -> HostName {
    let numbered = (2..=u32::MAX).map(|number| name.numbered(number));
    std::iter::once(name.clone())
        .chain(numbered)
        .find(|name| !taken.contains(name.as_str()))
        .unwrap_or_else(|| name.clone())
}

/// A node that this transaction has just written or found.
pub(crate) fn written(tx: &Tx<'_>, node: &NodeId) -> OpResult<NodeRecord> {
    Ok(read_node(tx.conn(), node)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
}
