//! The certificates of nodes: kept, listed, revoked.

use rusqlite::{OptionalExtension, Row};
use tidings_protocol::{EpochMs, HostName, NodeId};

use super::State;
use super::audit::{AuditAction, operator_did};
use super::effect::Effect;
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::nodes::NodeStanding;
use super::sql::{named, parsed};

/// How many certificates of a node are kept, newest first: more than a year of renewals.
/// Those that were revoked stay for ever: they are what is turned away.
const KEPT: i64 = 24;

/// A certificate to keep; its content is opaque here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCertificate {
    /// The serial number, lower-case hex.
    pub serial: String,
    /// The certificate, DER.
    pub der: Vec<u8>,
    /// When it begins to be valid.
    pub not_before: EpochMs,
    /// When it expires.
    pub not_after: EpochMs,
}

/// A certificate that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateRecord {
    /// Whose.
    pub node: NodeId,
    /// That node's name in keys.
    pub host_name: HostName,
    /// How that node stands.
    pub standing: NodeStanding,
    /// The serial number, lower-case hex.
    pub serial: String,
    /// The certificate, DER.
    pub der: Vec<u8>,
    /// When it begins to be valid.
    pub not_before: EpochMs,
    /// When it expires.
    pub not_after: EpochMs,
    /// When it was revoked.
    pub revoked_at: Option<EpochMs>,
}

impl State {
    /// Keeps a certificate that a node renewed by itself.
    pub async fn store_certificate(
        &self,
        node: NodeId,
        certificate: NewCertificate,
    ) -> Result<(), StateError> {
        self.write(Priority::Interactive, move |tx| {
            must_be_active(tx, &node)?;
            keep_certificate(tx, &node, &certificate)
        })
        .await
    }

    /// Keeps a certificate that an operator had made for a node's key.
    pub async fn store_issued_certificate(
        &self,
        node: NodeId,
        certificate: NewCertificate,
    ) -> Result<(), StateError> {
        self.write(Priority::Interactive, move |tx| {
            must_be_active(tx, &node)?;
            operator_did(tx, AuditAction::RenewCertificate, node.as_str())?;
            keep_certificate(tx, &node, &certificate)
        })
        .await
    }

    /// Revokes these certificates of a node, and answers which of them it had not before.
    pub async fn revoke_certificates(
        &self,
        node: NodeId,
        serials: Vec<String>,
    ) -> Result<Vec<String>, StateError> {
        self.write(Priority::Interactive, move |tx| {
            let mut revoked = Vec::new();
            for serial in &serials {
                let changed = tx.execute(
                    "UPDATE node_certificates SET revoked_at = ?3
                     WHERE serial = ?1 AND revoked_at IS NULL
                       AND node = (SELECT number FROM nodes WHERE id = ?2)",
                    (serial, node.as_str(), tx.now()),
                )?;
                if changed > 0 {
                    revoked.push(serial.clone());
                }
            }
            if !revoked.is_empty() {
                operator_did(tx, AuditAction::RevokeCertificate, node.as_str())?;
                tx.tell(Effect::CertificateRevoked { node: node.clone() });
            }
            Ok(revoked)
        })
        .await
    }

    /// Every certificate that is kept, node by node, the newest first.
    pub async fn certificates(&self) -> Result<Vec<CertificateRecord>, StateError> {
        self.read(|conn| {
            let all = conn
                .prepare_cached(
                    "SELECT node.id, node.host_name, serial, der, not_before, not_after, revoked_at,
                            node.standing
                     FROM node_certificates AS certificate
                     JOIN nodes AS node ON node.number = certificate.node
                     ORDER BY node.host <> 'gateway:local', node.number, certificate.number DESC",
                )?
                .query_map([], certificate_row)?
                .collect::<Result<_, _>>()?;
            Ok(all)
        })
        .await
    }

    /// True for the serial number of a certificate that was revoked.
    pub async fn is_revoked(&self, serial: String) -> Result<bool, StateError> {
        self.read(move |conn| {
            let revoked_at: Option<Option<EpochMs>> = conn
                .prepare_cached("SELECT revoked_at FROM node_certificates WHERE serial = ?1")?
                .query_row([&serial], |row| row.get(0))
                .optional()?;
            Ok(revoked_at.flatten().is_some())
        })
        .await
    }
}

fn must_be_active(tx: &Tx<'_>, node: &NodeId) -> OpResult<()> {
    let active = tx.row(
        "SELECT 1 FROM nodes WHERE id = ?1 AND standing = 'active'",
        [node.as_str()],
        |_| Ok(()),
    )?;
    active.ok_or_else(|| StateError::NodeNotActive(node.to_string()).into())
}

fn certificate_row(row: &Row<'_>) -> rusqlite::Result<CertificateRecord> {
    Ok(CertificateRecord {
        node: parsed(row, 0, NodeId::parse)?,
        host_name: parsed(row, 1, HostName::parse)?,
        serial: row.get(2)?,
        der: row.get(3)?,
        not_before: row.get(4)?,
        not_after: row.get(5)?,
        revoked_at: row.get(6)?,
        standing: named(row, 7, NodeStanding::parse)?,
    })
}

/// Keeps a certificate of a node and forgets the oldest beyond the limit. One that is kept
/// already stays as it is.
pub(crate) fn keep_certificate(
    tx: &Tx<'_>,
    node: &NodeId,
    certificate: &NewCertificate,
) -> OpResult<()> {
    tx.execute(
        "INSERT INTO node_certificates (serial, node, der, not_before, not_after, issued_at)
         SELECT ?1, number, ?3, ?4, ?5, ?6 FROM nodes WHERE id = ?2
         ON CONFLICT (serial) DO NOTHING",
        (
            &certificate.serial,
            node.as_str(),
            &certificate.der,
            certificate.not_before,
            certificate.not_after,
            tx.now(),
        ),
    )?;
    tx.execute(
        "DELETE FROM node_certificates
         WHERE node = (SELECT number FROM nodes WHERE id = ?1)
           AND revoked_at IS NULL
           AND number NOT IN (
             SELECT certificate.number FROM node_certificates AS certificate
             JOIN nodes AS node ON node.number = certificate.node
             WHERE node.id = ?1 ORDER BY certificate.number DESC LIMIT ?2)",
        (node.as_str(), KEPT),
    )?;
    Ok(())
}
