//! How the database is run: one writer that commits in groups, readers beside it,
//! checkpoints on their own thread. Knows SQLite, and nothing of sessions.

mod backup;
mod checkpoint;
mod erasure;
mod fault;
mod files;
mod group;
mod hub;
mod meter;
mod migrations;
mod names;
mod open;
mod panicking;
mod queue;
mod readers;
mod tx;
mod writer;

pub(crate) use backup::copy_database;
pub(crate) use checkpoint::{CheckpointSignal, Checkpointer, log_bytes};
pub(crate) use files::Files;
pub(crate) use group::WriterParts;
pub(crate) use hub::Hub;
pub use meter::WriterFigures;
pub use open::{DATABASE_FILE, OpenError, StateOptions};
pub(crate) use open::{Opened, open, open_for_copy, unwritten};
pub(crate) use queue::Priority;
pub(crate) use readers::{ReadError, Readers};
pub(crate) use tx::{OpResult, Tx};
pub(crate) use writer::Writer;
