//! When the file of a thread counts as gone, and when it does not.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use tidings_tests::transcripts::{Claude, Codex, Transcript};
use tidings_tests::{
    Adopted, Gateway, Mount, Namespace, Node, Scratch, TwoMachines, WATCHER, counted_turns, notice,
    until,
};

/// How a file goes.
type Take = fn(&Path);
/// Three misses take 92 s at the least; the rest is for a busy machine.
const THREE_MISSES: Duration = Duration::from_mins(3);

#[test]
fn a_file_that_is_gone_is_told_of_after_three_looks_and_one_out_of_reach_never() {
    let machines = TwoMachines::start();
    let gateway = &machines.gateway;
    let mut gone = Vec::new();
    let takes: [(&str, Take); 4] = [
        ("deleted", |path| remove(path)),
        ("a directory", |path| {
            remove(path);
            fs::create_dir(path).expect("a directory");
        }),
        ("a dangling link", |path| {
            remove(path);
            symlink("nowhere", path).expect("a link");
        }),
        ("set aside under a name that is no transcript's", |path| {
            fs::rename(path, path.with_extension("jsonl.bak")).expect("aside");
        }),
    ];
    for (what, take) in takes {
        let claude = Claude::create(&machines.node.claude());
        gone.push((what, machines.adopt(&claude), claude, take));
    }
    let codex = Codex::create(&machines.node.codex());
    let compressed = machines.adopt(&codex);

    // Another machine's root is a file system that is about to be taken away.
    let mut other = Node::join(gateway, "desk");
    let disk = gateway.scratch().folder("disk");
    let mount = Mount::bind(&disk, &other.claude());
    other.run();
    let mut mounted = Claude::create(&other.claude());
    let out_of_reach = watched(gateway, "desk", &mounted);
    // A third machine's agent is killed again and again.
    let mut flapping = Node::join(gateway, "phone");
    flapping.run();
    let deleted = Claude::create(&flapping.claude());
    let reconnecting = watched(gateway, "phone", &deleted);

    for (_, _, claude, take) in &gone {
        take(claude.path());
    }
    codex.compress();
    remove(deleted.path());
    until("a miss", || {
        (look(gateway, &reconnecting).1 == 1).then_some(())
    });
    for _ in 0..3 {
        flapping.kill();
        flapping.run();
        // Each agent counts from nothing, and knows the root that one before it has seen.
        until("a miss anew", || {
            (look(gateway, &reconnecting).1 == 1).then_some(())
        });
    }
    match &mount {
        Some(mount) => mount.take_away(),
        None => eprintln!("skipped in part: this machine lets us mount nothing"),
    }

    for (what, session, _, _) in &gone {
        told_gone(&machines, what, session);
    }
    // All were looked at as often.
    assert_eq!(look(gateway, &compressed.key).1, 0);
    assert_eq!(state(gateway, &compressed.key), "live");
    if mount.is_some() {
        assert_eq!(look(gateway, &out_of_reach), ("inconclusive".to_owned(), 0));
        let back = Mount::bind(&disk, &other.claude()).expect("mounted once, mounted again");
        // Nobody is told of a mount: a sweep finds it.
        let turn = mounted.human("Stop the mill.");
        let mut follow = gateway.follow(0);
        while follow.signal_within(THREE_MISSES).expect("a signal")["kind"]
            != "human_direct_message"
        {}
        assert_eq!(counted_turns(gateway, &out_of_reach), [turn]);
        drop(back);
    }
}

#[test]
fn a_file_that_may_not_be_read_is_inconclusive_and_counts_when_it_may() {
    let gateway = Gateway::start(&Scratch::new());
    let Some(namespace) = Namespace::of_another_user(gateway.scratch()) else {
        eprintln!("skipped: this machine lets us make no user namespace");
        return;
    };
    let mut node = Node::join(&gateway, "laptop");
    node.run_in(namespace);
    let machines = TwoMachines { gateway, node };
    let mut claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);
    let Ok(()) = std::os::unix::fs::chown(claude.path(), Some(12_345), Some(12_345)) else {
        eprintln!("skipped: this user can give no file away");
        return;
    };
    make_private(claude.path());
    let turn = claude.human("Stop the mill.");
    until("a look in vain", || {
        (look(&machines.gateway, &session.key).0 == "inconclusive").then_some(())
    });
    std::os::unix::fs::chown(claude.path(), Some(0), Some(0)).expect("taken back");
    let mut follow = machines.gateway.follow(session.version);
    follow.wait_for_turns(&session.key, 1);
    assert_eq!(counted_turns(&machines.gateway, &session.key), [turn]);
    assert_eq!(
        look(&machines.gateway, &session.key),
        ("activity".to_owned(), 0)
    );

    // In a folder that may not be read anything may stand, also what is gone from its place.
    let closed = machines.node.claude().join("-home-ada-closed");
    fs::create_dir(&closed).expect("a folder");
    make_private(&closed);
    std::os::unix::fs::chown(&closed, Some(12_345), Some(12_345)).expect("given away");
    remove(claude.path());
    until("a look in vain", || {
        (look(&machines.gateway, &session.key) == ("inconclusive".to_owned(), 0)).then_some(())
    });
}

#[test]
fn the_first_good_look_is_told_also_by_an_agent_that_was_started_anew() {
    let mut machines = TwoMachines::start();
    let claude = Claude::create(&machines.node.claude());
    let session = machines.adopt(&claude);
    let aside = claude.path().with_extension("aside");
    fs::rename(claude.path(), &aside).expect("aside");
    until("a miss", || {
        (look(&machines.gateway, &session.key) == ("missing".to_owned(), 1)).then_some(())
    });
    machines.node.kill();
    fs::rename(&aside, claude.path()).expect("back");
    machines.node.run();
    until("a good look", || {
        (look(&machines.gateway, &session.key) == ("quiet".to_owned(), 0)).then_some(())
    });
}

/// `upstream_missing` is told of once, the link is gone with it, and going on makes a new one.
#[track_caller]
fn told_gone(machines: &TwoMachines, what: &str, session: &Adopted) {
    let gateway = &machines.gateway;
    let mut follow = gateway.follow(session.version);
    let began = Instant::now();
    let signal = loop {
        let left = THREE_MISSES.saturating_sub(began.elapsed());
        let signal = follow
            .signal_within(left)
            .unwrap_or_else(|| panic!("{what}: no signal"));
        if signal["sessionKey"] == session.key {
            break signal;
        }
    };
    assert_eq!(signal["kind"], "upstream_missing", "{what}: {signal}");
    assert_eq!(signal["summary"], "upstream missing via claude", "{what}");
    assert_eq!(state(gateway, &session.key), "unlinked", "{what}");
    let pending = gateway.ask(&["notices", "list", WATCHER]);
    let told = notice(&session.key, session.version);
    assert!(
        pending["notices"]
            .to_string()
            .contains(&told.replace('"', "\\\"")),
        "{what}: {pending}"
    );
}

/// The outcome of the last report, and how many misses count.
fn look(gateway: &Gateway, session: &str) -> (String, i64) {
    let file = gateway.state_dir().join("state.sqlite");
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY);
    database
        .expect("a database")
        .query_row(
            "SELECT coalesce(last_outcome, 'none'), misses FROM session_upstream_links
             WHERE session_key = ?1",
            [session],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .expect("a link")
}

fn state(gateway: &Gateway, session: &str) -> String {
    let status = gateway.ask(&["sessions", "status", session]);
    let state = status["upstream"]["state"].as_str().expect("a state");
    state.to_owned()
}

/// Adopts a thread of some machine, watched; its session.
fn watched(gateway: &Gateway, host: &str, claude: &Claude) -> String {
    let thread = claude.thread();
    let adopted = gateway.ask(&[
        "sessions",
        "adopt",
        "claude",
        host,
        thread,
        "--watch-by",
        WATCHER,
    ]);
    adopted["sessionKey"].as_str().expect("a key").to_owned()
}

fn remove(path: &Path) {
    fs::remove_file(path).expect("remove");
}

fn make_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("chmod");
}
