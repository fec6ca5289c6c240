//! `tidings config`: what is configured, and where it comes from.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;
use tidings_node::cli::{Column, CommandError, CommonArgs, Page, Table};
use tidings_protocol::session_api::ApiError;

use crate::config::{Layers, Setting};

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Prints the configuration that a gateway started now would have
    Show(ShowArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings config show --origin")]
pub(super) struct ShowArgs {
    /// With the file or variable that each value comes from
    #[arg(long)]
    origin: bool,
    /// A configuration file to read after the usual ones
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Shown {
    settings: Vec<ShownSetting>,
}

#[derive(Debug, Serialize)]
struct ShownSetting {
    key: String,
    value: toml::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
}

pub(super) fn run(command: ConfigCommand, common: &CommonArgs) -> Result<(), CommandError> {
    let ConfigCommand::Show(args) = command;
    let layers = Layers::of_this_process(&common.state_dir()?, args.config);
    let settings = layers.load().map_err(ApiError::from)?.settings;
    let shown = |setting: Setting| ShownSetting {
        key: setting.key,
        value: setting.value,
        origin: args.origin.then(|| setting.origin.to_string()),
    };
    let shown = Shown {
        settings: settings.into_iter().map(shown).collect(),
    };
    common.output().answer(&shown, |shown| {
        Page::of(
            Table::new([
                Column::left("KEY"),
                Column::left("VALUE"),
                Column::left("FROM").where_filled(),
            ])
            .with_rows(&shown.settings, |setting| {
                [
                    setting.key.clone(),
                    setting.value.to_string(),
                    setting.origin.clone().unwrap_or_default(),
                ]
            }),
        )
    })
}
