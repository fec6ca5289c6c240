//! The same scans counted in instructions: a figure that no other work on the machine changes.

use std::path::Path;
use std::process::Command;

use tidings_tests::Scratch;

use super::work::{Results, bare_scan, classify, transcript};
use crate::table::Figures;

/// A transcript that valgrind gets through in some seconds.
const BYTES: u64 = 16 * 1024 * 1024;

pub(crate) fn instructions(figures: &mut Figures) {
    let scratch = Scratch::new();
    let empty = scratch.folder("empty");
    let nothing = transcript(&empty, 0, Results::Large);
    for (results, folder, names) in [
        (
            Results::Large,
            "large",
            [
                "scan + classify, large results: instructions per byte",
                "bare scan of the same: instructions per byte",
            ],
        ),
        (
            Results::Small,
            "small",
            [
                "scan + classify, small results: instructions per byte",
                "bare scan of those: instructions per byte",
            ],
        ),
    ] {
        let root = scratch.folder(folder);
        let path = transcript(&root, BYTES, results);
        for (what, name) in ["classify", "bare"].into_iter().zip(names) {
            let counts = (count(what, &root, &path), count(what, &empty, &nothing));
            let (Some(all), Some(overhead)) = counts else {
                return figures.add(name, "skipped: no valgrind here".to_owned(), "-");
            };
            #[expect(clippy::cast_precision_loss, reason = "a figure with two digits")]
            let per_byte = (all - overhead) as f64 / BYTES as f64;
            figures.add(name, format!("{per_byte:.2}"), "-");
        }
    }
}

/// The process of one scan, under valgrind.
pub(crate) fn alone(what: &str, root: &Path, path: &Path) {
    match what {
        "classify" => drop(classify(root, path)),
        _ => drop(bare_scan(path)),
    }
}

/// How many instructions a process of this program takes for one scan of the file.
fn count(what: &str, root: &Path, path: &Path) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .args(["alone", what])
        .args([root, path])
        .output()
        .ok()?;
    let said = String::from_utf8(output.stderr).ok()?;
    let line = said
        .lines()
        .find_map(|line| line.split_once("Collected : "))?;
    line.1.trim().parse().ok()
}
