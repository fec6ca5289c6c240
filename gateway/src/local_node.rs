//! The gateway's own machine: the node `local`, served by the same agent over the same QUIC
//! connection on loopback, provisioned without anybody's help.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tidings_node::clock::Clock;
use tidings_node::connection::{
    Agent, AgentOptions, IdentityFileError, NodeIdentity, NodeKey, TlsError, signing_request,
};
use tidings_node::discover::{RootSet, SEEN_FILE};
use tidings_node::held_dir::HeldDir;
use tokio::task::JoinHandle;

use crate::nodes::NodeContext;
use crate::nodes::authority::AuthorityError;
use crate::state::StateError;

/// The embedded agent's directory in the gateway's.
const NODE_DIR: &str = "node";

/// Why the embedded agent cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalNodeError {
    /// Its key cannot be read or made.
    #[error(transparent)]
    Identity(#[from] IdentityFileError),
    /// Its certificate cannot be signed.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// It cannot be recorded.
    #[error(transparent)]
    State(#[from] StateError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Starts the embedded agent: it keeps its key over restarts and gets a fresh certificate at
/// each start.
pub(crate) async fn start(
    context: &NodeContext,
    state_dir: &HeldDir,
    listen: SocketAddr,
    roots: RootSet,
) -> Result<(Agent, JoinHandle<()>), LocalNodeError> {
    let dir = state_dir.path().join(NODE_DIR);
    let key = NodeKey::load_or_create(&dir)?;
    let issued = context
        .authority
        .sign_node(&signing_request(&key)?, context.clock.now())?;
    let certificate = issued.certificate.der.clone();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let node = context
        .state
        .ensure_local_node(issued.node_id, version, issued.certificate)
        .await?;
    let identity = NodeIdentity {
        key,
        certificate,
        authority: context.authority.certificate().to_vec(),
        node_id: node.node,
        host_name: node.host_name,
        gateway: reachable(listen).to_string(),
        joined_by: None,
    };
    let clock: Arc<dyn Clock> = context.clock.clone();
    Ok(Agent::start(AgentOptions {
        identity,
        identity_dir: None,
        seen_file: Some(dir.join(SEEN_FILE)),
        roots,
        clock,
    })?)
}

/// Where a listener on `listen` is reached from its own machine.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_every_address_is_reached_on_loopback() {
        for (listen, reached) in [
            ("0.0.0.0:7", "127.0.0.1:7"),
            ("[::]:7", "[::1]:7"),
            ("127.0.0.2:7", "127.0.0.2:7"),
        ] {
            let listen: SocketAddr = listen.parse().expect("address");
            assert_eq!(reachable(listen).to_string(), reached);
        }
    }
}
