//! Who is told what: cursors, notices, retention. Decisions only, no I/O.

pub mod actor;
pub mod cursor;
pub mod goal;
pub mod hook;
pub mod notice;
pub mod recording;
pub mod retention;
pub mod run;
