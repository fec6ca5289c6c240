//! The local socket: how programs on this machine talk to gateway and node agent.

mod node;
pub mod socket;

pub use node::NodeResponder;
