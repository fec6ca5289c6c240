//! The way to the gateway: pairing, the mutual TLS connection, and its whole life.

mod agent;
mod back_off;
mod credentials;
mod identity;
mod join;
mod session;
mod tls;
mod transport;

pub use agent::{Agent, AgentOptions, ConnectionState};
pub use identity::{IdentityFileError, NodeIdentity, NodeKey, signing_request};
pub use join::{JoinError, join};
pub use tls::{TlsError, TlsTime, crypto_provider, public_key_of, validity_of};
pub use transport::{CONTROL_FRAME_BYTES, REQUEST_DEADLINE, transport_config};
