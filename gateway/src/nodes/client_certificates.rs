//! Which client certificates a handshake accepts: those of the gateway's own authority. An
//! expired one passes here too; the session then admits it for renewal and for nothing else.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme,
};
use tidings_node::connection::{crypto_provider, validity_of};
use tidings_protocol::EpochMs;

/// Verifies against one authority, whatever the time.
#[derive(Debug)]
pub(super) struct ExpiredToo {
    inner: Arc<dyn ClientCertVerifier>,
}

impl ExpiredToo {
    /// A verifier for the certificates of this authority. A joining machine shows none.
    pub(super) fn new(authority: CertificateDer<'static>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        roots.add(authority).map_err(|error| error.to_string())?;
        let inner = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), crypto_provider())
            .allow_unauthenticated()
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { inner })
    }
}

/// True when the certificate has expired at `now`.
pub(super) fn is_expired(certificate: &[u8], now: EpochMs) -> bool {
    validity_of(certificate).is_ok_and(|(_, not_after)| now > not_after)
}

fn last_valid_moment(certificate: &[u8]) -> Option<UnixTime> {
    let (_, not_after) = validity_of(certificate).ok()?;
    let seconds = u64::try_from(not_after / 1_000).ok()?;
    Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(
        seconds,
    )))
}

impl ClientCertVerifier for ExpiredToo {
    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.inner.verify_client_cert(leaf, chain, now);
        let expired = matches!(
            verified,
            Err(rustls::Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. }
            ))
        );
        match last_valid_moment(leaf) {
            Some(then) if expired => self.inner.verify_client_cert(leaf, chain, then),
            _ => verified,
        }
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
