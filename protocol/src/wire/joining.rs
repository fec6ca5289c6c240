//! How a machine becomes a node, and its key gets a new certificate.

use serde::{Deserialize, Serialize};

use crate::pairing::{Commitment, Nonce};
use crate::{HostName, NodeId};

/// Asks to become a node.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Join {
    /// The code of the join link.
    #[serde(with = "serde_bytes")]
    pub code: [u8; 16],
    /// The PKCS #10 signing request, DER. Only its public key and its proof of possession
    /// are taken.
    #[serde(with = "serde_bytes")]
    pub signing_request: Vec<u8>,
    /// The machine's name, used where the invitation gave none.
    pub machine_name: String,
    /// The agent's version.
    pub agent_version: String,
}

impl std::fmt::Debug for Join {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Join")
            .field("machine_name", &self.machine_name)
            .field("agent_version", &self.agent_version)
            .finish_non_exhaustive()
    }
}

/// Asks to become a node: the key, and the commitment to a nonce that comes later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// The PKCS #10 signing request, DER. Only its public key and its proof of possession
    /// are taken.
    #[serde(with = "serde_bytes")]
    pub signing_request: Vec<u8>,
    /// See [`crate::pairing`].
    #[serde(with = "serde_bytes")]
    pub commitment: Commitment,
    /// The machine's name, for the person who approves.
    pub machine_name: String,
    /// The agent's version.
    pub agent_version: String,
}

/// The nonce of one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NonceOf {
    /// See [`crate::pairing`].
    #[serde(with = "serde_bytes")]
    pub nonce: Nonce,
}

/// Is a node now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Joined {
    /// The node's id.
    pub node_id: NodeId,
    /// Its name in keys.
    pub host_name: HostName,
    /// Its certificate, DER.
    #[serde(with = "serde_bytes")]
    pub certificate: Vec<u8>,
    /// The gateway's certificate authority, DER.
    #[serde(with = "serde_bytes")]
    pub authority: Vec<u8>,
}

/// Asks for a new certificate for the key of this connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Renew {
    /// The PKCS #10 signing request, DER, for the node's own key.
    #[serde(with = "serde_bytes")]
    pub signing_request: Vec<u8>,
}

/// A new certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Renewed {
    /// The certificate, DER.
    #[serde(with = "serde_bytes")]
    pub certificate: Vec<u8>,
}
