//! What a paired node keeps on disk: its key, its certificate, the gateway's authority, and
//! where the gateway is.

use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, CertificateSigningRequest, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde::{Deserialize, Serialize};
use tidings_protocol::digest::{hex, unhex};
use tidings_protocol::session_api::CertificateIssued;
use tidings_protocol::{HostName, NodeId};

use super::tls::public_key_of;
use crate::held_dir;
use crate::private_files::{self, FileError};

pub(super) const KEY_FILE: &str = "node.key";
pub(super) const IDENTITY_FILE: &str = "node.json";
/// Keys and certificates are a few hundred bytes; the rest is names.
const MAX_IDENTITY_BYTES: u64 = 64 * 1024;

/// A node's private key. It never leaves its machine, and has no `Debug` output.
pub struct NodeKey(KeyPair);

/// A paired node.
#[derive(Debug)]
pub struct NodeIdentity {
    /// Its private key.
    pub key: NodeKey,
    /// Its certificate, DER.
    pub certificate: Vec<u8>,
    /// The gateway's certificate authority, DER.
    pub authority: Vec<u8>,
    /// Its id.
    pub node_id: NodeId,
    /// Its name in keys.
    pub host_name: HostName,
    /// Where the gateway listens, `host:port`.
    pub gateway: String,
    /// The fingerprint of the link it joined by; none where it joined in another way.
    pub joined_by: Option<[u8; 32]>,
}

/// Why a node's identity cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityFileError {
    /// This directory holds no paired node: join first.
    #[error("{dir} holds no paired node")]
    NotPaired {
        /// The state directory.
        dir: PathBuf,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file is not what it should be: join again.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The system gave no key: no entropy, or a fault of the build.
    #[error("no key could be made: {0}")]
    Key(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    node_id: NodeId,
    host_name: HostName,
    gateway: String,
    certificate: String,
    authority: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    joined_by: Option<String>,
}

impl Stored {
    fn write(&self, path: &Path) -> Result<(), IdentityFileError> {
        let content = serde_json::to_vec_pretty(self)
            .map_err(|error| IdentityFileError::Key(error.to_string()))?;
        private_files::replace(path, &content)?;
        Ok(())
    }
}

/// Writes what a node keeps beside its key, for whoever carries it there.
pub(super) fn write_issued(
    path: &Path,
    issued: &CertificateIssued,
) -> Result<(), IdentityFileError> {
    Stored {
        node_id: issued.node_id.clone(),
        host_name: issued.host_name.clone(),
        gateway: issued.gateway.clone(),
        certificate: hex(&issued.certificate),
        authority: hex(&issued.authority),
        joined_by: None,
    }
    .write(path)
}

/// True for an error about the identity itself, and not about the key beside it.
fn is_identity(error: &FileError) -> bool {
    error
        .path
        .file_name()
        .is_some_and(|name| name == IDENTITY_FILE)
}

impl NodeKey {
    /// Makes a new key.
    pub fn generate() -> Result<Self, IdentityFileError> {
        KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)
            .map(Self)
            .map_err(|error| IdentityFileError::Key(error.to_string()))
    }

    /// The key of `dir`, made on first use: a join that is tried again keeps its key.
    pub fn load_or_create(dir: &Path) -> Result<Self, IdentityFileError> {
        match Self::load(dir) {
            Err(IdentityFileError::File(error)) if error.is_not_found() => {
                let key = Self::generate()?;
                key.save(dir)?;
                Ok(key)
            }
            other => other,
        }
    }

    /// Keeps the key in `dir`, for its owner alone.
    pub fn save(&self, dir: &Path) -> Result<(), IdentityFileError> {
        held_dir::prepare(dir)?;
        private_files::replace(&dir.join(KEY_FILE), self.0.serialize_pem().as_bytes())?;
        Ok(())
    }

    /// The key of `dir`.
    pub(super) fn load(dir: &Path) -> Result<Self, IdentityFileError> {
        let path = dir.join(KEY_FILE);
        let pem = private_files::read(&path, MAX_IDENTITY_BYTES)?;
        let damaged = |reason: String| IdentityFileError::Damaged {
            path: path.clone(),
            reason,
        };
        let pem = String::from_utf8(pem).map_err(|_| damaged("it is no text".to_owned()))?;
        KeyPair::from_pem(&pem)
            .map(Self)
            .map_err(|error| damaged(error.to_string()))
    }

    /// The key as PKCS #8.
    pub(super) fn pkcs8_der(&self) -> PrivatePkcs8KeyDer<'_> {
        PrivatePkcs8KeyDer::from(self.0.serialized_der())
    }

    /// The id of the node that holds this key.
    pub fn node_id(&self) -> NodeId {
        NodeId::of_public_key(&self.public_key())
    }

    /// The public half, SubjectPublicKeyInfo (DER).
    pub fn public_key(&self) -> Vec<u8> {
        rcgen::PublicKeyData::subject_public_key_info(&self.0)
    }
}

impl std::fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NodeKey(…)")
    }
}

/// A PKCS #10 signing request (DER) that proves possession of `key`. It asks for nothing: of
/// a request the gateway takes the key alone.
pub fn signing_request(key: &NodeKey) -> Result<Vec<u8>, IdentityFileError> {
    Ok(request(key)?.der().to_vec())
}

/// The same as a PEM file, for whoever carries it.
pub fn signing_request_pem(key: &NodeKey) -> Result<String, IdentityFileError> {
    let pem = request(key)?.pem();
    pem.map_err(|error| IdentityFileError::Key(error.to_string()))
}

fn request(key: &NodeKey) -> Result<CertificateSigningRequest, IdentityFileError> {
    CertificateParams::default()
        .serialize_request(&key.0)
        .map_err(|error| IdentityFileError::Key(error.to_string()))
}

impl NodeIdentity {
    /// The identity stored in `dir`.
    pub fn load(dir: &Path) -> Result<Self, IdentityFileError> {
        match Self::read(&dir.join(IDENTITY_FILE), || NodeKey::load(dir)) {
            Err(IdentityFileError::File(error)) if error.is_not_found() && is_identity(&error) => {
                Err(IdentityFileError::NotPaired {
                    dir: dir.to_owned(),
                })
            }
            read => read,
        }
    }

    /// The identity in the file at `path`, for this key.
    pub(super) fn read(
        path: &Path,
        key: impl FnOnce() -> Result<NodeKey, IdentityFileError>,
    ) -> Result<Self, IdentityFileError> {
        let content = private_files::read(path, MAX_IDENTITY_BYTES)?;
        let damaged = |reason: &str| IdentityFileError::Damaged {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let stored: Stored =
            serde_json::from_slice(&content).map_err(|_| damaged("it is not what was written"))?;
        let bytes = |text: &str| unhex(text).ok_or_else(|| damaged("a certificate is no hex"));
        let identity = Self {
            key: key()?,
            certificate: bytes(&stored.certificate)?,
            authority: bytes(&stored.authority)?,
            node_id: stored.node_id,
            host_name: stored.host_name,
            gateway: stored.gateway,
            joined_by: stored
                .joined_by
                .and_then(|text| unhex(&text)?.try_into().ok()),
        };
        if identity.key.node_id() != identity.node_id {
            return Err(damaged("its node id is not that of the key beside it"));
        }
        identity
            .certificate_not_after()
            .map_err(|_| damaged("a certificate cannot be read"))?;
        Ok(identity)
    }

    /// Stores the identity in `dir`; the key is there already.
    pub fn save(&self, dir: &Path) -> Result<(), IdentityFileError> {
        private_files::create_dir(dir)?;
        Stored {
            node_id: self.node_id.clone(),
            host_name: self.host_name.clone(),
            gateway: self.gateway.clone(),
            certificate: hex(&self.certificate),
            authority: hex(&self.authority),
            joined_by: self.joined_by.map(|fingerprint| hex(&fingerprint)),
        }
        .write(&dir.join(IDENTITY_FILE))
    }

    /// Removes the identity and the key from `dir`: this machine is no node any more.
    pub fn remove(dir: &Path) -> Result<(), IdentityFileError> {
        // The identity first: a key alone is what a join that is tried again begins with.
        for name in [IDENTITY_FILE, KEY_FILE] {
            let path = dir.join(name);
            std::fs::remove_file(&path).map_err(FileError::at("remove", &path))?;
        }
        Ok(())
    }

    /// When the node's certificate expires, epoch milliseconds.
    pub fn certificate_not_after(&self) -> Result<i64, super::TlsError> {
        public_key_of(&self.certificate).map(|(_, seconds)| seconds.saturating_mul(1_000))
    }
}
