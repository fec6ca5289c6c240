//! The local socket: how programs on this machine talk to gateway and node agent.

mod node;
mod relay;
pub mod replies;
pub mod socket;
mod waiting;

pub use node::NodeResponder;
