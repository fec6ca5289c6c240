//! Arguments that both programs take.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tidings_protocol::Catalog;
use tidings_protocol::session_api::ApiError;

use super::output::{Output, OutputFormat};
use super::state_dir::state_dir;

/// The heading in help texts.
const GLOBAL: &str = "Options of every command";

/// Accepted anywhere after the verb.
#[derive(Debug, Clone, Default, Args)]
pub struct CommonArgs {
    /// The state directory; else $TIDINGS_STATE_DIR, else ~/.tidings
    #[arg(long, global = true, value_name = "DIR", help_heading = GLOBAL)]
    pub state_dir: Option<PathBuf>,
    /// One JSON document on stdout (for a stream, one object a line)
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub json: bool,
}

impl CommonArgs {
    /// Prints in the format asked for.
    pub fn output(&self) -> Output {
        Output::new(if self.json {
            OutputFormat::Json
        } else {
            OutputFormat::Human
        })
    }

    /// The state directory to use.
    pub fn state_dir(&self) -> Result<PathBuf, ApiError> {
        state_dir(self.state_dir.as_deref())
    }

    /// How to name the same state directory in another command: nothing where that finds
    /// it by itself.
    pub fn state_dir_flag(&self) -> String {
        self.state_dir
            .as_ref()
            .map(|dir| format!(" --state-dir {}", dir.display()))
            .unwrap_or_default()
    }
}

/// Reads a catalog's name; clap shows the names there are.
pub fn catalog_parser() -> impl TypedValueParser<Value = Catalog> {
    PossibleValuesParser::new(Catalog::ALL.map(Catalog::as_str))
        .try_map(|name| Catalog::parse(&name).ok_or("not a catalog"))
}
