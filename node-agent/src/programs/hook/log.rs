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
    let there = path.symlink_metadata();
    if there.as_ref().is_ok_and(|file| !file.is_file()) {
        // A pipe would have a hook wait for a reader, a link lead it elsewhere.
        return;
    }
    let full = there.is_ok_and(|file| file.len() >= MAX_BYTES);
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

    #[test]
    fn a_log_that_is_no_file_is_left_alone_and_nobody_waits_for_it() {
        let dir = tempfile::tempdir().expect("scratch");
        let elsewhere = dir.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, dir.path().join(LOG_FILE)).expect("a link");
        note(dir.path(), Program::Codex, "nobody hears it");
        assert!(!elsewhere.exists());
        std::fs::remove_file(dir.path().join(LOG_FILE)).expect("removed");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let pipe = dir.path().join(LOG_FILE);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0)
            .expect("a pipe");
        note(dir.path(), Program::Codex, "nobody hears it");
    }
}
