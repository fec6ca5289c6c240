//! Where transcripts stand on this machine, and what stands there.

pub mod catalog;
pub mod files;
mod header;
pub mod listing;
mod places;
pub mod roots;
#[cfg(test)]
mod scratch;
mod seen;
pub(crate) mod walk;

pub use places::RootPlaces;
pub use roots::{Root, RootArgument, RootError, RootSet, Surroundings};
pub use seen::SEEN_FILE;
