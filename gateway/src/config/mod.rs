//! Configuration: one schema, layer over layer, and where each value came from.

mod layers;
mod schema;
mod values;

pub use layers::{ConfigError, Configuration, Layers, Origin, Setting};
pub use schema::Config;
pub use values::Age;
