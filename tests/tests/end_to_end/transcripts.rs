//! The transcripts of these tests are what they are meant to be: otherwise the other tests
//! prove nothing.

use std::path::Path;

use tidings_tests::transcripts::{Claude, Codex, Transcript};
use tidings_tests::{Scratch, binaries, run};

#[test]
fn the_classifier_sees_a_human_exactly_where_a_test_had_one_type() {
    let scratch = Scratch::new();
    let mut claude = Claude::create(&scratch.folder("claude"));
    let mut codex = Codex::create(&scratch.folder("codex"));
    let first = [claude.human("one"), codex.human("one")];
    claude.everything_but_a_human("two");
    codex.everything_but_a_human("two");
    let second = [claude.human("three"), codex.human("three")];
    for (path, turns) in [
        (claude.path(), [&first[0], &second[0]]),
        (codex.path(), [&first[1], &second[1]]),
    ] {
        let starts: Vec<u64> = turns.iter().map(|turn| turn.start).collect();
        // Each builder begins with a conversation that has one prompt in it.
        assert_eq!(humans(&scratch, path)[1..], starts, "{}", path.display());
    }
}

/// Where the records begin that `tidings-node classify` calls human.
fn humans(scratch: &Scratch, path: &Path) -> Vec<u64> {
    let mut command = scratch.command(&binaries().node);
    let document = run(command.arg("classify").arg(path).arg("--json")).done();
    let records = document["records"].as_array().expect("records");
    records
        .iter()
        .filter(|record| record["verdict"] == "human")
        .map(|record| record["byteStart"].as_u64().expect("where it begins"))
        .collect()
}
