//! The upkeep of a store: what goes, in which order, and what stays whatever happens.
//!
//! | where | what |
//! |---|---|
//! | `facts`, `owned`, `plan` | entries and files → ordered actions; pure |
//! | `run`, `report` | the actions done, and what became of them |
//! | `keep` | by itself: after the gateway added an entry, and every hour |

pub mod facts;
pub mod keep;
mod owned;
pub mod plan;
pub mod report;
pub mod run;
#[cfg(test)]
mod tests;
