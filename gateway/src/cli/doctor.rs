//! `tidings doctor`: what is wrong, and the command that mends it.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tidings_node::cli::{CommandError, Note, Page};
use tidings_protocol::session_api::{ApiError, Finding, Request, Severity};

use super::Context;
use super::client::answer;
use super::state_files::{Open, close, open_to_others};
use crate::config::Layers;
use crate::state::{DATABASE_FILE, check_file};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings doctor --fix")]
pub(super) struct DoctorArgs {
    /// Mends what is safe to mend: takes from others the permission to read what is secret
    #[arg(long)]
    fix: bool,
}

/// What was found, and what was mended.
#[derive(Debug, Default, Serialize)]
struct Diagnosis {
    findings: Vec<Finding>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixed: Vec<Fixed>,
}

/// Something that is as it should be now.
#[derive(Debug, Serialize)]
struct Fixed {
    path: PathBuf,
    /// Its permissions before, in octal.
    was: String,
    /// Its permissions now.
    is: String,
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
    let layers = Layers::of_this_process(&state_dir, None);
    if let Err(error) = layers.load() {
        diagnosis.findings.push(failure(error.into()));
    }
    if let Err(error) = context.client.connection().await {
        diagnosis.findings.push(failure(error));
        diagnosis.findings.extend(without_gateway(&state_dir));
    } else {
        let checked = context.client.ask(Request::Check {}, answer!(Check)).await;
        let findings = checked.map_or_else(|error| vec![failure(error)], |found| found.findings);
        diagnosis.findings.extend(findings);
    }
    diagnosis
        .findings
        .sort_by_key(|found| Reverse(found.severity));
    context.output.answer(&diagnosis, page)?;
    if diagnosis.findings.is_empty() {
        Ok(())
    } else {
        Err(CommandError::Negative)
    }
}

/// What to do about something that can be mended here.
enum Remedy {
    /// Mend it.
    Apply,
    /// Name the command that mends it.
    Name(String),
}

impl Diagnosis {
    fn add_open(&mut self, open: Open, remedy: &Remedy) {
        let (was, is) = (octal(open.mode), octal(open.wanted));
        let path = open.path.display();
        let what = format!("others may use {path}: its permissions are {was}, not {is}");
        let hint = match remedy {
            Remedy::Name(command) => command.clone(),
            Remedy::Apply => match close(&open) {
                Ok(()) => {
                    let path = open.path;
                    return self.fixed.push(Fixed { path, was, is });
                }
                Err(error) => format!("it could not be mended here: {error}"),
            },
        };
        let severity = Severity::Error;
        self.findings.push(Finding {
            severity,
            what,
            hint,
        });
    }
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

fn octal(mode: u32) -> String {
    format!("{mode:04o}")
}

/// The findings are what was asked for: they go to stdout.
fn page(diagnosis: &Diagnosis) -> Page {
    let mut text = String::new();
    for fixed in &diagnosis.fixed {
        let path = fixed.path.display();
        let _ = writeln!(text, "fixed: {path} was {} and is {}", fixed.was, fixed.is);
    }
    for found in &diagnosis.findings {
        let severity = match found.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let _ = writeln!(text, "{severity}: {}\nhint: {}", found.what, found.hint);
    }
    if diagnosis.findings.is_empty() {
        Page::of(text).with(Note::Info("nothing is wrong".to_owned()))
    } else {
        Page::of(text)
    }
}
