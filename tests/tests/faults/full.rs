//! A file system that is really full: everything of the gateway is on it, not only the
//! database.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry, File};
use std::io::{self, Write};
use std::path::Path;

use serde_json::Value;
use tidings_tests::audit::snapshot;
use tidings_tests::{Dice, Gateway, Load, Mount, Scratch, Setup, seed, until};

use crate::status;

/// The file system: the database of a few thousand signals, and its log.
const SIZE_KIB: u32 = 6 * 1024;

#[test]
fn a_full_file_system_is_survived_and_left_by_itself() {
    let scratch = Scratch::new();
    let (claude, codex) = (scratch.folder("claude"), scratch.folder("codex"));
    let Some(mount) = Mount::small(&scratch.folder("small"), SIZE_KIB) else {
        eprintln!("skipped: this machine lets us mount nothing");
        return;
    };
    let state_dir = mount.path().join("gateway");
    let setup = Setup::with_local_node(&claude, &codex).quiet().with_http();
    let mut gateway = Gateway::start_as(&scratch, setup.with_state_dir(&state_dir));
    let mut dice = Dice::new(seed());
    let running = Load::of_callers_and_people(&mut dice, &claude).start(&gateway);
    running.work_until(100);

    let filler = mount.path().join("filler");
    fill(&filler);
    until("reading only", || {
        (status(&gateway).gateway.database == "read_only").then_some(())
    });
    let (code, body) = gateway.get("/readyz");
    let reasons = r#"{"ready":false,"reasons":["the database is read-only"]}"#;
    assert_eq!((code, body.as_str()), (503, reasons));
    let (_, figures) = gateway.get("/metrics");
    assert!(
        figures.contains("\ntidings_database_serving 0\n"),
        "{figures}"
    );
    running.work_until(50);
    let listed = gateway.ask(&["signals", "list", "--limit", "1"]);
    assert_eq!(listed["signals"].as_array().map(Vec::len), Some(1));

    fs::remove_file(&filler).expect("room again");
    until("writing again by itself", || {
        (status(&gateway).gateway.database == "ok").then_some(())
    });
    assert_eq!(gateway.get("/readyz").0, 200);
    running.work_until(50);
    let mut load = running.stop();
    // What people typed while the disk was full has waited in the transcripts.
    let wrong = load.compare_when_recorded(&state_dir);
    assert_eq!(wrong, Vec::<String>::new());

    until("every entry stands in the projection of its agent", || {
        let entries = snapshot(&state_dir).entries;
        (projected(&state_dir) == entries).then_some(())
    });

    // Killed on a full disk, and started there: it says so, and starts once there is room.
    let running = load.start(&gateway);
    fill(&filler);
    until("reading only once more", || {
        (status(&gateway).gateway.database == "read_only").then_some(())
    });
    gateway.kill();
    let mut load = running.stop();
    let answer = gateway.run_refused();
    let error = answer.refused();
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains(&*state_dir.to_string_lossy()), "{answer}");
    assert_eq!(answer.code, 75, "{answer}");
    fs::remove_file(&filler).expect("room again");
    gateway.restart();
    let wrong = load.compare_when_recorded(&state_dir);
    assert_eq!(wrong, Vec::<String>::new());
}

/// The sessions in the projections of all agents; none where there is no projection yet.
fn projected(state_dir: &Path) -> BTreeSet<String> {
    let Ok(agents) = fs::read_dir(state_dir.join("agents")) else {
        return BTreeSet::new();
    };
    let read = |agent: io::Result<DirEntry>| {
        let path = agent
            .expect("an agent")
            .path()
            .join("sessions/sessions.json");
        let text = fs::read_to_string(path).ok()?;
        let entries: Value = serde_json::from_str(&text).expect("JSON");
        let keys = entries.as_object().expect("an object").keys();
        Some(keys.cloned().collect::<Vec<_>>())
    };
    agents.filter_map(read).flatten().collect()
}

/// Takes all the room there is.
fn fill(filler: &Path) {
    let mut file = File::create(filler).expect("a filler");
    for size in [64 * 1024, 4 * 1024, 512] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
}
