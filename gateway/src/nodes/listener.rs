//! The QUIC endpoint that nodes connect to: two ALPNs on one port.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{HandshakeData, QuicServerConfig};
use quinn::{Endpoint, EndpointConfig, Incoming, ServerConfig, VarInt};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tidings_node::connection::{TlsTime, crypto_provider, transport_config};
use tidings_protocol::wire::{ALPN_JOIN, ALPN_NODE};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::authority::AuthorityError;
use super::client_certificates::ExpiredToo;
use super::context::NodeContext;
use super::{pairing, session};

/// How long a handshake may take.
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);
/// Handshakes at once; beyond that an address must first prove that it can be reached.
const MAX_HANDSHAKES: usize = 64;
/// Unread bytes that a stranger may make the gateway keep.
const WINDOW_BEFORE_WELCOME: u32 = 64 * 1024;

/// Whether the server's leaf is due for renewal is looked at this often.
const LEAF_ROUND: Duration = Duration::from_hours(1);
/// Two thirds of the 90 days of a server's leaf.
const LEAF_RENEWAL_MS: i64 = 60 * 24 * 60 * 60 * 1_000;

/// Why the endpoint cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address cannot be bound: another process has it, or it is not this machine's.
    #[error("cannot listen on UDP {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The authority cannot provide a certificate or a kept key.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// TLS cannot be set up: a fault of the build.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

/// Opens the endpoint.
pub fn listen(context: &NodeContext, address: SocketAddr) -> Result<Endpoint, ListenError> {
    let server = server_config(context)?;
    let reset_key: [u8; 64] = context.authority.kept_secret("quic-reset.key")?;
    let connection_ids = u64::from_be_bytes(context.authority.kept_secret("quic-ids.key")?);
    let reset_key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &reset_key);
    let mut config = EndpointConfig::new(Arc::new(reset_key));
    // With both keys kept, a restarted gateway can tell the peers of its former self, at
    // their next packet, that their connections are gone.
    config.cid_generator(move || {
        Box::new(quinn_proto::HashedConnectionIdGenerator::from_key(
            connection_ids,
        ))
    });
    config.min_reset_interval(Duration::from_millis(1));
    let socket = bind(address)?;
    Endpoint::new(config, Some(server), socket, Arc::new(quinn::TokioRuntime))
        .map_err(|source| ListenError::Bind { address, source })
}

/// Binds `address`. Where the machine has no IPv6, `[::]` means every IPv4 address.
fn bind(address: SocketAddr) -> Result<std::net::UdpSocket, ListenError> {
    let bound = std::net::UdpSocket::bind(address);
    match bound {
        Err(_) if address.is_ipv6() && address.ip().is_unspecified() => {
            std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, address.port()))
        }
        bound => bound,
    }
    .map_err(|source| ListenError::Bind { address, source })
}

fn server_config(context: &NodeContext) -> Result<ServerConfig, ListenError> {
    let authority = &context.authority;
    let tls = |error: &dyn std::fmt::Display| ListenError::Tls(error.to_string());
    let leaf = authority.server_leaf(context.clock.now())?;
    // One endpoint, two ALPNs: a joining machine has no certificate yet. The node ALPN
    // refuses whoever shows none.
    let verifier = ExpiredToo::new(authority.certificate().clone()).map_err(|error| tls(&error))?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf.key));
    let mut config = rustls::ServerConfig::builder_with_details(
        crypto_provider(),
        Arc::new(TlsTime(context.clock.clone())),
    )
    .with_protocol_versions(&[&rustls::version::TLS13])
    .map_err(|error| tls(&error))?
    .with_client_cert_verifier(Arc::new(verifier))
    .with_single_cert(leaf.chain, key)
    .map_err(|error| tls(&error))?;
    config.alpn_protocols = vec![ALPN_NODE.to_vec(), ALPN_JOIN.to_vec()];
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    let crypto = QuicServerConfig::try_from(config).map_err(|error| tls(&error))?;
    let mut server = ServerConfig::with_crypto(Arc::new(crypto));
    let mut transport = transport_config();
    transport.receive_window(VarInt::from_u32(WINDOW_BEFORE_WELCOME));
    server.transport_config(Arc::new(transport));
    Ok(server)
}

/// Swaps the server's leaf when two thirds of its life are over; no connection is dropped.
pub(crate) async fn keep_leaf_fresh(endpoint: Endpoint, context: Arc<NodeContext>) {
    let mut rounds = tokio::time::interval(LEAF_ROUND);
    rounds.tick().await;
    let mut made_at = context.clock.now();
    loop {
        rounds.tick().await;
        let now = context.clock.now();
        if now.saturating_sub(made_at) < LEAF_RENEWAL_MS {
            continue;
        }
        match server_config(&context) {
            Ok(config) => {
                endpoint.set_server_config(Some(config));
                made_at = now;
                tracing::info!("the server certificate was renewed");
            }
            Err(error) => tracing::warn!(%error, "the server certificate was not renewed"),
        }
    }
}

/// Accepts connections until `stopped`, then tells every node goodbye.
pub async fn accept(
    endpoint: Endpoint,
    context: Arc<NodeContext>,
    mut stopped: watch::Receiver<bool>,
) {
    let handshakes = Arc::new(Semaphore::new(MAX_HANDSHAKES));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let incoming = tokio::select! {
            incoming = endpoint.accept() => incoming,
            _ = stopped.changed() => break,
        };
        let Some(incoming) = incoming else { break };
        let Ok(permit) = handshakes.clone().try_acquire_owned() else {
            shed(incoming);
            continue;
        };
        let context = context.clone();
        let stopped = stopped.clone();
        connections.spawn(async move {
            let Some((connection, alpn)) = handshake(incoming).await else {
                return;
            };
            drop(permit);
            match alpn.as_slice() {
                ALPN_NODE => session::serve(&context, connection, stopped).await,
                _ => pairing::serve(&context, connection).await,
            }
        });
    }
    endpoint.set_server_config(None);
    while connections.join_next().await.is_some() {}
    endpoint.close(0u32.into(), b"the gateway stops");
    endpoint.wait_idle().await;
}

/// Under load: an address that has not proved itself must; one that has waits its turn.
fn shed(incoming: Incoming) {
    if incoming.remote_address_validated() {
        incoming.refuse();
    } else if let Err(error) = incoming.retry() {
        error.into_incoming().refuse();
    }
}

async fn handshake(incoming: Incoming) -> Option<(quinn::Connection, Vec<u8>)> {
    let remote = incoming.remote_address();
    let connecting = incoming.accept().ok()?;
    match tokio::time::timeout(HANDSHAKE_DEADLINE, connecting).await {
        Ok(Ok(connection)) => {
            let data = connection
                .handshake_data()?
                .downcast::<HandshakeData>()
                .ok()?;
            Some((connection, data.protocol?))
        }
        Ok(Err(error)) => {
            tracing::debug!(%remote, %error, "handshake failed");
            None
        }
        Err(_) => {
            tracing::debug!(%remote, "handshake took too long");
            None
        }
    }
}
