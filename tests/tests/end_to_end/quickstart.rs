//! The first command of a new user.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use tidings_tests::{Scratch, binaries, run};

#[test]
fn quickstart_shows_the_main_job_to_a_new_user_and_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&binaries().tidings);
    let answer = run(command.args(["quickstart", "--once"]));
    assert_eq!(answer.code, 0, "{answer}");
    for shown in [
        "human_direct_message",
        "changed (other actor). Reconcile before acting: session_status",
        "changesSince",
        " ms",
    ] {
        assert!(answer.stdout.contains(shown), "no {shown:?}: {answer}");
    }
    for folder in [scratch.home(), scratch.tmp()] {
        let left: Vec<_> = std::fs::read_dir(&folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn quickstart_on_a_machine_without_transcripts_makes_a_sample_and_stays_until_it_is_interrupted() {
    let scratch = Scratch::new();
    // The second time everything is there already.
    for _ in 0..2 {
        let mut command = scratch.command(&binaries().tidings);
        command
            .args(["quickstart", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut quickstart = command.spawn().expect("a quickstart");
        let stderr = quickstart.stderr.take().expect("its notes");
        let mut notes = BufReader::new(stderr).lines();
        let mut said = Vec::new();
        let is_watching = |note: &String| note.contains("agent:main:main watches");
        for note in notes.by_ref() {
            said.push(note.expect("a note"));
            if said.last().is_some_and(is_watching) {
                break;
            }
        }
        assert!(said.last().is_some_and(is_watching), "{said:#?}");
        let interrupted = Command::new("kill")
            .args(["-INT", &quickstart.id().to_string()])
            .status();
        assert!(interrupted.is_ok_and(|status| status.success()));
        assert_eq!(quickstart.wait().expect("an end").code(), Some(0));
    }
}
