//! The session store beside the database.
//!
//! | where | what |
//! |---|---|
//! | `routing` | which session a message belongs to |
//! | `files`, `names` | every file operation of the store, and how its files are called |
//! | `projection`, `merge`, `keeper` | `sessions.json`: written, read when others wrote it, kept in step |

pub mod files;
pub mod keeper;
pub mod merge;
pub mod names;
pub mod projection;
pub mod routing;

#[cfg(test)]
mod tests;
