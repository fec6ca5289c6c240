//! Who a running agent is: its identity, renewed in time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
        validity_of(&self.lock().certificate)
            .is_ok_and(|(not_before, not_after)| is_due(not_before, not_after, now))
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

fn is_due(not_before: EpochMs, not_after: EpochMs, now: EpochMs) -> bool {
    let life = not_after.saturating_sub(not_before);
    now >= not_before.saturating_add(life / 3 * 2)
}

#[cfg(test)]
mod tests {
    use super::is_due;

    #[test]
    fn a_certificate_is_renewed_after_two_thirds_of_its_life() {
        for (now, due) in [
            (0, false),
            (199, false),
            (200, true),
            (300, true),
            (999, true),
        ] {
            assert_eq!(is_due(0, 300, now), due, "{now}");
        }
        assert!(!is_due(100, 400, 299));
        assert!(is_due(100, 400, 300));
    }
}
