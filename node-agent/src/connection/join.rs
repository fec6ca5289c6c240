//! Pairing by join link: verify the gateway by its pin, then send the code and a signing
//! request, and keep the certificate that comes back.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quinn::{Connection, ConnectionError, Endpoint};
use tidings_protocol::digest::sha256;
use tidings_protocol::identity::GATEWAY_SERVER_NAME;
use tidings_protocol::wire::Message;
use tidings_protocol::wire::messages::{Join, Joined, Refused};
use tidings_protocol::{EpochMs, JoinLink, NodeId};

use super::identity::{IdentityFileError, NodeIdentity, NodeKey, signing_request};
use super::tls::{TlsError, Trust, pairing, public_key_of};
use super::transport::CONTROL_FRAME_BYTES;
use super::trouble::{ClockTrouble, clock_trouble, is_unknown_authority};
use crate::clock::Clock;
use crate::framed::{self, StreamError};

/// How long an address may take to answer: several round trips of a slow path.
const CONNECT_DEADLINE: Duration = Duration::from_secs(6);
/// How long the gateway may take to sign.
pub(super) const JOIN_DEADLINE: Duration = Duration::from_secs(10);

/// Why pairing failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The gateway's name cannot be resolved.
    #[error("cannot resolve {address}: {source}")]
    Resolve {
        /// The address of the link.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// No gateway answers there: trying again may help.
    #[error("no gateway answers at {address}: {reason}")]
    Unreachable {
        /// The address tried.
        address: String,
        /// Why.
        reason: String,
    },
    /// Somebody else answers there. Nothing was sent to them.
    #[error("what answers at {address} is not the gateway of this link: its key does not match")]
    WrongGateway {
        /// The address tried.
        address: String,
    },
    /// The two machines do not agree on the time.
    #[error(transparent)]
    Clock(ClockTrouble),
    /// The gateway said no.
    #[error("the gateway refused: {}", .0.reason)]
    Refused(Refused),
    /// The gateway's answer is no good.
    #[error("the gateway's answer cannot be used: {0}")]
    Answer(&'static str),
    /// This directory belongs to a paired node already.
    #[error("this directory is already paired, as {host_name} ({node_id})")]
    AlreadyPaired {
        /// Its name.
        host_name: tidings_protocol::HostName,
        /// Its id.
        node_id: NodeId,
    },
    /// The stream broke: trying again may help.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The identity cannot be stored.
    #[error(transparent)]
    Identity(#[from] IdentityFileError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl From<NodeIdentity> for JoinError {
    /// A directory that holds this identity does not join again.
    fn from(identity: NodeIdentity) -> Self {
        Self::AlreadyPaired {
            host_name: identity.host_name,
            node_id: identity.node_id,
        }
    }
}

/// Pairs with the gateway of `link` and stores the identity in `dir`. A directory that has joined
/// by this link already gets the same answer.
pub async fn join(
    link: &JoinLink,
    machine_name: &str,
    dir: &Path,
    clock: &Arc<dyn Clock>,
) -> Result<NodeIdentity, JoinError> {
    if let Ok(identity) = NodeIdentity::load(dir) {
        return if identity.joined_by == Some(link.fingerprint()) {
            Ok(identity)
        } else {
            Err(identity.into())
        };
    }
    let trust = Trust::Pinned(link.ca_pin);
    let (endpoint, connection) = connect(&link.address, trust, clock).await?;
    // The pin has been verified: only now is there a key, and only now is anything sent.
    let key = NodeKey::load_or_create(dir)?;
    let request = Message::Join(Join {
        code: *link.code.as_bytes(),
        signing_request: signing_request(&key)?,
        machine_name: machine_name.to_owned(),
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    let answer = tokio::time::timeout(JOIN_DEADLINE, ask(&connection, &request))
        .await
        .map_err(|_| JoinError::Answer("none came in time"))??;
    connection.close(0u32.into(), b"done");
    endpoint.wait_idle().await;
    let joined = match answer {
        Message::Joined(joined) => joined,
        Message::Refused(refused) => return Err(JoinError::Refused(refused)),
        _ => return Err(JoinError::Answer("it is of another kind")),
    };
    let identity = NodeIdentity {
        joined_by: Some(link.fingerprint()),
        ..identity_of(joined, key, &link.ca_pin, link.address.clone())?
    };
    identity.save(dir)?;
    Ok(identity)
}

/// The identity that an answer makes. It must be about our key and from the authority that
/// the gateway was known by.
pub(super) fn identity_of(
    joined: Joined,
    key: NodeKey,
    authority_pin: &[u8; 32],
    gateway: String,
) -> Result<NodeIdentity, JoinError> {
    let (authority_key, _) = public_key_of(&joined.authority)?;
    if sha256(&authority_key) != *authority_pin {
        return Err(JoinError::Answer("its authority is not the pinned one"));
    }
    let (public_key, _) = public_key_of(&joined.certificate)?;
    let certified = NodeId::of_public_key(&public_key);
    if certified != key.node_id() || joined.node_id != certified {
        return Err(JoinError::Answer("its certificate is for another key"));
    }
    Ok(NodeIdentity {
        key,
        certificate: joined.certificate,
        authority: joined.authority,
        node_id: joined.node_id,
        host_name: joined.host_name,
        gateway,
        joined_by: None,
    })
}

/// Connects to the gateway at `address`, `host:port`, to become one of its nodes.
pub(super) async fn connect(
    address: &str,
    trust: Trust,
    clock: &Arc<dyn Clock>,
) -> Result<(Endpoint, Connection), JoinError> {
    let config = pairing(trust, clock)?;
    let addresses = resolve(address)
        .await
        .map_err(|source| JoinError::Resolve {
            address: address.to_owned(),
            source,
        })?;
    let mut last = unreachable(address, &"the name has no address");
    for to in addresses {
        let endpoint = client_endpoint(to).map_err(|error| unreachable(address, &error))?;
        let attempt = endpoint
            .connect_with(config.clone(), to, GATEWAY_SERVER_NAME)
            .map_err(|error| unreachable(address, &error))?;
        match tokio::time::timeout(CONNECT_DEADLINE, attempt).await {
            Ok(Ok(connection)) => return Ok((endpoint, connection)),
            Ok(Err(error)) => last = connect_error(address, &error, clock.now()),
            Err(_) => {
                last = unreachable(
                    address,
                    &"no answer in 6 s; is the gateway running, and is UDP let through to that port?",
                );
            }
        }
    }
    Err(last)
}

async fn ask(connection: &Connection, request: &Message) -> Result<Message, JoinError> {
    let (mut send, mut receive) = connection
        .open_bi()
        .await
        .map_err(|error| JoinError::Stream(StreamError::Io(error.into())))?;
    framed::write(&mut send, request).await?;
    framed::read(&mut receive, CONTROL_FRAME_BYTES)
        .await?
        .ok_or(JoinError::Answer("the connection ended without one"))
}

fn connect_error(address: &str, error: &ConnectionError, now: EpochMs) -> JoinError {
    if is_unknown_authority(error) {
        return JoinError::WrongGateway {
            address: address.to_owned(),
        };
    }
    match clock_trouble(error, now) {
        Some(trouble) => JoinError::Clock(trouble),
        None => unreachable(address, error),
    }
}

fn unreachable(address: &str, reason: &dyn std::fmt::Display) -> JoinError {
    JoinError::Unreachable {
        address: address.to_owned(),
        reason: reason.to_string(),
    }
}

/// Every address of `host:port`.
pub(super) async fn resolve(address: &str) -> std::io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host(address).await?.collect())
}

/// An endpoint that can reach `address`.
pub(super) fn client_endpoint(address: SocketAddr) -> std::io::Result<Endpoint> {
    let any: SocketAddr = if address.is_ipv4() {
        (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
    } else {
        (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
    };
    Endpoint::client(any)
}
