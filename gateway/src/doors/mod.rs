//! The doors of the session interface: one implementation behind all of them.

mod backup;
mod catalog;
mod certificates;
mod check;
mod endings;
mod history;
mod hooks;
pub mod http;
mod inputs;
mod nodes;
mod origin;
mod pairing;
mod running;
mod scope;
mod sending;
mod service;
mod sessions;
mod signals;
mod socket;
mod status;
mod store;
mod targets;
mod tokens;
mod turns;
mod visibility;
mod wakes;

pub use service::{GatewayInfo, Service};
pub use socket::SocketDoor;
pub(crate) use wakes::{Whose, send_wakes};
