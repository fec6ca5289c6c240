//! Backups of a gateway that is asked for everything at once, and what becomes of them.

use std::fs;
use std::path::Path;

use tidings_tests::audit::{DATABASE, audit};
use tidings_tests::{Dice, DoorClient, Gateway, Load, Mount, Scratch, Setup, seed};

use crate::record;

fn quiet() -> Setup {
    Setup::without_local_node().quiet()
}

fn back_up(gateway: &Gateway, file: &Path) {
    let answer = gateway.ask(&["backup", file.to_str().expect("a path")]);
    assert_eq!(answer["bytes"], fs::metadata(file).expect("a file").len());
}

#[test]
fn a_backup_under_load_has_all_that_was_answered_before_and_a_gateway_starts_from_it() {
    let scratch = Scratch::new();
    let gateway = Gateway::start_as(&scratch, quiet());
    let running = Load::of_callers(&mut Dice::new(seed())).start(&gateway);
    let mut door = DoorClient::connect(gateway.state_dir());
    for round in 0..3 {
        running.work_until(100);
        let last = record(&mut door, "agent:load:target-0").expect("an answer");
        let last = last.expect("a sequence");
        let copy = scratch.folder(&format!("copy-{round}"));
        back_up(&gateway, &copy.join(DATABASE));
        let found = audit(&copy);
        assert_eq!(found.findings, Vec::<String>::new());
        assert!(found.snapshot.head() >= last);
        // Nothing in the copy that is not in the log, and nothing of the log left out.
        let live = audit(gateway.state_dir()).snapshot;
        assert_eq!(live.broken_since(&found.snapshot), Vec::<String>::new());
        restored(&scratch, &copy, last);
    }
    assert_eq!(
        running.stop().compare(gateway.state_dir()),
        Vec::<String>::new()
    );
}

/// A gateway starts on a state directory that has nothing but the copy, and goes on there.
fn restored(scratch: &Scratch, copy: &Path, last: u64) {
    let mut gateway = Gateway::start_as(scratch, quiet().with_state_dir(copy));
    let mut door = DoorClient::connect(copy);
    let next = record(&mut door, "agent:load:target-0").expect("an answer");
    assert!(next.expect("a sequence") > last);
    assert_eq!(gateway.stop(), 0);
    assert_eq!(audit(copy).findings, Vec::<String>::new());
}

#[test]
fn a_backup_for_which_there_is_no_room_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let Some(mount) = Mount::small(&scratch.folder("small"), 128) else {
        eprintln!("skipped: this machine lets us mount nothing");
        return;
    };
    let gateway = Gateway::start_as(&scratch, quiet());
    let file = mount.path().join("backup.sqlite");
    let name = file.to_str().expect("a path");
    let answer = gateway.run(&["backup", name]);
    let error = answer.refused();
    assert_eq!(error["type"], "cannot_create", "{answer}");
    assert_eq!(answer.code, 73, "{answer}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains(name), "{answer}");
    let left: Vec<_> = fs::read_dir(mount.path()).expect("a folder").collect();
    assert!(left.is_empty(), "{left:?}");
    // The gateway's own disk is not full.
    let status = crate::status(&gateway);
    assert_eq!(status.gateway.database, "ok");
    back_up(&gateway, &scratch.path().join("elsewhere.sqlite"));
}

#[test]
fn a_backup_put_beside_the_log_of_what_came_after_it_is_never_taken_for_the_truth() {
    let scratch = Scratch::new();
    let mut gateway = Gateway::start_as(&scratch, quiet());
    let running = Load::of_callers(&mut Dice::new(seed())).start(&gateway);
    running.work_until(200);
    let copy = scratch.path().join("backup.sqlite");
    back_up(&gateway, &copy);
    running.work_until(200);
    gateway.kill();
    running.stop();
    // What somebody in a hurry does.
    fs::copy(&copy, gateway.state_dir().join(DATABASE)).expect("a copy");
    let answer = gateway.run_refused();
    assert_eq!(answer.code, 65, "{answer}");
}
