//! What hooks could not do: a small file in the state directory, because nobody sees their
//! errors.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::super::Program;
use crate::cli::format::utc;
use crate::clock::{Clock, SystemClock};

/// The file.
const LOG_FILE: &str = "hook.log";
/// A file that has this many bytes is begun anew.
const MAX_BYTES: u64 = 64 * 1024;

/// Notes why a hook said nothing. Where it cannot, nobody is told.
pub(super) fn note(state_dir: &Path, program: Program, reason: &str) {
    let path = state_dir.join(LOG_FILE);
    let full = path.metadata().is_ok_and(|file| file.len() >= MAX_BYTES);
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    if full {
        options.write(true).truncate(true);
    } else {
        options.append(true);
    }
    let now = utc(SystemClock::new().now());
    let line = format!("{now} UTC {}: {reason}\n", program.as_str());
    if let Ok(mut file) = options.open(path) {
        // A full disk is the node agent's to tell.
        let _ = file.write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_a_limit_and_makes_no_directory() {
        let dir = tempfile::tempdir().expect("scratch");
        let missing = dir.path().join("missing");
        note(&missing, Program::Codex, "nobody hears it");
        assert!(!missing.exists());
        for _ in 0..100 {
            note(dir.path(), Program::Codex, &"r".repeat(1_000));
        }
        let size = dir.path().join(LOG_FILE).metadata().expect("a log").len();
        assert!(size > 1_000 && size < MAX_BYTES + 2_000, "{size}");
    }
}
