//! The command that a program's configuration names: the same over upgrades, because it is
//! the one that was typed and not where that leads to.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::super::Program;
use super::super::hook::{REWAKE, VERB};

/// The names of our two programs.
const OURS: [&str; 2] = ["tidings", "tidings-node"];
/// The verb of the MCP server.
pub(super) const MCP: &str = "mcp";

/// A program of ours, and the state directory that it is told to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Invocation {
    pub(super) program: String,
    pub(super) state_dir: Option<String>,
}

impl Invocation {
    /// As this process was called.
    pub(super) fn of_this_process(name: &str, state_dir: Option<&Path>) -> Self {
        let called = env::args_os().next().unwrap_or_else(|| name.into());
        let program = as_called(&called, env::var_os("PATH").as_deref());
        Self {
            program: program.unwrap_or_else(|| name.into()).display().to_string(),
            state_dir: state_dir.map(|dir| absolute(dir).display().to_string()),
        }
    }

    /// By its name alone, for a configuration that others use too.
    pub(super) fn by_name(name: &str, state_dir: Option<&Path>) -> Self {
        Self {
            program: name.to_owned(),
            state_dir: state_dir.map(|dir| dir.display().to_string()),
        }
    }

    /// The line that a shell runs for a hook.
    pub(super) fn hook(&self, program: Program) -> String {
        let mut line = format!("{} {VERB} {}", quoted(&self.program), program.as_str());
        if let Some(dir) = &self.state_dir {
            line.push_str(" --state-dir ");
            line.push_str(&quoted(dir));
        }
        line
    }

    /// The line of the hook that wakes the program.
    pub(super) fn rewake_hook(&self, program: Program) -> String {
        format!("{} {REWAKE}", self.hook(program))
    }

    /// The arguments of the MCP server.
    pub(super) fn mcp_arguments(&self) -> Vec<String> {
        let mut arguments = vec![MCP.to_owned()];
        if let Some(dir) = &self.state_dir {
            arguments.extend(["--state-dir".to_owned(), dir.clone()]);
        }
        arguments
    }
}

/// Where the program that was called so stands, its links not followed.
fn as_called(called: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    let called = Path::new(called);
    if called.components().count() > 1 {
        return Some(absolute(called));
    }
    let folders = env::split_paths(path?);
    let mut places = folders.map(|folder| absolute(&folder.join(called)));
    places.find(|place| is_executable(place))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Where a command that a configuration names leads to; `None` where it leads nowhere.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let found = as_called(OsStr::new(program), env::var_os("PATH").as_deref())?;
    is_executable(&found).then_some(found)
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The program of ours that a hook's line calls; `None` for everybody else's.
pub(super) fn hook_of_ours(line: &str) -> Option<String> {
    let words = words(line);
    let (program, verb) = (words.first()?, words.get(1)?);
    (is_ours(program) && verb == VERB).then(|| program.clone())
}

/// True for the line of a hook that wakes its program.
pub(super) fn rewakes(line: &str) -> bool {
    words(line).iter().any(|word| word == REWAKE)
}

/// True for a program of ours, wherever it stands.
pub(super) fn is_ours(program: &str) -> bool {
    let name = Path::new(program).file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| OURS.contains(&name))
}

/// One word of a shell's line.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The words of a line as a shell splits it, as far as we write such lines.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(mark), letter) if letter == mark => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_as_written_and_others_are_not_ours() {
        for (program, state_dir) in [
            ("/usr/local/bin/tidings", None),
            ("/opt/it's here/tidings-node", Some("/state dir/$HOME")),
            ("tidings", Some("")),
        ] {
            let invocation = Invocation {
                program: program.to_owned(),
                state_dir: state_dir.map(str::to_owned),
            };
            let line = invocation.hook(Program::ClaudeCode);
            assert_eq!(hook_of_ours(&line).as_deref(), Some(program), "{line}");
            let expected: Vec<&str> = [program, "hook", "claude-code"]
                .into_iter()
                .chain(state_dir.into_iter().flat_map(|dir| ["--state-dir", dir]))
                .collect();
            assert_eq!(words(&line), expected);
        }
        for other in [
            "",
            "echo tidings hook claude-code",
            "/bin/tidings status",
            "mytidings hook codex",
            "npx tidings hook codex",
        ] {
            assert_eq!(hook_of_ours(other), None, "{other}");
        }
    }

    #[test]
    fn a_program_is_named_as_it_was_called_and_its_links_are_not_followed() {
        let dir = tempfile::tempdir().expect("scratch");
        let real = dir.path().join("tidings-0.1.0");
        std::fs::write(&real, "").expect("a program");
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o755)).expect("one");
        let link = dir.path().join("tidings");
        std::os::unix::fs::symlink(&real, &link).expect("a link");
        let path = env::join_paths(["/nonexistent".as_ref(), dir.path()]).expect("a path");
        let called = |word: &OsStr| as_called(word, Some(&path));
        assert_eq!(called(OsStr::new("tidings")), Some(link.clone()));
        assert_eq!(called(link.as_os_str()), Some(link));
        assert_eq!(called(OsStr::new("elsewhere")), None);
    }
}
