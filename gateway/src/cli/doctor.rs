//! `tidings doctor`: what is wrong, and the command that mends it.

use std::fs;
use std::path::Path;

use clap::Args;
use tidings_node::cli::CommandError;
use tidings_node::cli::diagnosis::{Diagnosis, Fixed, Remedy};
use tidings_node::private_files;
use tidings_protocol::session_api::{ApiError, Finding, Request, Severity};

use super::Context;
use super::client::answer;
use super::state_files::{open_to_others, rejected_stores};
use crate::config::{Layers, alone, legacy_keys, without_legacy};
use crate::sessions::names::STORE;
use crate::state::{DATABASE_FILE, check_file};

/// A configuration file larger than this is none.
const MAX_CONFIGURATION_BYTES: u64 = 1024 * 1024;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings doctor --fix")]
pub(super) struct DoctorArgs {
    /// Mends what is safe to mend: takes from others the permission to read what is secret,
    /// and from the configuration the keys that are no longer used
    #[arg(long)]
    fix: bool,
}

pub(super) async fn run(args: DoctorArgs, context: &mut Context<'_>) -> Result<(), CommandError> {
    let state_dir = context.common.state_dir()?;
    let flag = context.common.state_dir_flag();
    let mut diagnosis = Diagnosis::default();
    let remedy = if args.fix {
        Remedy::Apply
    } else {
        Remedy::Name(format!("tidings doctor --fix{flag}"))
    };
    for open in open_to_others(&state_dir) {
        diagnosis.add_open(open, &remedy);
    }
    for rejected in rejected_stores(&state_dir) {
        diagnosis.add(of_rejected(&rejected));
    }
    let layers = Layers::of_this_process(&state_dir, None);
    for file in &layers.optional_files {
        add_legacy(&mut diagnosis, file, &remedy);
    }
    if let Err(error) = layers.load() {
        diagnosis.add(failure(error.into()));
    }
    if let Err(error) = context.client.connection().await {
        diagnosis.add(failure(error));
        diagnosis.extend(without_gateway(&state_dir));
    } else {
        let checked = context.client.ask(Request::Check {}, answer!(Check)).await;
        match checked {
            Ok(found) => {
                diagnosis.extend(found.findings);
                diagnosis.http = found.http;
            }
            Err(error) => diagnosis.add(failure(error)),
        }
    }
    diagnosis.look_at_programs("tidings");
    diagnosis.print(context.output)
}

fn of_rejected(path: &Path) -> Finding {
    let store = path.with_file_name(STORE);
    Finding {
        severity: Severity::Warning,
        what: format!(
            "{} was set aside: it could not be taken, or not whole",
            path.display()
        ),
        hint: format!(
            "put into {} what is missing there, then remove the file set aside",
            store.display()
        ),
    }
}

/// A configuration file with keys that are no longer used: mended, or a finding.
fn add_legacy(diagnosis: &mut Diagnosis, path: &Path, remedy: &Remedy) {
    // A file that cannot be read is said by what reads all of them.
    let content = private_files::read(path, MAX_CONFIGURATION_BYTES).unwrap_or_default();
    let text = String::from_utf8(content).unwrap_or_default();
    let keys = legacy_keys(&text);
    if keys.is_empty() {
        return;
    }
    let keys = keys.join(", ");
    let hint = match remedy {
        Remedy::Name(command) => command.clone(),
        Remedy::Apply => match mend_configuration(path, &text) {
            Ok(()) => {
                return diagnosis.add_fixed(Fixed {
                    path: path.to_owned(),
                    was: format!("with {keys}"),
                    is: "without".to_owned(),
                });
            }
            Err(error) => format!("it could not be mended here: {error}"),
        },
    };
    diagnosis.add(Finding {
        severity: Severity::Warning,
        what: format!(
            "{} has keys that are no longer used: {keys}",
            path.display()
        ),
        hint,
    });
}

/// Takes the legacy keys out of a configuration file, if it still means the same without them.
fn mend_configuration(path: &Path, text: &str) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let mended = without_legacy(text);
    let mut before = alone(path, text.as_bytes()).map_err(|error| failed(&error))?;
    let after = alone(path, mended.as_bytes()).map_err(|error| failed(&error))?;
    before.session.idle_minutes = None;
    before.session.parent_fork_max_tokens = None;
    before.session.maintenance.rotate_bytes = None;
    before.cron.run_log.max_bytes = None;
    if before != after {
        return Err("it would mean something else; take them out by hand".to_owned());
    }
    let mode = fs::metadata(path)
        .map_err(|error| failed(&error))?
        .permissions();
    private_files::replace(path, mended.as_bytes()).map_err(|error| failed(&error))?;
    fs::set_permissions(path, mode).map_err(|error| failed(&error))
}

/// What can be said of a state directory whose gateway does not answer.
fn without_gateway(state_dir: &Path) -> Vec<Finding> {
    let warning = |what: String, hint: &str| {
        vec![Finding {
            severity: Severity::Warning,
            what,
            hint: hint.to_owned(),
        }]
    };
    let database = state_dir.join(DATABASE_FILE);
    if !state_dir.is_dir() {
        return warning(
            format!("there is no state directory {}", state_dir.display()),
            "tidings gateway run makes it; or name another with --state-dir",
        );
    }
    if !database.is_file() {
        return warning(
            format!("there is no database in {}", state_dir.display()),
            "tidings gateway run makes one; or put a backup in its place",
        );
    }
    let damage = check_file(&database).unwrap_or_else(|error| vec![error.to_string()]);
    damage
        .into_iter()
        .map(|what| Finding {
            severity: Severity::Error,
            what: format!("{}: {what}", database.display()),
            hint: "keep the file, and put the newest backup in its place".to_owned(),
        })
        .collect()
}

fn failure(error: ApiError) -> Finding {
    Finding {
        severity: Severity::Error,
        what: error.message,
        hint: error
            .hint
            .unwrap_or_else(|| "see the gateway's log".to_owned()),
    }
}
