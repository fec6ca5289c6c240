//! Nodes: who they are, how they pair, what they say.

mod admission;
pub mod authority;
mod client_certificates;
mod context;
pub mod listener;
mod pairing;
mod presence;
mod renewal;
mod reports;
mod session;

pub use context::NodeContext;
pub use presence::{Presences, RequestError};
