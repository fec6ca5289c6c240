//! Runs the real binary and takes down everything it says.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::fake::Fake;

/// The binary, in an environment that holds nothing of this machine.
pub(crate) fn tidings(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidings"));
    command
        .args(line.split_whitespace())
        .env_clear()
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null());
    command
}

/// The whole output of a command against a fake gateway, and what it asked.
pub(crate) fn with(fake: &Fake, line: &str) -> String {
    let output = in_state_dir(fake.state_dir(), line);
    let asked = fake.asked();
    let asked: Vec<_> = asked.iter().map(|asked| format!("{asked:?}")).collect();
    format!("{output}--- asked\n{}", asked.join("\n"))
}

/// The whole output of a command in a state directory.
pub(crate) fn in_state_dir(state_dir: &Path, line: &str) -> String {
    let mut command = tidings(line);
    command.env("TIDINGS_STATE_DIR", state_dir);
    whole(&command.output().expect("run"), state_dir)
}

/// The whole output of a command without a gateway anywhere.
pub(crate) fn alone(line: &str) -> String {
    whole(&tidings(line).output().expect("run"), Path::new("[STATE]"))
}

/// An output as text, the state directory's place left out.
pub(crate) fn whole(output: &Output, state_dir: &Path) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    format!(
        "exit {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().expect("ended by itself"),
        text(&output.stdout),
        text(&output.stderr)
    )
    .replace(&state_dir.display().to_string(), "[STATE]")
}
