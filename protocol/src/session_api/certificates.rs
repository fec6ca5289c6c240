//! Requests and replies about certificates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EpochMs, HostName, NodeId};

/// Asks for a node made of a signing request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssueCertificate {
    /// Host name and first display name of the node.
    pub name: String,
    /// The PKCS #10 signing request, DER. Only its public key and its proof of possession
    /// are taken.
    #[serde(with = "serde_bytes")]
    #[schemars(with = "Vec<u8>")]
    pub signing_request: Vec<u8>,
    /// Where the node finds the gateway, as for a join link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// Asks for a new certificate for a node's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenewCertificate {
    /// The node: its id, or its host name.
    pub node: String,
    /// Where the node finds the gateway, as for a join link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// Names certificates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CertificateRef {
    /// A serial number, a node's id, or its host name. Nothing means all.
    pub certificate: Option<String>,
}

/// A certificate, with all that its node needs beside its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateIssued {
    /// The node's id.
    pub node_id: NodeId,
    /// Its name in keys.
    pub host_name: HostName,
    /// Where it finds the gateway.
    pub gateway: String,
    /// The certificate's serial number, lower-case hex.
    pub serial: String,
    /// When it expires.
    pub not_after: EpochMs,
    /// The certificate, DER.
    #[serde(with = "serde_bytes")]
    #[schemars(with = "Vec<u8>")]
    pub certificate: Vec<u8>,
    /// The gateway's certificate authority, DER.
    #[serde(with = "serde_bytes")]
    #[schemars(with = "Vec<u8>")]
    pub authority: Vec<u8>,
}

/// Certificates that are turned away from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificatesRevoked {
    /// Whose.
    pub host_name: HostName,
    /// Their serial numbers.
    pub revoked: Vec<String>,
}

/// Certificates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Certificates {
    /// The authority and the gateway's own first, then those of nodes, newest first.
    pub certificates: Vec<CertificateRow>,
}

/// One certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateRow {
    /// What it is for.
    pub kind: CertificateKind,
    /// How it stands.
    pub state: CertificateState,
    /// Whose it is; the gateway's own have no host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<HostName>,
    /// The node's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    /// Its serial number, lower-case hex.
    pub serial: String,
    /// When it begins to be valid.
    pub not_before: EpochMs,
    /// When it expires.
    pub not_after: EpochMs,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<EpochMs>,
}

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CertificateKind {
    /// The gateway's authority.
    Authority,
    /// What the gateway shows to nodes.
    Server,
    /// What a node shows to the gateway.
    Node,
}

/// How a certificate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CertificateState {
    /// Good for more than a third of its life.
    Valid,
    /// In the last third of its life: it should have been renewed.
    Expiring,
    /// Its time is over.
    Expired,
    /// Its time has not come: a clock is wrong.
    NotYetValid,
    /// Turned away for good.
    Revoked,
}

impl CertificateState {
    /// How a certificate of this life, which nobody has revoked, stands at `now`.
    #[must_use]
    pub fn at(not_before: EpochMs, not_after: EpochMs, now: EpochMs) -> Self {
        if now < not_before {
            Self::NotYetValid
        } else if now >= not_after {
            Self::Expired
        } else if now >= not_before.saturating_add(two_thirds(not_before, not_after)) {
            Self::Expiring
        } else {
            Self::Valid
        }
    }

    /// The state's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Expiring => "expiring",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::Revoked => "revoked",
        }
    }
}

fn two_thirds(not_before: EpochMs, not_after: EpochMs) -> EpochMs {
    not_after.saturating_sub(not_before) / 3 * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_to_be_renewed_after_two_thirds_of_its_life() {
        for (now, state) in [
            (99, CertificateState::NotYetValid),
            (100, CertificateState::Valid),
            (299, CertificateState::Valid),
            (300, CertificateState::Expiring),
            (399, CertificateState::Expiring),
            (400, CertificateState::Expired),
        ] {
            assert_eq!(CertificateState::at(100, 400, now), state, "{now}");
        }
    }
}
