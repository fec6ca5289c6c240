//! TLS 1.3 towards the gateway: by pin while pairing, by its own authority afterwards.

use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::QuicClientConfig;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tidings_protocol::digest::sha256;
use tidings_protocol::wire::{ALPN_JOIN, ALPN_NODE};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::identity::NodeIdentity;
use crate::clock::Clock;

/// Why TLS cannot be set up. Trying again does not help.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A stored certificate or key is no good: join again.
    #[error("the stored certificate or key cannot be used: {0}")]
    Rustls(#[from] rustls::Error),
    /// The cipher suites of the build do not serve QUIC: a fault of the build.
    #[error("this build has no cipher suite for QUIC")]
    NoQuicSuite,
    /// A certificate that cannot be read.
    #[error("a certificate cannot be read")]
    Certificate,
}

/// The one crypto provider of the build, passed explicitly everywhere.
#[must_use]
pub fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The SubjectPublicKeyInfo (DER) of a certificate, and when it expires in epoch seconds.
pub fn public_key_of(certificate: &[u8]) -> Result<(Vec<u8>, i64), TlsError> {
    let (rest, parsed) =
        X509Certificate::from_der(certificate).map_err(|_| TlsError::Certificate)?;
    if !rest.is_empty() {
        return Err(TlsError::Certificate);
    }
    let not_after = parsed.validity().not_after.timestamp();
    Ok((parsed.public_key().raw.to_vec(), not_after))
}

/// From when to when a certificate is valid, in epoch milliseconds.
pub fn validity_of(certificate: &[u8]) -> Result<(i64, i64), TlsError> {
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| TlsError::Certificate)?;
    let validity = parsed.validity();
    let millis = |seconds: i64| seconds.saturating_mul(1_000);
    Ok((
        millis(validity.not_before.timestamp()),
        millis(validity.not_after.timestamp()),
    ))
}

/// The time that certificates are judged by: the clock that everything else goes by too.
#[derive(Debug)]
pub struct TlsTime(pub Arc<dyn Clock>);

impl TimeProvider for TlsTime {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now() / 1_000).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// Whose word a joining machine takes for who the gateway is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trust {
    /// The authority with this pin.
    Pinned([u8; 32]),
    /// Whichever authority the other side shows: people compare words over its key.
    Shown,
}

/// Configuration for pairing.
pub(super) fn pairing(
    trust: Trust,
    clock: &Arc<dyn Clock>,
) -> Result<quinn::ClientConfig, TlsError> {
    let verifier = Arc::new(PairingVerifier {
        trust,
        provider: crypto_provider(),
    });
    let mut config =
        ClientConfig::builder_with_details(crypto_provider(), Arc::new(TlsTime(clock.clone())))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
    config.alpn_protocols = vec![ALPN_JOIN.to_vec()];
    quic(config)
}

/// Configuration of a paired node: the gateway's authority, and this node's certificate.
pub fn paired(
    identity: &NodeIdentity,
    clock: &Arc<dyn Clock>,
) -> Result<quinn::ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(identity.authority.clone()))?;
    let certificate = CertificateDer::from(identity.certificate.clone());
    let key = PrivateKeyDer::from(identity.key.pkcs8_der()).clone_key();
    let mut config =
        ClientConfig::builder_with_details(crypto_provider(), Arc::new(TlsTime(clock.clone())))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![ALPN_NODE.to_vec()];
    quic(config)
}

fn quic(mut config: ClientConfig) -> Result<quinn::ClientConfig, TlsError> {
    // A resumed session would not show a certificate again, and revocation must see one.
    config.resumption = rustls::client::Resumption::disabled();
    let crypto = QuicClientConfig::try_from(config).map_err(|_| TlsError::NoQuicSuite)?;
    let mut config = quinn::ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(super::transport_config()));
    Ok(config)
}

/// Accepts a server whose chain holds a trusted authority, and whose leaf that authority
/// signed for the gateway's logical name.
#[derive(Debug)]
struct PairingVerifier {
    trust: Trust,
    provider: Arc<CryptoProvider>,
}

impl PairingVerifier {
    fn of_authority(
        &self,
        chain: &[CertificateDer<'_>],
    ) -> Result<Arc<WebPkiServerVerifier>, rustls::Error> {
        let authority = match self.trust {
            Trust::Shown => chain.first(),
            Trust::Pinned(pin) => chain.iter().find(|certificate| {
                public_key_of(certificate).is_ok_and(|(key, _)| sha256(&key) == pin)
            }),
        };
        let Some(authority) = authority else {
            return Err(CertificateError::UnknownIssuer.into());
        };
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), self.provider.clone())
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))
    }
}

impl ServerCertVerifier for PairingVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.of_authority(chain)?
            .verify_server_cert(leaf, chain, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("QUIC needs TLS 1.3".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
