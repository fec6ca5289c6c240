//! The scripts: each can be started, from anywhere, and says how.

use std::fs;
use std::path::Path;

use tidings_tests::{Scratch, run};

#[test]
fn every_script_says_how_it_is_used_wherever_it_is_called_from() {
    let scratch = Scratch::new();
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts");
    let scripts = fs::canonicalize(scripts).expect("the scripts");
    let mut seen = 0;
    for entry in fs::read_dir(scripts).expect("the scripts") {
        let script = entry.expect("a script").path();
        if !script.is_file() {
            continue;
        }
        let name = script.file_name().and_then(|name| name.to_str());
        let usage = format!("usage: scripts/{}", name.expect("a name"));
        assert!(says(&scratch, &script, "--help").starts_with(&usage));
        assert_eq!(
            says(&scratch, &script, "-h"),
            says(&scratch, &script, "--help")
        );
        seen += 1;
    }
    assert!(seen > 0);
}

/// What a script prints that is only asked how it is used.
fn says(scratch: &Scratch, script: &Path, flag: &str) -> String {
    let answer = run(scratch.command(script).arg(flag));
    assert_eq!(answer.code, 0, "{answer}");
    answer.stdout
}
