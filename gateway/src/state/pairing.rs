//! Pairing: invitations, and machines that become nodes.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Row};
use tidings_protocol::digest::sha256;
use tidings_protocol::join_link::JoinCode;
use tidings_protocol::{EpochMs, Host, HostName, NodeId};

use super::State;
use super::effect::Effect;
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::nodes::{NewCertificate, NodeRecord, NodeStanding, cut, keep_certificate, read_node};
use super::sql::parsed_opt;

/// How long an expired code is remembered, so that whoever comes late is told the reason.
const EXPIRED_KEPT_MS: EpochMs = 24 * 60 * 60 * 1_000;

/// An invitation to keep. Of the code only its digest is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewInvitation {
    /// The code of the join link.
    pub code: JoinCode,
    /// Host name and first display name of the new node; else its machine's name.
    pub host_name: Option<HostName>,
    /// When it stops working.
    pub expires_at: EpochMs,
}

/// What stands behind a join code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvitationStanding {
    /// It can be redeemed.
    Open,
    /// This node redeemed it; within its life the same node gets the same answer.
    Redeemed(NodeId),
    /// It is too old.
    Expired,
    /// There is none.
    Unknown,
}

/// A machine that wants to become a node, with the certificate made for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redemption {
    /// The code of the join link.
    pub code: JoinCode,
    /// The digest of the machine's public key.
    pub node: NodeId,
    /// The machine's name, used where the invitation gave none.
    pub machine_name: String,
    /// The agent's version.
    pub version: String,
    /// The certificate to hand out.
    pub certificate: NewCertificate,
}

/// What became of a redemption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redeemed {
    /// The machine is a node now.
    Joined {
        /// The node.
        node: Box<NodeRecord>,
        /// Its certificate, DER: for a repeat the one of the first time.
        certificate: Vec<u8>,
    },
    /// It is not.
    Refused(RedeemRefusal),
}

/// Why a code was not redeemed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedeemRefusal {
    /// There is no such code.
    Unknown,
    /// The code is too old.
    Expired,
    /// Another machine used the code.
    Used,
    /// The machine's key has been turned away for good.
    Revoked,
    /// The name of the invitation is taken by now.
    NameTaken {
        /// One that is free.
        free: HostName,
    },
}

/// A code as it is kept.
struct Invitation {
    host_name: Option<HostName>,
    expires_at: EpochMs,
    redeemed: Option<(NodeId, Vec<u8>)>,
}

impl State {
    /// Keeps an invitation. A host name that is taken already is refused with a free one.
    pub async fn create_invitation(&self, invitation: NewInvitation) -> Result<(), StateError> {
        let digest = sha256(invitation.code.as_bytes());
        self.write(Priority::Interactive, move |tx| {
            if let Some(name) = &invitation.host_name {
                let taken = taken_names(tx.conn())?;
                if taken.contains(name.as_str()) {
                    return Err(StateError::NameTaken {
                        name: name.to_string(),
                        free: next_free(name, &taken).to_string(),
                    }
                    .into());
                }
            }
            tx.execute(
                "DELETE FROM join_codes WHERE expires_at < ?1",
                [tx.now().saturating_sub(EXPIRED_KEPT_MS)],
            )?;
            tx.execute(
                "INSERT INTO join_codes (digest, host_name, created_at, expires_at)
                 VALUES (?1, ?2, ?3, ?4)",
                (
                    digest,
                    invitation.host_name.as_ref().map(HostName::as_str),
                    tx.now(),
                    invitation.expires_at,
                ),
            )?;
            Ok(())
        })
        .await
    }

    /// What stands behind a join code: look before making a certificate.
    pub async fn invitation(&self, code: JoinCode) -> Result<InvitationStanding, StateError> {
        let digest = sha256(code.as_bytes());
        let now = self.inner.clock.now();
        self.read(move |conn| {
            Ok(match read_invitation(conn, &digest)? {
                None => InvitationStanding::Unknown,
                Some(kept) if now >= kept.expires_at => InvitationStanding::Expired,
                Some(Invitation {
                    redeemed: Some((node, _)),
                    ..
                }) => InvitationStanding::Redeemed(node),
                Some(_) => InvitationStanding::Open,
            })
        })
        .await
    }

    /// Makes a machine a node.
    pub async fn redeem_invitation(&self, redemption: Redemption) -> Result<Redeemed, StateError> {
        self.write(Priority::Interactive, move |tx| redeem(tx, &redemption))
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
            let number = number_of(tx, &node)?;
            keep_certificate(tx, number, &certificate)?;
            written(tx, &node)
        })
        .await
    }
}

fn redeem(tx: &mut Tx<'_>, redemption: &Redemption) -> OpResult<Redeemed> {
    let digest = sha256(redemption.code.as_bytes());
    let refused = |refusal| Ok(Redeemed::Refused(refusal));
    let Some(kept) = read_invitation(tx.conn(), &digest)? else {
        return refused(RedeemRefusal::Unknown);
    };
    let in_time = tx.now() < kept.expires_at;
    match kept.redeemed {
        Some((node, certificate)) if node == redemption.node && in_time => {
            return Ok(Redeemed::Joined {
                node: Box::new(written(tx, &node)?),
                certificate,
            });
        }
        Some((node, _)) if node != redemption.node => return refused(RedeemRefusal::Used),
        _ if !in_time => return refused(RedeemRefusal::Expired),
        _ => {}
    }
    match read_node(tx.conn(), &redemption.node)? {
        Some(known) if known.standing == NodeStanding::Revoked => {
            return refused(RedeemRefusal::Revoked);
        }
        Some(_) => {
            tx.execute(
                "UPDATE nodes SET standing = 'active', version = ?2 WHERE id = ?1",
                (redemption.node.as_str(), cut(&redemption.version)),
            )?;
        }
        None => {
            if let Err(free) = add_node(tx, redemption, kept.host_name)? {
                return refused(RedeemRefusal::NameTaken { free });
            }
        }
    }
    let number = number_of(tx, &redemption.node)?;
    keep_certificate(tx, number, &redemption.certificate)?;
    tx.execute(
        "UPDATE join_codes SET redeemed_at = ?2, node = ?3, certificate = ?4 WHERE digest = ?1",
        (digest, tx.now(), number, &redemption.certificate.der),
    )?;
    tx.tell(Effect::NodeChanged {
        node: redemption.node.clone(),
    });
    Ok(Redeemed::Joined {
        node: Box::new(written(tx, &redemption.node)?),
        certificate: redemption.certificate.der.clone(),
    })
}

/// Adds a node under the name of its invitation, else under its machine's. Answers a free
/// name instead where the invitation's is taken.
fn add_node(
    tx: &Tx<'_>,
    redemption: &Redemption,
    invited: Option<HostName>,
) -> OpResult<Result<(), HostName>> {
    let taken = taken_names(tx.conn())?;
    let (host_name, display) = match invited {
        Some(name) if taken.contains(name.as_str()) => return Ok(Err(next_free(&name, &taken))),
        Some(name) => (name.clone(), name.to_string()),
        None => {
            let name = next_free(&HostName::slug(&redemption.machine_name), &taken);
            let display = cut(&redemption.machine_name);
            let display = if display.is_empty() {
                name.to_string()
            } else {
                display
            };
            (name, display)
        }
    };
    tx.execute(
        "INSERT INTO nodes (id, name, host_name, host, standing, paired_at, version)
         VALUES (?1, ?2, ?3, ?4, 'active', ?5, ?6)",
        (
            redemption.node.as_str(),
            display,
            host_name.as_str(),
            Host::Node(redemption.node.clone()).to_string(),
            tx.now(),
            cut(&redemption.version),
        ),
    )?;
    Ok(Ok(()))
}

/// Every name that was ever given; `local` always is.
fn taken_names(conn: &Connection) -> rusqlite::Result<HashSet<String>> {
    let mut taken: HashSet<String> = conn
        .prepare_cached("SELECT host_name FROM nodes")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    taken.insert(HostName::LOCAL.to_owned());
    Ok(taken)
}

/// This name, else the first numbered one that is free.
fn next_free(name: &HostName, taken: &HashSet<String>) -> HostName {
    let numbered = (2..=u32::MAX).map(|number| name.numbered(number));
    std::iter::once(name.clone())
        .chain(numbered)
        .find(|name| !taken.contains(name.as_str()))
        .unwrap_or_else(|| name.clone())
}

fn read_invitation(conn: &Connection, digest: &[u8; 32]) -> rusqlite::Result<Option<Invitation>> {
    conn.prepare_cached(
        "SELECT code.host_name, code.expires_at, node.id, code.certificate
         FROM join_codes AS code LEFT JOIN nodes AS node ON node.number = code.node
         WHERE code.digest = ?1",
    )?
    .query_row([digest], invitation_row)
    .optional()
}

fn invitation_row(row: &Row<'_>) -> rusqlite::Result<Invitation> {
    let node = parsed_opt(row, 2, NodeId::parse)?;
    let certificate: Option<Vec<u8>> = row.get(3)?;
    Ok(Invitation {
        host_name: parsed_opt(row, 0, HostName::parse)?,
        expires_at: row.get(1)?,
        redeemed: node.zip(certificate),
    })
}

fn number_of(tx: &Tx<'_>, node: &NodeId) -> rusqlite::Result<i64> {
    tx.prepare("SELECT number FROM nodes WHERE id = ?1")?
        .query_row([node.as_str()], |row| row.get(0))
}

/// A node that this transaction has just written or found.
fn written(tx: &Tx<'_>, node: &NodeId) -> OpResult<NodeRecord> {
    Ok(read_node(tx.conn(), node)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
}
