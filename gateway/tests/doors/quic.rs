//! QUIC without manners: a client that trusts anybody, and a server with an authority of its
//! own. What an attacker has.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{Connection, Endpoint, RecvStream, SendStream};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};
use tidings_gateway::nodes::authority::Authority;
use tidings_node::clock::{Clock, SystemClock};
use tidings_node::connection::crypto_provider;
use tidings_node::framed;
use tidings_protocol::identity::GATEWAY_SERVER_NAME;
use tidings_protocol::wire::{ALPN_JOIN, MAX_FRAME_BYTES, Message};
use tokio::time::timeout;

use crate::served::PATIENCE;

/// One stream over a connection of the join ALPN.
pub(crate) struct Line {
    pub(crate) send: SendStream,
    pub(crate) receive: RecvStream,
    connection: Connection,
    _endpoint: Option<Endpoint>,
}

impl Line {
    /// Dials a gateway as a machine that wants to join, whoever that gateway is.
    pub(crate) async fn dial(gateway: SocketAddr) -> Self {
        let mut tls = ClientConfig::builder_with_provider(crypto_provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody))
            .with_no_client_auth();
        tls.alpn_protocols = vec![ALPN_JOIN.to_vec()];
        let tls = QuicClientConfig::try_from(tls).expect("QUIC");
        let config = quinn::ClientConfig::new(Arc::new(tls));
        let endpoint = Endpoint::client("127.0.0.1:0".parse().expect("address")).expect("socket");
        let connecting = endpoint.connect_with(config, gateway, GATEWAY_SERVER_NAME);
        let connection = connecting.expect("dials").await.expect("connected");
        let (send, receive) = connection.open_bi().await.expect("a stream");
        Self {
            send,
            receive,
            connection,
            _endpoint: Some(endpoint),
        }
    }

    /// Takes the next machine that dials `endpoint`.
    pub(crate) async fn accept(endpoint: &Endpoint) -> Self {
        let incoming = endpoint.accept().await.expect("somebody dials");
        let connection = incoming.await.expect("connected");
        let (send, receive) = connection.accept_bi().await.expect("a stream");
        Self {
            send,
            receive,
            connection,
            _endpoint: None,
        }
    }

    /// The certificate that the other side has shown.
    pub(crate) fn leaf(&self) -> Vec<u8> {
        let chain = self.connection.peer_identity().expect("a server");
        let chain = chain.downcast::<Vec<CertificateDer<'static>>>();
        chain.expect("certificates")[0].to_vec()
    }

    pub(crate) async fn say(&mut self, message: &Message) {
        framed::write(&mut self.send, message).await.expect("said");
    }

    pub(crate) async fn hear(&mut self) -> Message {
        let read = framed::read(&mut self.receive, MAX_FRAME_BYTES);
        let read = timeout(PATIENCE, read).await.expect("in time");
        read.expect("a frame").expect("a message")
    }
}

/// A server whose authority, kept in `dir`, is nobody's gateway.
pub(crate) fn impostor(dir: &Path) -> Endpoint {
    let now = SystemClock::new().now();
    let authority = Authority::load_or_create(dir, now).expect("authority");
    let leaf = authority.server_leaf(now).expect("leaf");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf.key));
    let mut tls = ServerConfig::builder_with_provider(crypto_provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(leaf.chain, key)
        .expect("certificate");
    tls.alpn_protocols = vec![ALPN_JOIN.to_vec()];
    let tls = QuicServerConfig::try_from(tls).expect("QUIC");
    let config = quinn::ServerConfig::with_crypto(Arc::new(tls));
    Endpoint::server(config, "127.0.0.1:0".parse().expect("address")).expect("socket")
}

/// Verifies nothing.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}
