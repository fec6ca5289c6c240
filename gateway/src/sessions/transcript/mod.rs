//! Transcripts of the gateway's own sessions: append-only JSON lines, a tree of entries.
//!
//! | where | what |
//! |---|---|
//! | `owner`, `lock` | who may append: one writer for each file, over all processes |
//! | `write`, `entry` | whole lines, durable, each turn at once; how they look |
//! | `tail` | the end of a file, read in bounded memory |
//! | `line`, `index`, `cache` | where everything is: made in one pass, shared, continued |
//! | `view` | what was said, page by page, along the active branch |
//! | `fork` | a child that begins with its parent's active branch |

pub mod cache;
pub mod entry;
pub mod fork;
pub mod index;
pub mod line;
pub mod lock;
mod owner;
pub mod tail;
pub mod view;
pub mod write;
