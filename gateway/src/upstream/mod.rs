//! What a report does to a link, and how far a link can be trusted. Decisions only, no
//! I/O.

pub mod missing;
pub mod report;
pub mod trust;
