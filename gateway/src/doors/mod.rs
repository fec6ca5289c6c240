//! The doors of the session interface: one implementation behind all of them.

mod backup;
mod catalog;
mod certificates;
mod check;
mod endings;
mod history;
mod inputs;
mod nodes;
mod origin;
mod pairing;
mod scope;
mod sending;
mod service;
mod sessions;
mod signals;
mod status;
mod store;
mod turns;
mod visibility;
mod wakes;

pub use service::{GatewayInfo, Service};
