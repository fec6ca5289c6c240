//! The node agent: discovers, watches, tails and classifies transcripts, and pushes what
//! happened to the gateway.
#![forbid(unsafe_code)]

pub mod classify;
pub mod cli;
pub mod clock;
pub mod connection;
pub mod discover;
pub mod follow;
pub mod framed;
pub mod held_dir;
pub mod history;
pub mod link;
pub mod local;
pub mod open_files;
pub mod private_files;
pub mod programs;
pub mod tail;
pub mod wake_command;
pub mod watch;
