//! The gateway's own certificate authority, and the keys that survive a restart.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName,
    DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PublicKey, PublicKeyData, SerialNumber, SubjectPublicKeyInfo,
};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::pki_types::{CertificateDer, CertificateSigningRequestDer};
use tidings_node::connection::{public_key_of, validity_of};
use tidings_node::private_files::{self, FileError};
use tidings_protocol::digest::{hex, sha256};
use tidings_protocol::identity::GATEWAY_SERVER_NAME;
use tidings_protocol::{EpochMs, NodeId};
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::expiry::Life;
use crate::state::NewCertificate;

/// The authority's folder in the state directory.
const FOLDER: &str = "authority";
/// The authority's key, in its folder.
const KEY_FILE: &str = "ca.key";
const DAY_SECONDS: i64 = 24 * 60 * 60;
/// The authority outlives every leaf by far.
const AUTHORITY_DAYS: i64 = 3_650;
/// The server's leaf.
const SERVER_DAYS: i64 = 90;
/// A node's leaf.
const NODE_DAYS: i64 = 30;
/// Leaves begin a day back: clocks differ.
const BACKDATED_DAYS: i64 = 1;
/// Keys, certificates and seeds are a few hundred bytes each.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// The largest signing request: a P-256 one has about 250 bytes.
pub const MAX_SIGNING_REQUEST_BYTES: usize = 8 * 1024;

/// The certificate authority of one gateway.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    dir: PathBuf,
}

/// A node's certificate, fresh from the authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// The node whose key it certifies.
    pub node_id: NodeId,
    /// The certificate.
    pub certificate: NewCertificate,
}

/// What the server shows: its leaf with the authority behind it, and the leaf's key.
pub struct ServerLeaf {
    /// The leaf, then the authority.
    pub chain: Vec<CertificateDer<'static>>,
    /// The leaf's key, PKCS #8.
    pub key: Vec<u8>,
}

/// Why the authority cannot do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file is not what was written.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The authority's certificate is there and its key is not: put the key back.
    #[error("{path} is missing: it is the key of the certificate beside it")]
    KeyMissing {
        /// Where the key should be.
        path: PathBuf,
    },
    /// There is no authority, and nodes trust the one that there was.
    #[error("{path} is missing, and nodes in the database trust the authority that it held")]
    Gone {
        /// Where it should be.
        path: PathBuf,
    },
    /// The signing request is no good: the asker's fault.
    #[error("the signing request cannot be used: {0}")]
    SigningRequest(&'static str),
    /// Signing failed: a fault of ours.
    #[error("signing failed: {0}")]
    Signing(#[from] rcgen::Error),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    NoRandom,
}

impl Authority {
    /// Where the authority of `state_dir` is kept.
    pub fn folder(state_dir: &Path) -> PathBuf {
        state_dir.join(FOLDER)
    }

    /// True where `state_dir` has an authority, as every directory that a gateway was run on.
    pub fn exists(state_dir: &Path) -> bool {
        Self::folder(state_dir).join(KEY_FILE).exists()
    }

    /// The authority of `state_dir`, made on first use.
    pub fn load_or_create(state_dir: &Path, now: EpochMs) -> Result<Self, AuthorityError> {
        let dir = Self::folder(state_dir);
        private_files::create_dir(&dir)?;
        let key_file = dir.join(KEY_FILE);
        let certificate_file = dir.join("ca.crt");
        let key = match private_files::read(&key_file, MAX_FILE_BYTES) {
            Ok(pem) => parse_key(&key_file, pem)?,
            // A new authority would lock out every node that knows the old one.
            Err(error) if error.is_not_found() && certificate_file.exists() => {
                return Err(AuthorityError::KeyMissing { path: key_file });
            }
            Err(error) if error.is_not_found() => {
                let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
                private_files::replace(&key_file, key.serialize_pem().as_bytes())?;
                key
            }
            Err(error) => return Err(error.into()),
        };
        match private_files::read(&certificate_file, MAX_FILE_BYTES) {
            Ok(der) => Self::of(key, CertificateDer::from(der), dir),
            // Nodes know the authority by its key: a certificate can be made again.
            Err(error) if error.is_not_found() => {
                let certificate = authority_params(now)?.self_signed(&key)?.der().clone();
                private_files::replace(&certificate_file, &certificate)?;
                Self::of(key, certificate, dir)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn of(
        key: KeyPair,
        certificate: CertificateDer<'static>,
        dir: PathBuf,
    ) -> Result<Self, AuthorityError> {
        let issuer = Issuer::from_ca_cert_der(&certificate, key).map_err(|error| {
            AuthorityError::Damaged {
                path: dir.join("ca.crt"),
                reason: error.to_string(),
            }
        })?;
        Ok(Self {
            issuer,
            certificate,
            dir,
        })
    }

    /// The authority's own certificate.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The life of the authority's own certificate.
    pub(super) fn life(&self) -> Life {
        life_of(&self.certificate)
    }

    /// SHA-256 of the authority's public key: the pin of join links.
    pub fn pin(&self) -> [u8; 32] {
        sha256(&self.issuer.key().subject_public_key_info())
    }

    /// A fresh server leaf: serverAuth, one fixed logical name.
    pub fn server_leaf(&self, now: EpochMs) -> Result<ServerLeaf, AuthorityError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = leaf_params(GATEWAY_SERVER_NAME, SERVER_DAYS, now)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let leaf = params.signed_by(&key, &self.issuer)?;
        Ok(ServerLeaf {
            chain: vec![leaf.der().clone(), self.certificate.clone()],
            key: key.serialize_der(),
        })
    }

    /// Signs a node's certificate. Of the request only the public key is taken, after its
    /// proof of possession: subject, extensions and validity are the gateway's.
    pub fn sign_node(&self, request: &[u8], now: EpochMs) -> Result<Issued, AuthorityError> {
        self.certify(&key_of(request)?, now)
    }

    /// Signs another certificate for a key that has proved its possession before: of this
    /// certificate only the public key is taken.
    pub fn sign_again(&self, certificate: &[u8], now: EpochMs) -> Result<Issued, AuthorityError> {
        let unreadable = || AuthorityError::SigningRequest("its certificate cannot be read");
        let (public_key, _) = public_key_of(certificate).map_err(|_| unreadable())?;
        let public_key = SubjectPublicKeyInfo::from_der(&public_key).map_err(|_| unreadable())?;
        self.certify(&public_key, now)
    }

    fn certify(
        &self,
        public_key: &impl PublicKeyData,
        now: EpochMs,
    ) -> Result<Issued, AuthorityError> {
        let node_id = NodeId::of_public_key(&public_key.subject_public_key_info());
        let mut params = leaf_params(node_id.as_str(), NODE_DAYS, now)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let (not_before, not_after) = (params.not_before, params.not_after);
        let certificate = params.signed_by(public_key, &self.issuer)?;
        Ok(Issued {
            node_id,
            certificate: NewCertificate {
                // As whoever sees the certificate reads it: a revoked one is known by it.
                serial: serial_of(certificate.der()).unwrap_or_default(),
                der: certificate.der().to_vec(),
                not_before: not_before.unix_timestamp().saturating_mul(1_000),
                not_after: not_after.unix_timestamp().saturating_mul(1_000),
            },
        })
    }

    /// A secret of `N` bytes that survives a restart, made on first use.
    pub fn kept_secret<const N: usize>(&self, name: &str) -> Result<[u8; N], AuthorityError> {
        let path = self.dir.join(name);
        match private_files::read(&path, MAX_FILE_BYTES) {
            Ok(bytes) => bytes.try_into().map_err(|_| AuthorityError::Damaged {
                path,
                reason: format!("it has not {N} bytes"),
            }),
            Err(error) if error.is_not_found() => {
                let secret = random()?;
                private_files::replace(&path, &secret)?;
                Ok(secret)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

/// Who asks with this signing request, and the key it proves to hold
/// (SubjectPublicKeyInfo, DER).
pub(super) fn asker(request: &[u8]) -> Result<(NodeId, Vec<u8>), AuthorityError> {
    let key = key_of(request)?.subject_public_key_info();
    Ok((NodeId::of_public_key(&key), key))
}

/// The public key of a signing request, after its proof of possession.
fn key_of(request: &[u8]) -> Result<PublicKey, AuthorityError> {
    if request.len() > MAX_SIGNING_REQUEST_BYTES {
        return Err(AuthorityError::SigningRequest("it is too large"));
    }
    let request = CertificateSigningRequestDer::from(request);
    // Reading it verifies the signature: whoever asks holds the private key.
    let public_key = CertificateSigningRequestParams::from_der(&request)
        .map_err(|_| {
            AuthorityError::SigningRequest("it is malformed, or its proof of possession is wrong")
        })?
        .public_key;
    if *public_key.algorithm() != PKCS_ECDSA_P256_SHA256 {
        return Err(AuthorityError::SigningRequest("its key is not P-256"));
    }
    Ok(public_key)
}

/// The life of a certificate of ours.
pub(super) fn life_of(certificate: &[u8]) -> Life {
    let (not_before, not_after) = validity_of(certificate).unwrap_or_default();
    Life {
        serial: serial_of(certificate).unwrap_or_default(),
        not_before,
        not_after,
    }
}

/// `N` random bytes.
pub fn random<const N: usize>() -> Result<[u8; N], AuthorityError> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| AuthorityError::NoRandom)?;
    Ok(bytes)
}

/// A certificate's serial number, lower-case hex.
pub(super) fn serial_of(certificate: &[u8]) -> Option<String> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    // As rcgen writes it: without the zero that keeps a number positive.
    let bytes = parsed.raw_serial();
    let bytes = bytes.strip_prefix(&[0]).unwrap_or(bytes);
    Some(hex(bytes))
}

/// The id of the node whose certificate this is.
pub fn node_of(certificate: &[u8]) -> Option<NodeId> {
    let (public_key, _) = public_key_of(certificate).ok()?;
    Some(NodeId::of_public_key(&public_key))
}

fn parse_key(path: &Path, pem: Vec<u8>) -> Result<KeyPair, AuthorityError> {
    let damaged = |reason: String| AuthorityError::Damaged {
        path: path.to_owned(),
        reason,
    };
    let pem = String::from_utf8(pem).map_err(|_| damaged("it is no text".to_owned()))?;
    KeyPair::from_pem(&pem).map_err(|error| damaged(error.to_string()))
}

fn authority_params(now: EpochMs) -> Result<CertificateParams, AuthorityError> {
    let mut params = leaf_params("Tidings gateway authority", AUTHORITY_DAYS, now)?;
    params.subject_alt_names = Vec::new();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

/// What every certificate here has in common: its name, its validity, a random serial.
fn leaf_params(name: &str, days: i64, now: EpochMs) -> Result<CertificateParams, AuthorityError> {
    let seconds = now / 1_000;
    let at = |days: i64| {
        OffsetDateTime::from_unix_timestamp(seconds + days * DAY_SECONDS)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH)
    };
    let names = if name.contains(' ') {
        vec![]
    } else {
        vec![name.to_owned()]
    };
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = at(-BACKDATED_DAYS);
    params.not_after = at(days);
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    let mut serial = random::<16>()?;
    // A serial number is positive, and one without a zero in front has one form only.
    serial[0] = (serial[0] & 0x7f) | 0x40;
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    Ok(params)
}

#[cfg(test)]
mod tests {
    use rcgen::{KeyPair, PKCS_ED25519, SanType};

    use super::*;

    const NOW: EpochMs = 1_790_000_000_000;

    fn authority() -> (tempfile::TempDir, Authority) {
        let dir = tempfile::tempdir().expect("scratch");
        let authority = Authority::load_or_create(dir.path(), NOW).expect("authority");
        (dir, authority)
    }

    #[test]
    fn an_authority_and_its_secrets_survive_a_restart() {
        let (dir, first) = authority();
        let secret: [u8; 64] = first.kept_secret("reset.key").expect("secret");
        let again = Authority::load_or_create(dir.path(), NOW + 1).expect("again");
        assert_eq!(first.pin(), again.pin());
        assert_eq!(first.certificate(), again.certificate());
        assert_eq!(again.kept_secret::<64>("reset.key").expect("kept"), secret);
        let error = again
            .kept_secret::<32>("reset.key")
            .expect_err("other size");
        assert!(
            error.to_string().contains("reset.key is damaged"),
            "{error}"
        );
    }

    #[test]
    fn a_lost_key_is_refused_and_a_lost_certificate_is_made_again_for_the_same_key() {
        let (dir, first) = authority();
        let file = |name: &str| dir.path().join("authority").join(name);
        std::fs::remove_file(file("ca.crt")).expect("lost");
        let again = Authority::load_or_create(dir.path(), NOW + 1).expect("made again");
        assert_eq!(first.pin(), again.pin());
        let certificate = std::fs::read(file("ca.crt")).expect("certificate");
        std::fs::remove_file(file("ca.key")).expect("lost");
        let error = Authority::load_or_create(dir.path(), NOW).expect_err("no new authority");
        assert!(error.to_string().contains("ca.key is missing"), "{error}");
        assert_eq!(std::fs::read(file("ca.crt")).expect("kept"), certificate);
    }

    #[test]
    fn a_certificate_is_kept_under_the_serial_number_that_is_read_from_it() {
        let (_dir, authority) = authority();
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("key");
        // One in 128 began with a zero, which no certificate shows.
        for _ in 0..1_000 {
            let issued = authority.certify(&key, NOW).expect("issued").certificate;
            assert_eq!(serial_of(&issued.der).as_deref(), Some(&*issued.serial));
            assert_eq!(issued.serial.len(), 32, "{}", issued.serial);
        }
    }

    #[test]
    fn a_hostile_signing_request_gets_its_key_certified_and_nothing_else() {
        let (_dir, authority) = authority();
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("key");
        let mut hostile =
            CertificateParams::new(vec![GATEWAY_SERVER_NAME.to_owned()]).expect("params");
        hostile.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        hostile.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        hostile.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        hostile
            .subject_alt_names
            .push(SanType::IpAddress([127, 0, 0, 1].into()));
        hostile.distinguished_name.push(DnType::CommonName, "local");
        let request = hostile.serialize_request(&key).expect("request");

        let issued = authority.sign_node(request.der(), NOW).expect("signed");

        let (_, leaf) = X509Certificate::from_der(&issued.certificate.der).expect("leaf");
        assert!(!leaf.is_ca());
        let usage = leaf
            .extended_key_usage()
            .expect("one")
            .expect("present")
            .value;
        assert!(usage.client_auth && !usage.server_auth && !usage.any);
        assert!(
            !leaf
                .key_usage()
                .expect("one")
                .expect("present")
                .value
                .key_cert_sign()
        );
        let names = leaf
            .subject_alternative_name()
            .expect("one")
            .expect("present")
            .value;
        let names: Vec<String> = names
            .general_names
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(names, [format!("DNSName({})", issued.node_id)]);
        assert_eq!(leaf.subject().to_string(), format!("CN={}", issued.node_id));
        let days = (leaf.validity().not_after.timestamp() - NOW / 1_000) / DAY_SECONDS;
        assert_eq!(days, NODE_DAYS);
        assert_eq!(node_of(&issued.certificate.der), Some(issued.node_id));
    }

    #[test]
    fn a_signing_request_without_proof_or_with_another_kind_of_key_is_refused() {
        let (_dir, authority) = authority();
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("key");
        let request = CertificateParams::default()
            .serialize_request(&key)
            .expect("request");
        let mut forged = request.der().to_vec();
        *forged.last_mut().expect("bytes") ^= 1;
        let other = KeyPair::generate_for(&PKCS_ED25519).expect("key");
        let other = CertificateParams::default()
            .serialize_request(&other)
            .expect("request");
        for bad in [&forged[..], &[], &[0x30; 9_000], other.der()] {
            let error = authority.sign_node(bad, NOW).expect_err("refused");
            assert!(
                matches!(error, AuthorityError::SigningRequest(_)),
                "{error}"
            );
        }
    }
}
