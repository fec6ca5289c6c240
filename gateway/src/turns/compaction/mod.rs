//! Compaction: older conversation becomes a summary, the newest stays as it is.
//!
//! | where | what |
//! |---|---|
//! | `plan` | what is summarised and what is kept: pure |
//! | `request`, `prompt` | what whoever summarises is asked |
//! | `stages` | the model's way: chunk by chunk, each with the summary so far |
//! | `audit`, `context` | safeguard mode: is the summary sound, and what stands behind it |
//! | `provider`, `command` | others who summarise, by id |
//! | `summarise` | who summarises, and what happens when that fails |
//! | `run`, `written`, `successor` | all of it on a transcript: what is read and written, and a smaller transcript to go on in |

pub mod audit;
pub mod command;
pub mod context;
pub mod plan;
pub mod prompt;
pub mod provider;
pub mod request;
pub mod run;
pub mod stages;
pub mod successor;
pub mod summarise;
mod written;

#[cfg(test)]
mod tests;
