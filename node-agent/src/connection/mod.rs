//! The way to the gateway: pairing, the mutual TLS connection, and its whole life.

mod agent;
mod ask;
pub mod back_off;
mod credentials;
mod identity;
mod join;
mod probe;
mod provision;
mod session;
mod silence;
mod tls;
mod transport;
mod trouble;

pub use agent::{Agent, AgentOptions, ConnectionState};
pub use ask::{APPROVAL_DEADLINE, Asking};
pub use identity::{
    IdentityFileError, NodeIdentity, NodeKey, signing_request, signing_request_pem,
};
pub use join::{JoinError, join};
pub use probe::{Probe, probe};
pub use provision::{ProvisionError, accept, provision};
pub use tls::{TlsError, TlsTime, crypto_provider, paired, public_key_of, validity_of};
pub use transport::{CONTROL_FRAME_BYTES, REQUEST_DEADLINE, transport_config};
pub use trouble::ClockTrouble;
