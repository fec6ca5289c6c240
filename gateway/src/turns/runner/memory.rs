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
        let (files, path) = (
            self.runner.shelves.stores.files.clone(),
            workspace.join(&name),
        );
        let text = prompt::cut(text.to_owned(), MAX_NOTE_BYTES);
        let appending = tokio::task::spawn_blocking(move || append(&files, &path, &text));
        match appending.await {
            Ok(Ok(true)) => (format!("Appended to {}.", name.display()), false),
            Ok(Ok(false)) => (format!("{} is full.", name.display()), true),
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

/// False where the day's notes have no room for it.
fn append(files: &Files, path: &Path, text: &str) -> Result<bool, FileError> {
    let dir = path.parent().unwrap_or(path);
    for dir in [dir.parent().unwrap_or(dir), dir] {
        files.create_dir(dir)?;
    }
    let size = files.look(path)?.map_or(0, |seen| seen.size);
    if size + text.len() as u64 > MAX_DAY_BYTES {
        return Ok(false);
    }
    let text = format!("{}\n", text.trim_end());
    files.append(path, text.as_bytes())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_one_file_and_each_note_begins_on_a_line_of_its_own() {
        let dir = tempfile::tempdir().expect("scratch");
        let name = file_name(1_796_097_600_000);
        assert_eq!(name, Path::new("memory/2026-12-01.md"));
        let path = dir.path().join("w").join(name);
        let files = Files::default();
        for note in ["- one\n\n", "- two"] {
            assert!(append(&files, &path, note).expect("written"));
        }
        let written = std::fs::read_to_string(&path).expect("notes");
        assert_eq!(written, "- one\n- two\n");
    }
}
