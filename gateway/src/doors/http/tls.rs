//! TLS with a certificate of the operator's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tidings_node::cli::format::utc;
use tidings_node::connection::{crypto_provider, validity_of};
use tidings_node::private_files::{self, FileError};
use tidings_protocol::EpochMs;
use tidings_protocol::session_api::{Finding, Severity};
use tokio_rustls::TlsAcceptor;

use crate::config::{Http, Switch};

/// A chain of certificates has a few kilobytes.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// Certificates of public authorities live for weeks, and are renewed by a machine.
const EXPIRES_SOON_MS: EpochMs = 7 * 24 * 60 * 60 * 1_000;

/// Why the door has no TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file holds something else.
    #[error("{path}: {reason}")]
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// What the door shows, and until when.
#[derive(Clone)]
pub(super) struct Shown {
    pub(super) acceptor: TlsAcceptor,
    pub(super) not_after: EpochMs,
}

/// Reads what the configuration names; `None` where it names nothing.
pub(super) fn read(http: &Http) -> Result<Option<Shown>, TlsError> {
    let (Switch::On(certificate), Switch::On(key)) = (&http.tls_cert, &http.tls_key) else {
        return Ok(None);
    };
    let chain = read_chain(certificate)?;
    let not_after = chain
        .first()
        .and_then(|leaf| validity_of(leaf).ok())
        .map(|(_, not_after)| not_after)
        .ok_or_else(|| wrong(certificate, "there is no certificate in it"))?;
    let key_pem = private_files::read(key, MAX_FILE_BYTES)?;
    let private = PrivateKeyDer::from_pem_slice(&key_pem)
        .map_err(|_| wrong(key, "there is no private key in it"))?;
    let mut config = rustls::ServerConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(certificate, error))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| wrong(key, error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(Shown {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        not_after,
    }))
}

/// What is wrong with what the configuration names. Reads the files.
pub(in crate::doors) fn findings(http: &Http, now: EpochMs) -> Vec<Finding> {
    let (severity, what) = match read(http) {
        Err(error) => (Severity::Error, error.to_string()),
        Ok(Some(shown)) if now >= shown.not_after => {
            let what = format!(
                "the certificate of the HTTP door has expired on {} UTC",
                utc(shown.not_after)
            );
            (Severity::Error, what)
        }
        Ok(Some(shown)) if shown.not_after - now < EXPIRES_SOON_MS => {
            let what = format!(
                "the certificate of the HTTP door expires on {} UTC",
                utc(shown.not_after)
            );
            (Severity::Warning, what)
        }
        Ok(_) => return Vec::new(),
    };
    vec![Finding {
        severity,
        what,
        hint: "put new files where http.tlsCert and http.tlsKey say, then send the gateway SIGHUP"
            .to_owned(),
    }]
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = private_files::read(path, MAX_FILE_BYTES)?;
    CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|_| wrong(path, "it is no PEM file of certificates"))
}

fn wrong(path: &Path, reason: impl std::fmt::Display) -> TlsError {
    TlsError::Content {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}
