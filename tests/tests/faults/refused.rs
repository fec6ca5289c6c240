//! A database that a gateway must not touch: it says which file and what to do, and leaves
//! every byte as it is.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tidings_tests::audit::DATABASE;
use tidings_tests::{Answer, DoorClient, Gateway, Mount, Scratch, Setup};

use crate::record;

/// A page of the database.
const PAGE_BYTES: usize = 4096;

/// Something that has happened to a database, and what is said of it.
struct Case {
    what: &'static str,
    happens: fn(&Path),
    code: i32,
    message: &'static [&'static str],
    hint: &'static str,
}

const CASES: &[Case] = &[
    Case {
        what: "a newer version has been here",
        happens: |database| run(database, LogEnd::Moved, "PRAGMA user_version = 99"),
        code: 65,
        message: &["state.sqlite", "schema 99", "left untouched"],
        hint: "newer version",
    },
    Case {
        what: "a newer version has been here, and crashed",
        happens: |database| {
            run(database, LogEnd::Left, "PRAGMA user_version = 99");
        },
        code: 65,
        message: &["state.sqlite", "schema 99", "left untouched"],
        hint: "newer version",
    },
    Case {
        what: "it belongs to another program",
        happens: |database| run(database, LogEnd::Moved, "PRAGMA application_id = 7"),
        code: 65,
        message: &["state.sqlite", "another program"],
        hint: "backup",
    },
    Case {
        what: "it is no database",
        happens: |database| fs::write(database, "Dear diary,\n".repeat(100)).expect("a diary"),
        code: 65,
        message: &["state.sqlite", "does not begin like a database"],
        hint: "backup",
    },
    Case {
        what: "its beginning is zeros",
        happens: |database| overwrite(database, 0, &[0; PAGE_BYTES]),
        code: 65,
        message: &["state.sqlite", "does not begin like a database"],
        hint: "backup",
    },
    Case {
        what: "it ends in the middle",
        happens: |database| {
            let file = OpenOptions::new().write(true).open(database).expect("open");
            let half = file.metadata().expect("its size").len() / 2;
            file.set_len(half).expect("half of it");
        },
        code: 65,
        message: &["state.sqlite", "left as it is"],
        hint: "backup",
    },
    Case {
        what: "a page of it is noise",
        happens: |database| {
            for page in 5..8 {
                overwrite(database, page, &[0xa5; PAGE_BYTES]);
            }
        },
        code: 65,
        message: &["state.sqlite", "left as it is"],
        hint: "backup",
    },
    Case {
        what: "it has been emptied",
        happens: |database| fs::write(database, b"").expect("nothing"),
        code: 65,
        message: &["state.sqlite", "empty", "a gateway was run"],
        hint: "backup",
    },
    Case {
        what: "it is gone",
        happens: |database| fs::remove_file(database).expect("gone"),
        code: 65,
        message: &["state.sqlite", "not there", "a gateway was run"],
        hint: "backup",
    },
    Case {
        what: "it is empty, beside its log",
        happens: |database| {
            fs::write(beside(database, "-wal"), [7; PAGE_BYTES]).expect("a log");
            fs::write(database, b"").expect("nothing");
        },
        code: 65,
        message: &["state.sqlite", "log"],
        hint: "backup",
    },
    Case {
        what: "it is gone, and its log is there",
        happens: |database| {
            fs::write(beside(database, "-wal"), [7; PAGE_BYTES]).expect("a log");
            fs::remove_file(database).expect("gone");
        },
        code: 65,
        message: &["state.sqlite", "log"],
        hint: "backup",
    },
    Case {
        what: "a directory is in its place",
        happens: |database| {
            fs::remove_file(database).expect("gone");
            fs::create_dir(database).expect("a directory");
        },
        code: 73,
        message: &["state.sqlite"],
        hint: "permissions",
    },
];

/// A gateway that does not run, with some signals in its database.
fn stopped_gateway(scratch: &Scratch, setup: Setup) -> Gateway {
    let mut gateway = Gateway::start_as(scratch, setup);
    let mut door = DoorClient::connect(gateway.state_dir());
    for session in 0..100 {
        let recorded = record(&mut door, &format!("agent:a:session-{session}"));
        recorded.expect("an answer").expect("a sequence");
    }
    assert_eq!(gateway.stop(), 0);
    gateway
}

#[test]
fn what_is_not_its_database_is_refused_by_name_and_left_as_it_is() {
    let scratch = Scratch::new();
    let gateway = stopped_gateway(&scratch, Setup::without_local_node());
    let database = gateway.state_dir().join(DATABASE);
    let well = fs::read(&database).expect("the database");
    for case in CASES {
        remove_all(&database);
        fs::write(&database, &well).expect("the database as it was");
        (case.happens)(&database);
        let before = contents(&database);
        let what = case.what;
        eprintln!("{what}");
        let answer = gateway.run_refused();
        said(&answer, case);
        assert!(contents(&database) == before, "{what}: {answer}");
        // And a second time: refusing has not made it any better.
        assert_eq!(gateway.run_refused().code, case.code, "{what}");
    }
    remove_all(&database);
    fs::write(&database, &well).expect("the database as it was");
    let mut gateway = gateway;
    gateway.restart();
}

fn said(answer: &Answer, case: &Case) {
    let what = case.what;
    assert_eq!(answer.code, case.code, "{what}: {answer}");
    let error = answer.refused();
    let message = error["message"].as_str().expect("a message");
    for part in case.message {
        assert!(message.contains(part), "{what}: {part}: {answer}");
    }
    let hint = error["hint"].as_str().expect("a hint");
    assert!(hint.contains(case.hint), "{what}: {answer}");
}

#[test]
fn a_state_directory_that_cannot_be_written_is_refused_by_name() {
    let scratch = Scratch::new();
    let Some(mount) = Mount::small(&scratch.folder("small"), 8 * 1024) else {
        eprintln!("skipped: this machine lets us mount nothing");
        return;
    };
    let state_dir = mount.path().join("gateway");
    let setup = Setup::without_local_node().with_state_dir(&state_dir);
    let mut gateway = stopped_gateway(&scratch, setup);
    let before = contents(&state_dir.join(DATABASE));
    mount.make_read_only();
    let answer = gateway.run_refused();
    assert_eq!(answer.code, 73, "{answer}");
    let error = answer.refused();
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains(&*state_dir.to_string_lossy()), "{answer}");
    assert!(error["hint"].is_string(), "{answer}");
    assert!(contents(&state_dir.join(DATABASE)) == before);
    mount.make_writable();
    gateway.restart();
}

#[test]
fn a_page_that_turns_out_to_be_noise_ends_a_running_gateway() {
    let scratch = Scratch::new();
    let mut gateway = stopped_gateway(&scratch, Setup::without_local_node());
    gateway.restart();
    let database = gateway.state_dir().join(DATABASE);
    let pages = fs::metadata(&database).expect("its size").len() / PAGE_BYTES as u64;
    for page in 1..usize::try_from(pages).expect("a small number") {
        overwrite(&database, page, &[0xa5; PAGE_BYTES]);
    }
    let before = contents(&database);
    let answer = gateway.run(&["signals", "list", "--limit", "10000"]);
    assert_ne!(answer.code, 0, "{answer}");
    let ended = gateway.wait_for_end();
    assert_eq!(ended.code, 70, "{ended:?}");
    let error = ended.said.last().expect("an error on stdout");
    let message = error["error"]["message"].as_str().expect("a message");
    assert!(message.contains("state.sqlite"), "{ended:?}");
    // For whoever looks at what is left.
    assert!(contents(&database) == before);
    assert_eq!(gateway.run_refused().code, 65);
}

/// What becomes of the log of another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LogEnd {
    Moved,
    /// As after a crash.
    Left,
}

/// Another program runs a statement.
fn run(database: &Path, end: LogEnd, statement: &str) {
    let conn = Connection::open(database).expect("the database");
    let keep_log = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    let left = end == LogEnd::Left;
    conn.set_db_config(keep_log, left).expect("the log's end");
    conn.execute_batch(statement).expect("a statement");
    drop(conn);
    let log = fs::metadata(beside(database, "-wal")).map_or(0, |log| log.len());
    assert_eq!(log > 0, left, "the log has {log} bytes");
}

fn overwrite(database: &Path, page: usize, with: &[u8]) {
    let file = OpenOptions::new().write(true).open(database).expect("open");
    let at = (page * PAGE_BYTES) as u64;
    file.write_all_at(with, at).expect("noise");
}

fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// The bytes of the database and of its log, as far as there are any: an empty log says
/// nothing.
fn contents(database: &Path) -> [Option<Vec<u8>>; 2] {
    [database.to_owned(), beside(database, "-wal")].map(|path| {
        let bytes = fs::read(path).ok()?;
        (!bytes.is_empty()).then_some(bytes)
    })
}

fn remove_all(database: &Path) {
    let _ = fs::remove_dir(database);
    for path in [
        database.to_owned(),
        beside(database, "-wal"),
        beside(database, "-shm"),
    ] {
        let _ = fs::remove_file(path);
    }
}
