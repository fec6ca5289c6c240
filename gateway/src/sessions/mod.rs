//! The session store beside the database.
//!
//! | where | what |
//! |---|---|
//! | `routing` | which session a message belongs to |
//! | `files`, `names` | every file operation of the store, and how its files are called |
//! | `projection`, `merge`, `differences`, `keeper` | `sessions.json`: written, read when others wrote it, kept in step |
//! | `lifecycle`, `local_time`, `lives`, `cron` | when a conversation is too old to go on, and what becomes of it |
//! | `archives` | what is left of what has ended |
//! | `artefacts`, `maintenance` | which file is whose, and what goes when |
//! | `import` | the sessions of another state directory |
//! | `hygiene` | the copy of a conversation that a provider accepts |
//! | `transcript` | appended, read from the end, indexed, forked |

pub mod archives;
pub mod artefacts;
pub mod cron;
pub mod differences;
pub mod files;
pub mod hygiene;
pub mod import;
pub mod keeper;
pub mod lifecycle;
pub mod lives;
pub mod local_time;
pub mod maintenance;
pub mod merge;
pub mod names;
pub mod projection;
pub mod routing;
pub mod transcript;

#[cfg(test)]
mod tests;
