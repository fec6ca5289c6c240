//! The gateway: the state database, signals and notices, nodes and certificates, and the
//! operator's command line.
#![forbid(unsafe_code)]

pub mod awareness;
pub mod cli;
pub mod config;
pub mod doors;
mod effects;
mod gateway;
mod local_node;
pub mod nodes;
pub mod sessions;
pub mod state;
pub mod turns;
mod upkeep;
pub mod upstream;
pub mod wake_command;

pub use gateway::{Gateway, GatewayOptions, StartError};
