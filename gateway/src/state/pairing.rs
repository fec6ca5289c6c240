//! Join codes: kept, looked at, redeemed once.

use rusqlite::{Connection, OptionalExtension, Row};
use tidings_protocol::digest::{hex, sha256};
use tidings_protocol::join_link::JoinCode;
use tidings_protocol::session_api::OpenInvitation;
use tidings_protocol::{EpochMs, HostName, NodeId};

use super::State;
use super::audit::{AuditAction, joined, operator_did};
use super::certificates::NewCertificate;
use super::engine::{OpResult, Priority, Tx};
use super::enrolment::{EnrolRefusal, NameWish, NewNode, enrol, next_free, taken_names, written};
use super::error::StateError;
use super::nodes::NodeRecord;
use super::sql::{int, parsed_opt};

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

/// How many bytes of a code's digest name its invitation: nobody has enough of them at once for
/// two to be alike, and a code of 128 bits cannot be found by its digest.
const ID_BYTES: usize = 8;

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
            let target = invitation.host_name.as_ref().map_or("", HostName::as_str);
            operator_did(tx, AuditAction::Invite, target)?;
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

    /// The invitations that nobody has redeemed and that still work, oldest first.
    pub async fn open_invitations(&self) -> Result<Vec<OpenInvitation>, StateError> {
        let now = self.inner.clock.now();
        self.read(move |conn| {
            let open = conn
                .prepare_cached(
                    "SELECT digest, host_name, created_at, expires_at FROM join_codes
                     WHERE redeemed_at IS NULL AND expires_at > ?1 ORDER BY created_at, digest",
                )?
                .query_map([now], open_row)?
                .collect::<Result<_, _>>()?;
            Ok(open)
        })
        .await
    }

    /// Withdraws the open invitations that have this id, or are for a node of this name.
    pub async fn withdraw_invitations(
        &self,
        name: String,
    ) -> Result<Vec<OpenInvitation>, StateError> {
        self.write(Priority::Interactive, move |tx| {
            let withdrawn: Vec<OpenInvitation> = tx.rows(
                "DELETE FROM join_codes
                 WHERE redeemed_at IS NULL AND expires_at > ?1
                   AND (host_name = ?2 OR lower(hex(substr(digest, 1, ?3))) = ?2)
                 RETURNING digest, host_name, created_at, expires_at",
                (tx.now(), &name, int(ID_BYTES as u64)),
                open_row,
            )?;
            if !withdrawn.is_empty() {
                operator_did(tx, AuditAction::Reject, &name)?;
            }
            Ok(withdrawn)
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
    let name = match kept.host_name {
        Some(name) => NameWish::Given(name),
        None => NameWish::Machine(redemption.machine_name.clone()),
    };
    let enrolled = enrol(
        tx,
        &NewNode {
            node: redemption.node.clone(),
            name,
            version: redemption.version.clone(),
            certificate: redemption.certificate.clone(),
        },
    )?;
    let node = match enrolled {
        Ok(node) => node,
        Err(EnrolRefusal::Revoked) => return refused(RedeemRefusal::Revoked),
        Err(EnrolRefusal::NameTaken { free }) => {
            return refused(RedeemRefusal::NameTaken { free });
        }
    };
    joined(tx, &redemption.node)?;
    tx.execute(
        "UPDATE join_codes SET redeemed_at = ?2, certificate = ?4,
                node = (SELECT number FROM nodes WHERE id = ?3)
         WHERE digest = ?1",
        (
            digest,
            tx.now(),
            redemption.node.as_str(),
            &redemption.certificate.der,
        ),
    )?;
    Ok(Redeemed::Joined {
        node: Box::new(node),
        certificate: redemption.certificate.der.clone(),
    })
}

fn open_row(row: &Row<'_>) -> rusqlite::Result<OpenInvitation> {
    let digest: [u8; 32] = row.get(0)?;
    Ok(OpenInvitation {
        id: hex(&digest[..ID_BYTES]),
        name: parsed_opt(row, 1, HostName::parse)?,
        created_at: row.get(2)?,
        expires_at: row.get(3)?,
    })
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
