//! What gateway and node agent agree on: session keys, signals, markers, reports,
//! wire messages and their framing, the session interface, join links.
//!
//! Nothing in this crate opens a file, a socket or a database, and nothing reads a
//! clock: it is data, limits, and the rules that hold on both sides of a wire.
#![forbid(unsafe_code)]

pub mod digest;
pub mod identity;
pub mod join_link;
pub mod key;
pub mod marker;
mod named;
mod nesting;
pub mod pairing;
pub mod report;
pub mod session_api;
pub mod signal;
pub mod wire;

pub use identity::{Catalog, Host, HostName, NodeId, ThreadId};
pub use join_link::JoinLink;
pub use key::SessionKey;
pub use marker::Marker;
pub use signal::{Actor, ActorType, SignalKind};

/// A point in time, whole milliseconds since the Unix epoch.
pub type EpochMs = i64;
