//! What stands after the process ended without a word.

use super::*;
use crate::state::{Retention, StateError};

#[tokio::test]
async fn what_was_answered_stands_after_the_files_are_taken_as_they_are() {
    let fixture = Fixture::new();
    fixture.change("agent:main:t").await;
    fixture.watch("agent:main:w", "agent:main:t").await;
    fixture.change("agent:main:t").await;
    // As after a crash: the files as they are on disk, the log not moved.
    let copy = tempfile::tempdir().expect("directory");
    for file in ["state.sqlite", "state.sqlite-wal"] {
        std::fs::copy(fixture.dir.path().join(file), copy.path().join(file)).expect("copied");
    }
    let state = open(copy.path(), &fixture.clock);
    assert_eq!(*state.head().borrow(), 2);
    let notices = state.notices(key("agent:main:w")).await.expect("notices");
    assert_eq!(
        notices,
        state.drain(key("agent:main:w")).await.expect("drain")
    );
    assert_eq!(state.check_integrity().await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_torn_log_ends_at_the_last_whole_commit() {
    let fixture = Fixture::new();
    for _ in 0..20 {
        fixture.change("agent:main:t").await;
    }
    let log = fixture.dir.path().join("state.sqlite-wal");
    let whole = std::fs::read(log).expect("log");
    for cut in [0, 31, whole.len() / 3, whole.len() / 2, whole.len() - 1] {
        let copy = tempfile::tempdir().expect("directory");
        let database = copy.path().join("state.sqlite");
        std::fs::copy(fixture.state.path(), &database).expect("copied");
        std::fs::write(copy.path().join("state.sqlite-wal"), &whole[..cut]).expect("torn");
        let state = open(copy.path(), &fixture.clock);
        let counts = state.counts().await.expect("counts");
        assert!(counts.signals < 20, "cut at {cut}");
        assert_eq!(counts.signals, counts.head, "cut at {cut}");
        assert_eq!(
            state.check_integrity().await,
            Ok(Vec::new()),
            "cut at {cut}"
        );
    }
}

#[tokio::test]
async fn a_closed_database_answers_nothing_more() {
    let fixture = Fixture::new();
    let other = fixture.state.clone();
    fixture.state.close().await;
    let signal = NewSignal::new(
        address("agent:main:t"),
        SignalKind::Compacted,
        Actor::System,
    );
    assert_eq!(other.record(signal).await, Err(StateError::Closed));
    assert_eq!(other.counts().await, Err(StateError::Closed));
}

#[tokio::test]
async fn what_was_queued_before_the_close_is_still_written() {
    let fixture = Fixture::new();
    let signal = || {
        NewSignal::new(
            address("agent:main:t"),
            SignalKind::Compacted,
            Actor::System,
        )
    };
    let writes: Vec<_> = (0..100)
        .map(|_| {
            let state = fixture.state.clone();
            tokio::spawn(async move { state.record(signal()).await })
        })
        .collect();
    // Every task has queued its write once one of the last has been answered.
    let mut answered = 0;
    for write in writes {
        answered += usize::from(write.await.expect("task").is_ok());
    }
    let fixture = fixture.reopened().await;
    assert_eq!(answered, 100);
    assert_eq!(fixture.number("SELECT count(*) FROM events"), 100);
}

#[tokio::test]
async fn a_backup_is_a_database_of_its_own_and_overwrites_nothing() {
    let fixture = Fixture::new();
    fixture.change("agent:main:t").await;
    let copy = tempfile::tempdir().expect("directory");
    let file = copy.path().join("state.sqlite");
    assert_eq!(fixture.state.back_up(file.clone()).await, Ok(()));
    fixture.change("agent:main:t").await;
    let again = fixture.state.back_up(file).await;
    assert!(matches!(again, Err(StateError::File { .. })), "{again:?}");
    let restored = open(copy.path(), &fixture.clock);
    assert_eq!(*restored.head().borrow(), 1);
    let keep = Retention {
        max_rows: 10,
        recorded_since: None,
    };
    assert_eq!(restored.prune(keep).await, Ok(0));
    assert_eq!(
        std::fs::read_dir(copy.path())
            .expect("directory")
            .filter(|file| {
                let name = file.as_ref().expect("file").file_name();
                name.to_string_lossy().ends_with("partial")
            })
            .count(),
        0
    );
}
