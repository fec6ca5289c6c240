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
