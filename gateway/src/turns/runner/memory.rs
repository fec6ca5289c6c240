//! The agent's workspace: what it is told there, and the notes it keeps.

use std::path::{Path, PathBuf};

use tidings_node::private_files::FileError;
use tidings_protocol::EpochMs;

use super::Runner;
use super::prompt::{self, MAX_INSTRUCTIONS_BYTES};
use super::turn::Turn;
use crate::config::{Config, WorkspaceAccess};
use crate::sessions::files::Files;
use crate::sessions::local_time::offset_at;
use crate::sessions::transcript::entry::iso;
use crate::state::SessionAddress;

/// One note has at most so many bytes.
const MAX_NOTE_BYTES: usize = 64 * 1024;
/// And the notes of a day so many.
const MAX_DAY_BYTES: u64 = 16 * 1024 * 1024;
const INSTRUCTIONS: &str = "AGENTS.md";

impl Runner {
    /// What a model is told before the conversation: AGENTS.md of its workspace with it, where
    /// the agent may read there.
    pub(super) async fn system_prompt(&self, session: &SessionAddress, config: &Config) -> String {
        let instructions = self.instructions(session, config).await;
        prompt::system(session, instructions.as_deref())
    }

    /// AGENTS.md of an agent's workspace.
    pub(super) async fn instructions(
        &self,
        session: &SessionAddress,
        config: &Config,
    ) -> Option<String> {
        let agent = session.agent().as_str();
        if config.agents.workspace_access(agent) == WorkspaceAccess::None {
            return None;
        }
        let workspace = config
            .agents
            .workspace(agent, &self.shelves.stores.state_dir);
        let path = workspace.join(INSTRUCTIONS);
        let files = self.shelves.stores.files.clone();
        let reading =
            tokio::task::spawn_blocking(move || files.head(&path, MAX_INSTRUCTIONS_BYTES));
        match reading.await {
            Ok(Ok(head)) if head.is_empty() => None,
            Ok(Ok(head)) => Some(String::from_utf8_lossy(&head).into_owned()),
            Ok(Err(error)) => {
                tracing::warn!(%session, %error, "the agent's instructions are not read");
                None
            }
            Err(_) => None,
        }
    }
}

impl Turn<'_> {
    /// Appends to today's notes; what the model is answered, and whether that is an error.
    pub(super) async fn remember(&self, text: &str) -> (String, bool) {
        let agents = &self.config.agents;
        let agent = self.session.agent().as_str();
        let workspace = agents.workspace(agent, &self.runner.shelves.stores.state_dir);
        let now = self.runner.shelves.stores.clock.now();
        let zone = jiff::tz::TimeZone::system();
        let name = file_name(now + offset_at(&zone, now));
        let files = self.runner.shelves.stores.files.clone();
        let (text, file) = (prompt::cut(text.to_owned(), MAX_NOTE_BYTES), name.clone());
        let appending =
            tokio::task::spawn_blocking(move || append(&files, &workspace, &file, &text));
        let name = name.display();
        match appending.await {
            Ok(Ok(Appended::Written)) => (format!("Appended to {name}."), false),
            Ok(Ok(Appended::Full)) => (format!("{name} is full."), true),
            Ok(Ok(Appended::Outside)) => (format!("{name} leads out of the workspace."), true),
            Ok(Err(error)) => {
                tracing::warn!(session = %self.session, %error, "notes were not written");
                ("The notes cannot be written.".to_owned(), true)
            }
            Err(_) => ("The notes cannot be written.".to_owned(), true),
        }
    }
}

/// The notes of a local day, below the workspace.
fn file_name(local: EpochMs) -> PathBuf {
    let day = iso(local);
    Path::new("memory").join(format!("{}.md", &day[..10]))
}

/// What became of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Appended {
    Written,
    /// The day's notes have no room for it.
    Full,
    /// Links lead out of the workspace: nothing is written there.
    Outside,
}

fn append(files: &Files, workspace: &Path, name: &Path, text: &str) -> Result<Appended, FileError> {
    let path = workspace.join(name);
    let dir = path.parent().unwrap_or(workspace);
    for dir in [workspace, dir] {
        files.create_dir(dir)?;
    }
    if !is_inside(files, workspace, &path, dir)? {
        return Ok(Appended::Outside);
    }
    let size = files.look(&path)?.map_or(0, |seen| seen.size);
    if size + text.len() as u64 > MAX_DAY_BYTES {
        return Ok(Appended::Full);
    }
    let text = format!("{}\n", text.trim_end());
    files.append(&path, text.as_bytes())?;
    Ok(Appended::Written)
}

/// True where the file of the notes is, or will be, below the workspace. A link to nowhere
/// would be made a file elsewhere.
fn is_inside(files: &Files, workspace: &Path, path: &Path, dir: &Path) -> Result<bool, FileError> {
    let Some(workspace) = files.real(workspace)? else {
        return Ok(false);
    };
    let place = match files.kind(path)? {
        Some(_) => files.real(path)?,
        None => files.real(dir)?,
    };
    Ok(place.is_some_and(|place| place.starts_with(workspace)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_one_file_and_each_note_begins_on_a_line_of_its_own() {
        let dir = tempfile::tempdir().expect("scratch");
        let name = file_name(1_796_097_600_000);
        assert_eq!(name, Path::new("memory/2026-12-01.md"));
        let (files, workspace) = (Files::default(), dir.path().join("w"));
        for note in ["- one\n\n", "- two"] {
            let appended = append(&files, &workspace, &name, note).expect("written");
            assert_eq!(appended, Appended::Written);
        }
        let written = std::fs::read_to_string(workspace.join(name)).expect("notes");
        assert_eq!(written, "- one\n- two\n");
    }

    #[test]
    fn notes_are_written_nowhere_but_in_the_workspace() {
        let dir = tempfile::tempdir().expect("scratch");
        let (files, name) = (Files::default(), Path::new("memory/2026-12-01.md"));
        let made = |workspace: &str| {
            let workspace = dir.path().join(workspace);
            std::fs::create_dir_all(workspace.join("elsewhere")).expect("made");
            workspace
        };
        std::fs::create_dir(dir.path().join("out")).expect("made");
        for (workspace, target, link, expected) in [
            ("a", "out", "memory", Appended::Outside),
            ("b", "out/file", "memory/2026-12-01.md", Appended::Outside),
            ("c", "c/elsewhere", "memory", Appended::Written),
        ] {
            let root = made(workspace);
            if link.contains('/') {
                std::fs::create_dir(root.join("memory")).expect("made");
            }
            std::os::unix::fs::symlink(dir.path().join(target), root.join(link)).expect("a link");
            let appended = append(&files, &root, name, "- one").expect("an end");
            assert_eq!(appended, expected, "{link} to {target}");
        }
        assert_eq!(
            files.names(&dir.path().join("out")).expect("listed").len(),
            0
        );
        // A workspace that is itself a link is the operator's own choice.
        let linked = dir.path().join("linked");
        std::os::unix::fs::symlink(made("d"), &linked).expect("a link");
        let appended = append(&files, &linked, name, "- one").expect("an end");
        assert_eq!(appended, Appended::Written);
    }
}
