//! The first command of a new user.

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
