//! The QUIC endpoint that nodes connect to: two ALPNs on one port.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{HandshakeData, QuicServerConfig};
use quinn::{Connection, Endpoint, EndpointConfig, Incoming, ServerConfig, VarInt};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tidings_node::connection::{TlsTime, crypto_provider, transport_config};
use tidings_protocol::session_api::CertificateState;
use tidings_protocol::wire::{ALPN_JOIN, ALPN_NODE};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::authority::{AuthorityError, life_of};
use super::client_certificates::ExpiredToo;
use super::context::NodeContext;
use super::expiry::{Life, Watchman};
use super::gate::{Gate, Lane, Place};
use super::relay::SessionInterface;
use super::{pairing, session};

/// How long a handshake may take.
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);
/// How long connections may take to end with the gateway.
const FAREWELL: Duration = Duration::from_secs(2);
/// Handshakes that wait to be looked at, and what they may have sent by then.
const MAX_INCOMING: usize = 1_024;
const MAX_INCOMING_BYTES: u64 = 16 * 1024;
const MAX_ALL_INCOMING_BYTES: u64 = 4 * 1024 * 1024;
/// Unread bytes that a stranger may make the gateway keep.
const WINDOW_BEFORE_WELCOME: u32 = 64 * 1024;

/// Whether a certificate is due for renewal is looked at this often.
const ROUND: Duration = Duration::from_hours(1);

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
    // Without a pause between two: thousands of nodes ask in one moment, and one that gets no
    // answer asks again only seconds later. A reset is smaller than what asked for it, so
    // nobody is flooded by way of this gateway.
    config.min_reset_interval(Duration::ZERO);
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
    let life = leaf.chain.first().map(|leaf| life_of(leaf));
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
    transport
        .receive_window(VarInt::from_u32(WINDOW_BEFORE_WELCOME))
        .send_window(u64::from(WINDOW_BEFORE_WELCOME));
    // A node opens none: what it never may send, it need not be given room for.
    transport.max_concurrent_uni_streams(VarInt::from_u32(0));
    server
        .transport_config(Arc::new(transport))
        .max_incoming(MAX_INCOMING)
        .incoming_buffer_size(MAX_INCOMING_BYTES)
        .incoming_buffer_size_total(MAX_ALL_INCOMING_BYTES);
    if let Some(life) = life {
        context.set_server_leaf(life);
    }
    Ok(server)
}

/// Looks after certificates: the server's leaf is renewed in time, and what is not renewed in
/// time is said in the log.
pub(crate) async fn keep_certificates(endpoint: Endpoint, context: Arc<NodeContext>) {
    let mut rounds = tokio::time::interval(ROUND);
    let mut watchman = Watchman::default();
    loop {
        rounds.tick().await;
        renew_leaf_if_due(&endpoint, &context);
        watchman.round(&context).await;
    }
}

/// Swaps the server's leaf when two thirds of its life are over; no connection is dropped.
pub fn renew_leaf_if_due(endpoint: &Endpoint, context: &NodeContext) {
    let now = context.clock.now();
    let is_good = |life: &Life| {
        CertificateState::at(life.not_before, life.not_after, now) == CertificateState::Valid
    };
    if context.server_leaf().as_ref().is_some_and(is_good) {
        return;
    }
    match server_config(context) {
        Ok(config) => {
            endpoint.set_server_config(Some(config));
            tracing::info!("the server certificate was renewed");
        }
        Err(error) => tracing::warn!(%error, "the server certificate was not renewed"),
    }
}

/// Accepts connections until `stopped`, then tells every node goodbye.
pub async fn accept(
    endpoint: Endpoint,
    context: Arc<NodeContext>,
    sessions: Arc<dyn SessionInterface>,
    mut stopped: watch::Receiver<bool>,
) {
    let gate = Gate::new(context.clock.clone());
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let incoming = tokio::select! {
            incoming = endpoint.accept() => incoming,
            _ = stopped.changed() => break,
        };
        let Some(incoming) = incoming else { break };
        let Some(place) = place_for(&gate, &incoming) else {
            shed(incoming);
            continue;
        };
        let (context, sessions, gate) = (context.clone(), sessions.clone(), gate.clone());
        let mut stopped = stopped.clone();
        connections.spawn(async move {
            let shaken = tokio::select! {
                shaken = handshake(incoming) => shaken,
                _ = stopped.changed() => None,
            };
            let Some((connection, alpn)) = shaken else {
                return;
            };
            if alpn == ALPN_NODE {
                return session::serve(&context, &sessions, (connection, place), stopped).await;
            }
            // It has a lane of its own, and may stay in it for minutes.
            drop(place);
            tokio::select! {
                () = serve_join(&context, &gate, connection.clone()) => {}
                // A machine that waits for its approval asks again.
                _ = stopped.changed() => connection.close(0u32.into(), b"the gateway stops"),
            }
        });
    }
    endpoint.set_server_config(None);
    while connections.join_next().await.is_some() {}
    endpoint.close(0u32.into(), b"the gateway stops");
    // A connection takes as long to end as its packets took at the worst: minutes, after a
    // standstill. By then everybody has been told.
    let _ = tokio::time::timeout(FAREWELL, endpoint.wait_idle()).await;
}

/// A stranger's place, for whoever begins a handshake.
fn place_for(gate: &Gate, incoming: &Incoming) -> Option<Place> {
    let lane = if incoming.remote_address_validated() {
        Lane::Proven
    } else {
        Lane::Unproven
    };
    gate.enter(lane, incoming.remote_address().ip())
}

/// Serves a machine that wants to join, unless its address tries too often.
async fn serve_join(context: &NodeContext, gate: &Gate, connection: Connection) {
    match gate.enter(Lane::Join, connection.remote_address().ip()) {
        Some(place) => pairing::serve(context, connection, place).await,
        None => pairing::turn_away_for_now(connection).await,
    }
}

/// Where there is no place: an address that has not proved itself must; one that has waits its turn.
fn shed(incoming: Incoming) {
    if incoming.remote_address_validated() {
        incoming.refuse();
    } else if let Err(error) = incoming.retry() {
        error.into_incoming().refuse();
    }
}

async fn handshake(incoming: Incoming) -> Option<(Connection, Vec<u8>)> {
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
