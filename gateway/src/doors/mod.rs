//! The doors of the session interface: one implementation behind all of them.

mod backup;
mod catalog;
mod check;
mod nodes;
mod service;
mod sessions;
mod signals;
mod status;
mod turns;
mod wakes;

pub use service::{GatewayInfo, Service};
