//! How an integration stands: for `doctor`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use serde::Serialize;
use tidings_protocol::session_api::{Finding, Severity};

use super::super::Program;
use super::command::{find, hook_of_ours, rewakes};
use super::files::read;
use super::{Homes, Part, hooks, servers};

/// How long a command may take to say its version.
const PATIENCE: Duration = Duration::from_secs(5);

/// How an integration stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Nothing of ours is in its configuration.
    NotInstalled,
    /// Hooks and server are in its configuration.
    Installed,
    /// They are in part, or what they call is not there.
    Incomplete,
    /// Its configuration cannot be read, so that nobody knows.
    Unreadable,
}

/// One program, as its user has it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IntegrationLook {
    /// The program.
    pub program: &'static str,
    /// How it stands.
    pub standing: Standing,
    /// The command of ours that its hooks call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// A hook wakes it for news.
    pub rewakes: bool,
    /// The version of that command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What to do next, where there is something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Looks at the programs that this user has; `own_name` is how the program that looks is
/// called. What is wrong with one is a finding; one that was not asked for is not.
pub fn look(own_name: &str) -> (Vec<IntegrationLook>, Vec<Finding>) {
    let Ok(homes) = Homes::of_this_process() else {
        return (Vec::new(), Vec::new());
    };
    let mut looks = Vec::new();
    let mut findings = Vec::new();
    let used = |program: &Program| homes.folder(*program).is_dir();
    for program in Program::ALL.into_iter().filter(used) {
        let (look, found) = look_at(&homes, program, own_name);
        looks.push(look);
        findings.extend(found);
    }
    (looks, findings)
}

/// What a program's files hold of ours.
#[derive(Debug, Default)]
struct Held {
    hooks: Vec<(String, String)>,
    server: Option<String>,
    broken: Option<String>,
}

fn look_at(homes: &Homes, program: Program, own_name: &str) -> (IntegrationLook, Option<Finding>) {
    let integrate = format!("{own_name} integrate {}", verb(program));
    let look = IntegrationLook {
        program: program.as_str(),
        standing: Standing::NotInstalled,
        command: None,
        rewakes: false,
        version: None,
        next: None,
    };
    let held = held(&homes.files(program));
    let (waking, held_hooks): (Vec<_>, Vec<_>) =
        held.hooks.iter().partition(|(_, line)| rewakes(line));
    let mut called: Vec<String> = held_hooks
        .iter()
        .chain(&waking)
        .filter_map(|(_, line)| hook_of_ours(line))
        .collect();
    called.dedup();
    let look = IntegrationLook {
        rewakes: !waking.is_empty(),
        command: called.first().cloned().or_else(|| held.server.clone()),
        ..look
    };
    if let Some(broken) = held.broken {
        let next = format!("mend that file, then {integrate}");
        return wanting(Standing::Unreadable, (program, broken), &next, look);
    }
    if held.hooks.is_empty() && held.server.is_none() {
        let next = Some(integrate);
        return (IntegrationLook { next, ..look }, None);
    }
    let incomplete =
        |what: String, look| wanting(Standing::Incomplete, (program, what), &integrate, look);
    let missing = hooks::events(program)
        .iter()
        .any(|event| !held_hooks.iter().any(|(there, _)| there == event));
    if missing || held.server.is_none() {
        let what = "its configuration has only a part of what tidings needs".to_owned();
        return incomplete(what, look);
    }
    for command in called.iter().chain(&held.server) {
        let Some(path) = find(command) else {
            let what = format!("its configuration calls {command}, which is not there");
            return incomplete(what, look);
        };
        match version(&path) {
            Some(version) if version == env!("CARGO_PKG_VERSION") => {}
            Some(version) => {
                let what = format!(
                    "its configuration calls {command}, which is version {version} and not {}",
                    env!("CARGO_PKG_VERSION")
                );
                return incomplete(what, look);
            }
            None => {
                let what = format!("its configuration calls {command}, which does not run");
                return incomplete(what, look);
            }
        }
    }
    let look = IntegrationLook {
        standing: Standing::Installed,
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        ..look
    };
    (look, None)
}

/// A program that something is wrong with, and the finding that says what.
fn wanting(
    standing: Standing,
    (program, what): (Program, String),
    next: &str,
    look: IntegrationLook,
) -> (IntegrationLook, Option<Finding>) {
    let look = IntegrationLook {
        standing,
        next: Some(next.to_owned()),
        ..look
    };
    let finding = Finding {
        severity: Severity::Warning,
        what: format!("{}: {what}", name(program)),
        hint: next.to_owned(),
    };
    (look, Some(finding))
}

fn held(files: &[(Part, PathBuf)]) -> Held {
    let mut held = Held::default();
    for (part, path) in files {
        if let Err(error) = add(&mut held, *part, path) {
            held.broken = Some(error);
        }
    }
    held
}

fn add(held: &mut Held, part: Part, path: &Path) -> Result<(), String> {
    let found = read(path).map_err(|error| error.message)?;
    let said = |error| format!("{}: {error}", path.display());
    match part {
        Part::Hooks => held.hooks = hooks::installed(&found.text).map_err(said)?,
        Part::JsonServer => held.server = servers::installed_json(&found.text).map_err(said)?,
        Part::TomlServer => held.server = servers::installed_toml(&found.text).map_err(said)?,
    }
    Ok(())
}

/// What a command of ours says its version is: the last word of what it prints.
fn version(path: &Path) -> Option<String> {
    let mut child = Command::new(path)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let stdout = child.stdout.take()?;
    let (sender, said) = sync_channel(1);
    thread::spawn(move || {
        let mut text = String::new();
        let read = stdout.take(256).read_to_string(&mut text);
        // Nobody listens any more once the patience is over.
        let _ = sender.send(read.map(|_| text));
    });
    let text = said.recv_timeout(PATIENCE);
    let _ = child.kill();
    let _ = child.wait();
    let text = text.ok()?.ok()?;
    text.split_whitespace().last().map(str::to_owned)
}

fn name(program: Program) -> &'static str {
    match program {
        Program::ClaudeCode => "Claude Code",
        Program::Codex => "Codex",
    }
}

/// How `integrate` calls a program.
pub fn verb(program: Program) -> &'static str {
    program.catalog().as_str()
}
