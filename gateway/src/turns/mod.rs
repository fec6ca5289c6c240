//! Turns of the gateway's own sessions against a model: what decides, apart from the model and
//! the loop.
//!
//! | where | what |
//! |---|---|
//! | `runner` | runs turns: one at a time in each session |
//! | `models` | the models: asked over HTTP, their answers read as they come |
//! | `tokens`, `budget` | how much the model sees, how much of it is used, and what is due then |
//! | `overflow` | whether a provider's refusal says that the prompt was too long |
//! | `message`, `view` | what a turn's prompt is made of, from the entries of a transcript |
//! | `chunks` | where a conversation may be parted: never between a call and its results |
//! | `truncate` | results of tools that are too long for the window, shortened |
//! | `compaction` | older conversation becomes a summary |
//! | `sections` | the parts of AGENTS.md that stand in the prompt again after that |
//! | `silent` | replies that nobody gets |
//! | `commands` | what a person can ask for in chat |

pub mod budget;
pub mod chunks;
pub mod commands;
pub mod compaction;
pub mod message;
pub mod models;
pub mod overflow;
pub(crate) mod runner;
pub mod sections;
pub mod silent;
pub mod tokens;
pub mod truncate;
pub mod view;
