//! The command layer that both programs share: what they print and how, how they end, and
//! how they reach a process that runs already.
//!
//! Data goes to stdout, everything else to stderr; nothing depends on colour, and there is
//! none.

pub mod common;
pub mod daemon;
pub mod diagnosis;
pub mod door;
pub mod error;
pub mod format;
pub mod log_file;
pub mod logging;
pub mod manual;
pub mod nearest;
pub mod output;
pub mod program;
pub mod programs;
pub mod service;
pub mod state_dir;
pub mod table;
pub mod usage;

pub use common::CommonArgs;
pub use door::{Connection, Door};
pub use error::CommandError;
pub use output::{Note, Output, OutputFormat, Page};
pub use table::{Column, Table};
