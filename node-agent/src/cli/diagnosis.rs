//! What `doctor` prints, in both programs: what is wrong, what was mended, and the command
//! that mends the rest.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;
use tidings_protocol::session_api::{Finding, Severity};

use super::{CommandError, Note, Output, Page};
use crate::open_files::Open;
use crate::programs::integrate::look::{self, IntegrationLook, Standing};

/// What was found, and what was mended.
#[derive(Debug, Default, Serialize)]
pub struct Diagnosis {
    findings: Vec<Finding>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixed: Vec<Fixed>,
    /// Where a gateway answers HTTP, where it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    integrations: Vec<IntegrationLook>,
}

/// Something that is as it should be now.
#[derive(Debug, Serialize)]
pub struct Fixed {
    /// Where it is.
    pub path: PathBuf,
    /// Its permissions before, in octal; or with what it was.
    pub was: String,
    /// Its permissions now; or that it is without that.
    pub is: String,
}

/// What to do about something that can be mended here.
#[derive(Debug)]
pub enum Remedy {
    /// Mend it.
    Apply,
    /// Name the command that mends it.
    Name(String),
}

impl Diagnosis {
    /// One more finding.
    pub fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Several.
    pub fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.findings.extend(findings);
    }

    /// Something that was mended.
    pub fn add_fixed(&mut self, fixed: Fixed) {
        self.fixed.push(fixed);
    }

    /// Something that is open to others: mended, or a finding.
    pub fn add_open(&mut self, open: Open, remedy: &Remedy) {
        let (was, is) = (octal(open.mode), octal(open.wanted));
        let path = open.path.display();
        let what = format!("others may use {path}: its permissions are {was}, not {is}");
        let hint = match remedy {
            Remedy::Name(command) => command.clone(),
            Remedy::Apply => match open.close() {
                Ok(()) => {
                    let path = open.path;
                    return self.add_fixed(Fixed { path, was, is });
                }
                Err(error) => format!("it could not be mended here: {error}"),
            },
        };
        self.add(Finding {
            severity: Severity::Error,
            what,
            hint,
        });
    }

    /// How this user's agent programs stand; `own_name` is how the program that looks is
    /// called.
    pub fn look_at_programs(&mut self, own_name: &str) {
        let (looks, findings) = look::look(own_name);
        self.integrations = looks;
        self.findings.extend(findings);
    }

    /// Prints it, the worst first. Findings are a negative answer.
    pub fn print(mut self, output: Output) -> Result<(), CommandError> {
        self.findings.sort_by_key(|found| Reverse(found.severity));
        output.answer(&self, page)?;
        if self.findings.is_empty() {
            Ok(())
        } else {
            Err(CommandError::Negative)
        }
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
    for look in &diagnosis.integrations {
        if look.standing == Standing::NotInstalled
            && let Some(next) = &look.next
        {
            let program = look.program;
            let _ = writeln!(text, "hint: to have {program} told of changes: {next}");
        }
    }
    let mut page = Page::of(text);
    if let Some(url) = &diagnosis.http {
        page = page.with(Note::Info(format!("HTTP is answered at {url}")));
    }
    if diagnosis.findings.is_empty() {
        page = page.with(Note::Info("nothing is wrong".to_owned()));
    }
    page
}
