//! A small sample tree, for machines that have no transcripts yet.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use tidings_node::cli::format::utc;
use tidings_node::private_files::{self, FileError};
use tidings_protocol::EpochMs;

/// A conversation of a few lines.
const SESSION: &str = include_str!("session.jsonl");
/// Its thread id: the stem of its file.
pub(super) const THREAD: &str = "5a3d1c9e-7b42-4f0a-9c1d-2e8f6b7a9d10";
/// Its project directory, named as Claude Code names it.
const PROJECT: &str = "-home-you-shop";

/// Writes the sample tree below `root`, a directory as `~/.claude/projects` is one. One that
/// stands there already is left as it is.
pub(super) fn write(root: &Path) -> Result<PathBuf, FileError> {
    let project = root.join(PROJECT);
    private_files::create_dir(&project)?;
    let file = project.join(format!("{THREAD}.jsonl"));
    if !file.exists() {
        private_files::replace(&file, SESSION.as_bytes())?;
    }
    Ok(file)
}

/// Appends what Claude Code appends when a person types: one line.
pub(super) fn append_human_line(file: &Path, now: EpochMs) -> Result<(), FileError> {
    let mut line = human_line(now);
    line.push('\n');
    OpenOptions::new()
        .append(true)
        .open(file)
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .map_err(FileError::at("append to", file))
}

/// A command for a shell that appends what a person might type.
pub(super) fn command_to_append(path: &str) -> String {
    let line = r#"{"type":"user","message":{"role":"user","content":"Hello"}}"#;
    format!("printf '%s\\n' '{line}' >> '{path}'")
}

fn human_line(now: EpochMs) -> String {
    serde_json::json!({
        "parentUuid": "0d0c8a54-0000-4000-8000-000000000004",
        "type": "user",
        "uuid": format!("0d0c8a54-0000-4000-8000-{:012x}", now & 0xffff_ffff_ffff),
        "timestamp": format!("{}.{:03}Z", utc(now).replace(' ', "T"), now.rem_euclid(1_000)),
        "isSidechain": false,
        "userType": "external",
        "entrypoint": "cli",
        "promptSource": "typed",
        "origin": {"kind": "human"},
        "cwd": "/home/you/shop",
        "sessionId": THREAD,
        "version": "2.1.280",
        "gitBranch": "main",
        "message": {"role": "user", "content": "Stop: prices come from the new service now."},
    })
    .to_string()
}
