//! Writes our hooks and our MCP server into an agent program's own configuration, and takes
//! them out again: everything else in it stays as it is.

mod command;
mod difference;
mod files;
mod hooks;
mod json_text;
pub mod look;
mod servers;

use std::path::{Path, PathBuf};

use serde::Serialize;
use tidings_protocol::session_api::{ApiError, ErrorType};

use super::Program;
use command::Invocation;
use difference::difference;
use files::{Found, read};
use json_text::Broken;

/// Whose configuration is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// This user's, in every project.
    #[default]
    User,
    /// That of the project in the current directory, for everybody who works on it.
    Project,
}

/// What to do with a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Write hooks and server into it.
    Install,
    /// Take them out of it.
    Uninstall,
}

/// Whether files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writing {
    /// They are.
    Apply,
    /// They are not: what would change is shown.
    Show,
}

/// Whether the program is to have a hook that wakes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewaking {
    /// It is.
    Asked,
    /// It is if it has one.
    AsItStands,
}

/// A configuration to be edited.
#[derive(Debug)]
pub struct Integration {
    /// The program that it belongs to.
    pub program: Program,
    /// Whether it is to have a hook that wakes the program.
    pub rewaking: Rewaking,
    /// Whose it is.
    pub scope: Scope,
    /// The name of our program that it is to call.
    pub own_name: &'static str,
    /// The state directory that it is to use, where it does not find it by itself.
    pub state_dir: Option<PathBuf>,
}

/// Where programs keep their configurations.
#[derive(Debug, Clone)]
pub struct Homes {
    claude: PathBuf,
    claude_servers: PathBuf,
    codex: PathBuf,
}

/// What became of a configuration.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Integrated {
    /// The program.
    pub program: &'static str,
    /// The command that its hooks call.
    pub command: String,
    /// The command of the hook that wakes it, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewake_command: Option<String>,
    /// True where nothing was written.
    pub dry_run: bool,
    /// Each of its files.
    pub files: Vec<IntegratedFile>,
    /// What else there is to do or to know.
    pub notes: Vec<String>,
}

/// What became of one file.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IntegratedFile {
    /// The file, where its links lead.
    pub path: PathBuf,
    /// What was done, or would be.
    pub change: Change,
    /// A copy of what it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<PathBuf>,
    /// The lines that go and come.
    pub difference: Vec<String>,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Nothing.
    None,
    /// It is made.
    Created,
    /// It is edited.
    Edited,
    /// It is taken away: nothing is left in it.
    Removed,
}

/// What one of a program's files holds of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Hooks,
    JsonServer,
    TomlServer,
}

/// One file, and what becomes of it.
struct Planned {
    found: Found,
    after: String,
    change: Change,
    /// A hook that wakes the program is in it afterwards.
    rewakes: bool,
}

impl Homes {
    /// As the environment of this process has them.
    pub fn of_this_process() -> Result<Self, ApiError> {
        let variable = |name: &str| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let home = variable("HOME").ok_or_else(|| {
            ApiError::new(
                ErrorType::Configuration,
                "there is no home directory: HOME is not set",
            )
            .with_hint("set HOME, or use --scope project")
        })?;
        let own = variable("CLAUDE_CONFIG_DIR");
        Ok(Self {
            claude_servers: own.as_ref().unwrap_or(&home).join(".claude.json"),
            claude: own.unwrap_or_else(|| home.join(".claude")),
            codex: variable("CODEX_HOME").unwrap_or_else(|| home.join(".codex")),
        })
    }

    /// The folder of a program.
    fn folder(&self, program: Program) -> &Path {
        match program {
            Program::ClaudeCode => &self.claude,
            Program::Codex => &self.codex,
        }
    }

    /// The files of a user's program.
    fn files(&self, program: Program) -> [(Part, PathBuf); 2] {
        match program {
            Program::ClaudeCode => [
                (Part::Hooks, self.claude.join("settings.json")),
                (Part::JsonServer, self.claude_servers.clone()),
            ],
            Program::Codex => [
                (Part::Hooks, self.codex.join("hooks.json")),
                (Part::TomlServer, self.codex.join("config.toml")),
            ],
        }
    }
}

/// The files of a project.
fn project_files(program: Program, project: &Path) -> [(Part, PathBuf); 2] {
    match program {
        Program::ClaudeCode => [
            (Part::Hooks, project.join(".claude/settings.json")),
            (Part::JsonServer, project.join(".mcp.json")),
        ],
        Program::Codex => [
            (Part::Hooks, project.join(".codex/hooks.json")),
            (Part::TomlServer, project.join(".codex/config.toml")),
        ],
    }
}

impl Integration {
    /// Edits the configuration. Every file is read and judged before the first is written, so
    /// one that is broken leaves all of them as they are.
    pub fn run(&self, doing: Doing, writing: Writing) -> Result<Integrated, ApiError> {
        let invocation = match self.scope {
            Scope::User => Invocation::of_this_process(self.own_name, self.state_dir.as_deref()),
            Scope::Project => Invocation::by_name(self.own_name, self.state_dir.as_deref()),
        };
        let files = match self.scope {
            Scope::User => Homes::of_this_process()?.files(self.program),
            Scope::Project => project_files(self.program, &current_dir()?),
        };
        let mut planned = Vec::with_capacity(files.len());
        for (part, path) in &files {
            let found = read(path)?;
            planned.push(self.plan(found, *part, (doing, &invocation))?);
        }
        let rewakes = planned.iter().any(|file| file.rewakes);
        let notes = self.notes(doing, &planned);
        let files = planned
            .into_iter()
            .map(|planned| self.settle(&planned, writing))
            .collect::<Result<_, _>>()?;
        Ok(Integrated {
            program: self.program.as_str(),
            command: invocation.hook(self.program),
            rewake_command: rewakes.then(|| invocation.rewake_hook(self.program)),
            dry_run: writing == Writing::Show,
            files,
            notes,
        })
    }

    fn plan(
        &self,
        found: Found,
        part: Part,
        (doing, invocation): (Doing, &Invocation),
    ) -> Result<Planned, ApiError> {
        let text = &found.text;
        let rewakes = match (part, doing) {
            (Part::Hooks, Doing::Install) => {
                self.rewaking == Rewaking::Asked || hooks::rewaking(text)
            }
            _ => false,
        };
        let edited = match (part, doing) {
            (Part::Hooks, Doing::Install) => {
                let wanted = hooks::wanted(self.program, invocation, rewakes);
                hooks::install(text, &wanted)
            }
            (Part::Hooks, Doing::Uninstall) => hooks::uninstall(text),
            (Part::JsonServer, Doing::Install) => servers::install_json(text, invocation),
            (Part::JsonServer, Doing::Uninstall) => servers::uninstall_json(text),
            (Part::TomlServer, Doing::Install) => servers::install_toml(text, invocation),
            (Part::TomlServer, Doing::Uninstall) => servers::uninstall_toml(text),
        };
        let after = edited.map_err(|error| broken(&found.path, &error))?;
        let after = with_line_ends_of(text, after);
        let change = match doing {
            Doing::Uninstall if !found.is_there() || after == *text => Change::None,
            Doing::Uninstall if matches!(after.trim(), "" | "{}") => Change::Removed,
            Doing::Install if !found.is_there() => Change::Created,
            _ if after == *text => Change::None,
            _ => Change::Edited,
        };
        Ok(Planned {
            found,
            after,
            change,
            rewakes,
        })
    }

    fn settle(&self, planned: &Planned, writing: Writing) -> Result<IntegratedFile, ApiError> {
        let Planned {
            found,
            after,
            change,
            ..
        } = planned;
        let new_mode = match self.scope {
            Scope::User => 0o600,
            Scope::Project => 0o644,
        };
        let backup = match (writing, change) {
            (Writing::Show, _) | (Writing::Apply, Change::None) => None,
            (Writing::Apply, Change::Created | Change::Edited) => found.replace(after, new_mode)?,
            (Writing::Apply, Change::Removed) => found.remove()?,
        };
        let difference = match change {
            Change::None => Vec::new(),
            Change::Removed => difference(&found.text, ""),
            Change::Created | Change::Edited => difference(&found.text, after),
        };
        Ok(IntegratedFile {
            path: found.path.clone(),
            change: *change,
            backup,
            difference,
        })
    }

    fn notes(&self, doing: Doing, planned: &[Planned]) -> Vec<String> {
        let mut notes = Vec::new();
        if self.rewaking == Rewaking::AsItStands && planned.iter().any(|file| file.rewakes) {
            notes.push(format!(
                "its hook that wakes it stays: {} integrate {} --uninstall takes out all of them",
                self.own_name,
                look::verb(self.program)
            ));
        }
        if doing == Doing::Uninstall || planned.iter().all(|file| file.change == Change::None) {
            return notes;
        }
        notes.push(match self.program {
            Program::ClaudeCode => {
                "Claude Code reads this when it starts: begin a new one".to_owned()
            }
            Program::Codex => "Codex runs a new hook only once it is trusted: start it, type \
                               /hooks, and trust those of tidings"
                .to_owned(),
        });
        let inline = |file: &Planned| servers::has_inline_hooks(&file.found.text);
        if self.program == Program::Codex && planned.iter().any(inline) {
            notes.push(
                "config.toml has hooks too: Codex runs both, and warns that there are two places"
                    .to_owned(),
            );
        }
        if self.scope == Scope::Project {
            notes.push(format!(
                "whoever works on this project needs {} on the search path",
                self.own_name
            ));
        }
        notes
    }
}

/// The text after an edit, with the line ends of the one before it, where those are all CRLF.
fn with_line_ends_of(before: &str, after: String) -> String {
    let lines = before.matches('\n').count();
    if lines == 0 || before.matches("\r\n").count() < lines {
        return after;
    }
    after.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn current_dir() -> Result<PathBuf, ApiError> {
    std::env::current_dir().map_err(|error| {
        let message = format!("the current directory cannot be read: {error}");
        ApiError::new(ErrorType::Unavailable, message).with_hint("change to the project")
    })
}

fn broken(path: &Path, error: &Broken) -> ApiError {
    ApiError::new(
        ErrorType::InvalidData,
        format!("{} is left as it is: {error}", path.display()),
    )
    .with_hint("mend that file, then run the command again; no file was changed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(text: &str, part: Part, doing: Doing) -> String {
        let integration = Integration {
            program: Program::Codex,
            rewaking: Rewaking::AsItStands,
            scope: Scope::User,
            own_name: "tidings",
            state_dir: None,
        };
        let dir = tempfile::tempdir().expect("scratch");
        let path = dir.path().join("config");
        std::fs::write(&path, text).expect("a file");
        let found = read(&path).expect("read");
        let invocation = Invocation::by_name("tidings", None);
        let planned = integration.plan(found, part, (doing, &invocation));
        planned.expect("planned").after
    }

    #[test]
    fn a_file_whose_lines_all_end_in_crlf_keeps_them_and_gets_its_bytes_back() {
        for (part, before) in [
            (
                Part::TomlServer,
                "# mine\r\nmodel = \"o\"\r\n\r\n[mcp_servers.files]\r\ncommand = \"npx\"\r\n",
            ),
            (Part::Hooks, "{\r\n  \"z\": [\r\n    1\r\n  ]\r\n}\r\n"),
        ] {
            let after = planned(before, part, Doing::Install);
            assert!(after.matches('\n').count() > before.matches('\n').count());
            assert_eq!(after.matches("\r\n").count(), after.matches('\n').count());
            assert_eq!(planned(&after, part, Doing::Install), after);
            assert_eq!(planned(&after, part, Doing::Uninstall), before);
        }
    }

    #[test]
    fn line_ends_of_both_kinds_are_left_as_the_edit_has_them() {
        for before in ["", "a", "a\n", "a\r\nb\n"] {
            assert_eq!(with_line_ends_of(before, "a\r\nb\n".to_owned()), "a\r\nb\n");
        }
    }
}
