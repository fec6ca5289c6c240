//! Certificates that people carry from the gateway to a machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use tidings_protocol::EpochMs;
use tidings_protocol::session_api::CertificateIssued;

use super::identity::{
    IDENTITY_FILE, IdentityFileError, KEY_FILE, NodeIdentity, NodeKey, write_issued,
};
use super::tls::crypto_provider;
use crate::private_files::create_dir;

/// Why a machine does not take a certificate that was carried to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProvisionError {
    /// There is no key here, and none came with it.
    #[error("{dir} holds no key, and none came with the certificate")]
    NoKey {
        /// The state directory.
        dir: PathBuf,
    },
    /// It is for another machine.
    #[error("{path} is for another key than the one of this machine")]
    OtherKey {
        /// The file.
        path: PathBuf,
    },
    /// It is not what its authority signed for now.
    #[error("{path} is of no use: {reason}")]
    NotValid {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] IdentityFileError),
}

/// Writes into `dir` what a node keeps: its certificate, and its key where that was made
/// here. Together they are a node's state directory.
pub fn provision(
    dir: &Path,
    issued: &CertificateIssued,
    key: Option<&NodeKey>,
) -> Result<Vec<PathBuf>, IdentityFileError> {
    create_dir(dir)?;
    let mut written = Vec::new();
    if let Some(key) = key {
        key.save(dir)?;
        written.push(dir.join(KEY_FILE));
    }
    let certificate = dir.join(IDENTITY_FILE);
    write_issued(&certificate, issued)?;
    written.push(certificate);
    Ok(written)
}

/// Takes the certificate at `path`, a file or a folder, for the machine whose state directory
/// is `dir`. Its key is the one there, else the one in the folder.
pub fn accept(path: &Path, dir: &Path, now: EpochMs) -> Result<NodeIdentity, ProvisionError> {
    let (folder, file) = if path.is_dir() {
        (Some(path), path.join(IDENTITY_FILE))
    } else {
        (None, path.to_owned())
    };
    let (key, is_new) = find_key(dir, folder)?;
    let node_id = key.node_id();
    let identity = match NodeIdentity::read(&file, || Ok(key)) {
        Err(IdentityFileError::Damaged { .. }) if is_for_another(&file, &node_id) => {
            return Err(ProvisionError::OtherKey { path: file });
        }
        read => read?,
    };
    verify(&identity, now).map_err(|reason| ProvisionError::NotValid { path: file, reason })?;
    if is_new {
        identity.key.save(dir)?;
    }
    identity.save(dir)?;
    Ok(identity)
}

/// The key to use, and whether it came with the certificate.
fn find_key(dir: &Path, folder: Option<&Path>) -> Result<(NodeKey, bool), ProvisionError> {
    let places = [(Some(dir), false), (folder, true)];
    for (place, is_new) in places {
        let Some(place) = place else { continue };
        match NodeKey::load(place) {
            Err(IdentityFileError::File(error)) if error.is_not_found() => {}
            key => return Ok((key?, is_new)),
        }
    }
    Err(ProvisionError::NoKey {
        dir: dir.to_owned(),
    })
}

/// True for a file that is as it should be, and names another node.
fn is_for_another(file: &Path, node_id: &tidings_protocol::NodeId) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let named: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    named.is_some_and(|value| {
        value["nodeId"]
            .as_str()
            .is_some_and(|named| named != node_id.as_str())
    })
}

/// The certificate must be the authority's, for a client, and valid now.
fn verify(identity: &NodeIdentity, now: EpochMs) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from(identity.authority.clone());
    roots.add(authority).map_err(|error| error.to_string())?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), crypto_provider())
        .build()
        .map_err(|error| error.to_string())?;
    let certificate = CertificateDer::from(identity.certificate.clone());
    let seconds = u64::try_from(now / 1_000).unwrap_or_default();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    verifier
        .verify_client_cert(&certificate, &[], now)
        .map(|_| ())
        .map_err(|error| error.to_string())
}
