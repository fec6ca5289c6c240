//! TLS to a model's server: verified by the authorities that this machine trusts, or by those
//! of a file where one is configured.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tidings_node::connection::crypto_provider;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::endpoint::Address;
use super::error::ModelError;
use super::http::unreachable;
use crate::sessions::files::Files;

/// A larger file holds no authorities.
const MAX_CA_BYTES: u64 = 1024 * 1024;

/// TLS on a connection. `ca_file` names the authorities that are trusted, in the place of the
/// machine's.
pub(super) async fn encrypt(
    address: &Address,
    ca_file: Option<&Path>,
    stream: TcpStream,
) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static, ModelError> {
    let ca_file = ca_file.map(Path::to_owned);
    let config = tokio::task::spawn_blocking(move || client_config(ca_file)).await;
    let config = config.map_err(|error| unreachable(address, &error))??;
    let name =
        ServerName::try_from(address.host.clone()).map_err(|error| unreachable(address, &error))?;
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    connecting.await.map_err(|error| failed(address, &error))
}

fn client_config(ca_file: Option<PathBuf>) -> Result<ClientConfig, ModelError> {
    let roots = match ca_file {
        Some(path) => of_file(&path).map_err(|reason| ModelError::NoAuthority {
            path: path.clone(),
            reason,
        })?,
        None => of_machine(),
    };
    let config = ClientConfig::builder_with_provider(crypto_provider())
        .with_safe_default_protocol_versions()
        .map_err(|_| ModelError::Strange("no version of TLS"))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn of_machine() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn of_file(path: &Path) -> Result<RootCertStore, String> {
    let read = Files::default().read(path, MAX_CA_BYTES);
    let (pem, _) = read
        .map_err(|error| error.source.to_string())?
        .ok_or("there is no such file")?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("it holds no certificate".to_owned());
    }
    Ok(roots)
}

fn failed(address: &Address, error: &std::io::Error) -> ModelError {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(wrong)) = inner else {
        return unreachable(address, error);
    };
    ModelError::Untrusted {
        host: address.host.clone(),
        port: address.port,
        reason: match wrong {
            // One of the same name, and with another key, is another authority.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "no authority that is trusted made it".to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "it is for another name".to_owned()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "it has expired".to_owned()
            }
            other => other.to_string(),
        },
    }
}
