//! What cannot be opened is refused by name and left as it is.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::state::{DATABASE_FILE, OpenError};

/// A directory with a closed database that holds one signal.
async fn closed() -> (TempDir, Arc<TestClock>) {
    let fixture = Fixture::new();
    fixture.change("agent:main:t").await;
    let Fixture { dir, clock, state } = fixture;
    state.close().await;
    (dir, clock)
}

fn refused(directory: &Path, clock: &Arc<TestClock>) -> OpenError {
    match State::open(&options(directory, clock)) {
        Err(error) => error,
        Ok(_) => panic!("it opened"),
    }
}

#[tokio::test]
async fn a_closed_database_is_one_file_that_only_its_owner_reads() {
    let (dir, _) = closed().await;
    let files: Vec<_> = fs::read_dir(dir.path())
        .expect("directory")
        .map(|file| file.expect("file").file_name())
        .collect();
    assert_eq!(files, [DATABASE_FILE]);
    let mode = fs::metadata(dir.path().join(DATABASE_FILE))
        .expect("file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// A journal that says that a database had no pages before the write that it belongs to, as
/// SQLite's file format lays it down.
fn journal_of_the_first_write() -> Vec<u8> {
    const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    const SECTOR_BYTES: u32 = 512;
    const PAGE_BYTES: u32 = 4096;
    let (records, nonce, pages_before): (u32, u32, u32) = (0, 7, 0);
    let mut journal = MAGIC.to_vec();
    for number in [records, nonce, pages_before, SECTOR_BYTES, PAGE_BYTES] {
        journal.extend(number.to_be_bytes());
    }
    journal.resize(SECTOR_BYTES as usize, 0);
    journal
}

#[tokio::test]
async fn a_database_whose_very_first_write_was_interrupted_is_begun_anew_and_stays_ours() {
    let dir = tempfile::tempdir().expect("directory");
    let clock = Arc::new(TestClock(Mutex::new((START, Duration::ZERO))));
    let path = dir.path().join(DATABASE_FILE);
    let ours = 0x5469_646e_u32;
    let conn = rusqlite::Connection::open(&path).expect("open");
    conn.pragma_update(None, "application_id", ours)
        .expect("the first write");
    drop(conn);
    let journal = dir.path().join(format!("{DATABASE_FILE}-journal"));
    fs::write(&journal, journal_of_the_first_write()).expect("killed before it was removed");
    // The engine takes the write back; neither this start nor the next one may mind.
    for _ in 0..2 {
        open(dir.path(), &clock).close().await;
        assert!(!journal.exists());
        let conn = rusqlite::Connection::open(&path).expect("open");
        let id: u32 = conn
            .query_row("PRAGMA application_id", [], |row| row.get(0))
            .expect("an id");
        assert_eq!(id, ours);
    }
}

#[tokio::test]
async fn a_newer_database_is_refused_and_not_a_byte_of_it_changes() {
    let (dir, clock) = closed().await;
    let path = dir.path().join(DATABASE_FILE);
    let conn = rusqlite::Connection::open(&path).expect("open");
    conn.pragma_update(None, "user_version", 99).expect("newer");
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .expect("moved");
    drop(conn);
    let before = fs::read(&path).expect("file");
    let error = refused(dir.path(), &clock);
    assert!(
        matches!(error, OpenError::Newer { found: 99, .. }),
        "{error}"
    );
    assert!(error.to_string().contains(DATABASE_FILE));
    assert_eq!(fs::read(&path).expect("file"), before);
    assert_eq!(fs::read_dir(dir.path()).expect("directory").count(), 1);
}

#[tokio::test]
async fn a_newer_schema_that_is_only_in_the_log_is_refused_too() {
    let (dir, clock) = closed().await;
    let path = dir.path().join(DATABASE_FILE);
    let conn = rusqlite::Connection::open(&path).expect("open");
    conn.pragma_update(None, "user_version", 99).expect("newer");
    let files = || {
        let wal = fs::read(path.with_extension("sqlite-wal")).expect("log");
        (fs::read(&path).expect("file"), wal)
    };
    let before = files();
    let error = refused(dir.path(), &clock);
    assert!(
        matches!(error, OpenError::Newer { found: 99, .. }),
        "{error}"
    );
    assert_eq!(files(), before);
}

#[tokio::test]
async fn what_is_no_database_of_ours_is_refused_and_kept() {
    let (dir, clock) = closed().await;
    let path = dir.path().join(DATABASE_FILE);
    let sound = fs::read(&path).expect("file");
    let foreign = dir.path().join("foreign");
    let conn = rusqlite::Connection::open(&foreign).expect("open");
    conn.execute_batch("CREATE TABLE x (y)").expect("foreign");
    drop(conn);
    let mut damaged = sound.clone();
    for byte in &mut damaged[4096..8192] {
        *byte = 0x5a;
    }
    for (what, content) in [
        ("text", b"{\"sessions\":[]}".to_vec()),
        ("nulls", vec![0; 8192]),
        ("cut off", sound[..50].to_vec()),
        ("foreign", fs::read(&foreign).expect("foreign")),
        ("half of it", sound[..sound.len() / 2].to_vec()),
        ("a damaged page", damaged),
    ] {
        fs::write(&path, &content).expect("written");
        let error = refused(dir.path(), &clock);
        assert!(
            matches!(error, OpenError::Corrupt { .. }),
            "{what}: {error}"
        );
        assert!(error.to_string().contains(DATABASE_FILE), "{what}");
        assert_eq!(fs::read(&path).expect("file"), content, "{what}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let clock = Arc::new(TestClock(Mutex::new((START, Duration::ZERO))));
    // Nobody, not even root, makes files here.
    let error = refused(Path::new("/proc"), &clock);
    assert!(matches!(error, OpenError::NotWritable { .. }), "{error}");
    assert!(error.to_string().contains("/proc/state.sqlite"));
    let dir = tempfile::tempdir().expect("directory");
    fs::create_dir(dir.path().join(DATABASE_FILE)).expect("in the way");
    let error = refused(dir.path(), &clock);
    assert!(matches!(error, OpenError::NotWritable { .. }), "{error}");
}

#[tokio::test]
async fn an_empty_file_becomes_a_database() {
    let dir = tempfile::tempdir().expect("directory");
    let clock = Arc::new(TestClock(Mutex::new((START, Duration::ZERO))));
    fs::write(dir.path().join(DATABASE_FILE), "").expect("written");
    let state = open(dir.path(), &clock);
    assert_eq!(state.counts().await.expect("counts").signals, 0);
}
