//! Who a running agent is: its identity, renewed in time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidings_protocol::session_api::CertificateState;
use tidings_protocol::{EpochMs, NodeId};

use super::identity::{IdentityFileError, NodeIdentity, signing_request};
use super::tls::{TlsError, paired, validity_of};
use crate::clock::Clock;

/// A running agent's identity, and where it is kept.
#[derive(Debug)]
pub(super) struct Credentials {
    identity: Mutex<NodeIdentity>,
    dir: Option<PathBuf>,
}

/// Why a renewed certificate was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum InstallError {
    /// It is for another key, or cannot be read: the gateway's fault.
    #[error("it is not a certificate for this node's key")]
    NotOurs,
    /// It cannot be kept.
    #[error(transparent)]
    Keep(#[from] IdentityFileError),
}

impl Credentials {
    /// These; a renewed certificate is kept in `dir`, where there is one.
    pub(super) fn new(identity: NodeIdentity, dir: Option<PathBuf>) -> Self {
        Self {
            identity: Mutex::new(identity),
            dir,
        }
    }

    /// How to connect with them.
    pub(super) fn client_config(
        &self,
        clock: &Arc<dyn Clock>,
    ) -> Result<quinn::ClientConfig, TlsError> {
        paired(&self.lock(), clock)
    }

    /// When the certificate expires.
    pub(super) fn not_after(&self) -> EpochMs {
        self.lock().certificate_not_after().unwrap_or_default()
    }

    /// True once two thirds of the certificate's life are over.
    pub(super) fn renewal_is_due(&self, now: EpochMs) -> bool {
        matches!(
            self.standing(now),
            CertificateState::Expiring | CertificateState::Expired
        )
    }

    /// How the certificate stands.
    pub(super) fn standing(&self, now: EpochMs) -> CertificateState {
        match validity_of(&self.lock().certificate) {
            Ok((not_before, not_after)) => CertificateState::at(not_before, not_after, now),
            // It was read when it was taken.
            Err(_) => CertificateState::Expired,
        }
    }

    /// A signing request for the same key.
    pub(super) fn signing_request(&self) -> Result<Vec<u8>, IdentityFileError> {
        signing_request(&self.lock().key)
    }

    /// Takes a renewed certificate.
    pub(super) fn install(&self, certificate: Vec<u8>) -> Result<(), InstallError> {
        let mut identity = self.lock();
        let (key, _) = super::public_key_of(&certificate).map_err(|_| InstallError::NotOurs)?;
        if NodeId::of_public_key(&key) != identity.node_id {
            return Err(InstallError::NotOurs);
        }
        identity.certificate = certificate;
        match &self.dir {
            Some(dir) => Ok(identity.save(dir)?),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, NodeIdentity> {
        // Nothing panics while holding it; the identity is whole at every moment.
        self.identity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
