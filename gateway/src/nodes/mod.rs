//! Nodes: who they are, how they pair, what they say.

mod admission;
pub(crate) mod approvals;
mod attempts;
pub mod authority;
mod client_certificates;
mod context;
pub(crate) mod expiry;
mod gate;
mod join;
pub mod listener;
mod pairing;
mod presence;
mod relay;
mod renewal;
mod reports;
mod session;
mod windows;

pub(crate) use admission::refusal;
pub use approvals::Approvals;
pub use context::NodeContext;
pub(crate) use pairing::sign;
pub use presence::{Presences, RequestError};
pub use relay::SessionInterface;
