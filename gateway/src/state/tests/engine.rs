//! The writer: what shares a commit, what fails alone, what stops everything.

use std::sync::atomic::{AtomicUsize, Ordering};

use tidings_protocol::session_api::ChildRuntime;

use super::*;
use crate::state::engine::{OpResult, Priority, Tx};
use crate::state::{Health, NewChild, RunBy, StateError};

/// Keeps the writer busy until it is let go.
struct Gate {
    open: std::sync::mpsc::SyncSender<()>,
    closed: tokio::task::JoinHandle<Result<(), StateError>>,
}

impl Gate {
    async fn shut(state: &State) -> Self {
        let (open, opened) = std::sync::mpsc::sync_channel(1);
        let (entered, inside) = tokio::sync::oneshot::channel();
        let state = state.clone();
        let mut entered = Some(entered);
        let closed = tokio::spawn(async move {
            let op = move |_: &mut Tx<'_>| {
                if let Some(entered) = entered.take() {
                    entered.send(()).expect("somebody waits");
                    opened.recv().expect("opened");
                }
                Ok(())
            };
            state.write(Priority::Interactive, op).await
        });
        inside.await.expect("the writer is inside");
        Self { open, closed }
    }

    async fn open(self) {
        self.open.send(()).expect("open");
        self.closed.await.expect("task").expect("committed");
    }
}

fn signal(session: &str) -> NewSignal {
    NewSignal::new(address(session), SignalKind::GoalChanged, Actor::Human)
}

/// Starts a write and comes back once it is queued.
async fn queued<T: Send + 'static>(
    write: impl Future<Output = T> + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    let task = tokio::spawn(write);
    tokio::task::yield_now().await;
    task
}

#[tokio::test]
async fn a_bad_request_fails_alone_and_its_neighbours_are_written_once() {
    let fixture = Fixture::new();
    let gate = Gate::shut(&fixture.state).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let mut good = Vec::new();
    for n in 0..10 {
        let state = fixture.state.clone();
        let signal = signal(&format!("agent:main:{n}"));
        good.push(queued(async move { state.record(signal).await }).await);
    }
    let (state, ran) = (fixture.state.clone(), Arc::clone(&runs));
    let bad = queued(async move {
        let op = move |tx: &mut Tx<'_>| -> OpResult<()> {
            ran.fetch_add(1, Ordering::Relaxed);
            tx.session(&address("agent:main:bad"))?;
            tx.execute("INSERT INTO links (session) VALUES (1)", [])?;
            Ok(())
        };
        state.write(Priority::Interactive, op).await
    })
    .await;
    for n in 10..20 {
        let state = fixture.state.clone();
        let signal = signal(&format!("agent:main:{n}"));
        good.push(queued(async move { state.record(signal).await }).await);
    }
    gate.open().await;
    let error = bad.await.expect("task").expect_err("it is bad");
    assert!(matches!(error, StateError::Database { .. }), "{error}");
    assert!(runs.load(Ordering::Relaxed) >= 1);
    let mut sequences = Vec::new();
    for write in good {
        let recorded = write.await.expect("task").expect("recorded");
        sequences.extend(recorded.sequence);
    }
    assert_eq!(sequences, (1..=20).collect::<Vec<_>>());
    let bad_rows = "SELECT count(*) FROM session_keys WHERE session_key = 'agent:main:bad'";
    assert_eq!(fixture.number(bad_rows), 0);
    // Names that the rolled-back group had made are not believed.
    fixture.change("agent:main:bad").await;
    assert_eq!(fixture.state.check_integrity().await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_request_that_declines_after_writing_leaves_nothing_behind() {
    let fixture = Fixture::new();
    let declined = fixture
        .state
        .write(Priority::Interactive, |tx| -> OpResult<()> {
            tx.session(&address("agent:main:half"))?;
            tx.grew(99);
            Err(StateError::UnknownSignal(7).into())
        })
        .await;
    assert_eq!(declined, Err(StateError::UnknownSignal(7)));
    assert_eq!(fixture.number("SELECT count(*) FROM sessions"), 0);
    assert_eq!(*fixture.state.head().borrow(), 0);
}

#[tokio::test]
async fn interactive_requests_go_first_then_reports_then_upkeep() {
    let fixture = Fixture::new();
    let gate = Gate::shut(&fixture.state).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut writes = Vec::new();
    for priority in [Priority::Upkeep, Priority::Report, Priority::Interactive] {
        let (state, order) = (fixture.state.clone(), Arc::clone(&order));
        let op = move |_: &mut Tx<'_>| {
            order.lock().expect("order").push(priority);
            Ok(())
        };
        writes.push(queued(async move { state.write(priority, op).await }).await);
    }
    gate.open().await;
    for write in writes {
        write.await.expect("task").expect("written");
    }
    assert_eq!(
        *order.lock().expect("order"),
        [Priority::Interactive, Priority::Report, Priority::Upkeep]
    );
}

#[tokio::test]
async fn a_request_that_nobody_waits_for_is_not_run() {
    let fixture = Fixture::new();
    let gate = Gate::shut(&fixture.state).await;
    let state = fixture.state.clone();
    let abandoned = queued(async move { state.record(signal("agent:main:t")).await }).await;
    abandoned.abort();
    assert!(abandoned.await.expect_err("aborted").is_cancelled());
    gate.open().await;
    assert_eq!(fixture.change("agent:main:t").await, 1);
}

#[tokio::test]
async fn a_full_disk_reads_on_and_is_tried_again_after_five_seconds() {
    let fixture = Fixture::new();
    fixture.change("agent:main:t").await;
    let limit = async |pages: &'static str| {
        let op = move |tx: &mut Tx<'_>| {
            let sql = format!("PRAGMA max_page_count = {pages}");
            tx.conn().query_row(&sql, [], |_| Ok(()))?;
            Ok(())
        };
        fixture.state.write(Priority::Interactive, op).await
    };
    limit("1").await.expect("no page more than there are");
    let store = async || {
        let large = message("agent:main:t", &"m".repeat(100 * 1024));
        fixture.state.send(large).await.map(drop)
    };
    let full = StateError::DiskFull {
        path: fixture.state.path().to_owned(),
    };
    assert_eq!(store().await, Err(full.clone()));
    let health = fixture.state.health();
    assert!(matches!(*health.borrow(), Health::ReadOnly(_)));
    // Nothing is tried, however small; readers go on.
    assert_eq!(limit("1000000").await, Err(full.clone()));
    assert_eq!(fixture.state.counts().await.expect("counts").signals, 1);
    fixture.clock.pass(4_999);
    assert_eq!(store().await, Err(full));
    fixture.clock.pass(1);
    limit("1000000").await.expect("there is room again");
    assert!(matches!(*health.borrow(), Health::Serving));
    store().await.expect("written");
}

#[tokio::test]
async fn a_full_disk_takes_its_whole_group_with_it_and_none_is_half_written() {
    let fixture = Fixture::new();
    let op = |tx: &mut Tx<'_>| {
        tx.conn()
            .query_row("PRAGMA max_page_count = 1", [], |_| Ok(()))?;
        Ok(())
    };
    let limited = fixture.state.write(Priority::Interactive, op).await;
    limited.expect("limited");
    let gate = Gate::shut(&fixture.state).await;
    let state = fixture.state.clone();
    let small = queued(async move { state.record(signal("agent:main:t")).await }).await;
    let state = fixture.state.clone();
    let large = queued(async move {
        let child = NewChild {
            parent: address("agent:main:t"),
            agent: agent("main"),
            runtime: ChildRuntime::Subagent,
            label: None,
            task: "m".repeat(100 * 1024),
            run_by: RunBy::default(),
        };
        state.spawn(child).await
    })
    .await;
    gate.open.send(()).expect("open");
    for outcome in [
        small.await.expect("task").map(drop),
        large.await.expect("task").map(drop),
    ] {
        assert!(
            matches!(outcome, Err(StateError::DiskFull { .. })),
            "{outcome:?}"
        );
    }
    assert_eq!(fixture.number("SELECT count(*) FROM events"), 0);
}

#[tokio::test]
async fn a_panic_of_the_writer_is_a_failure_that_everybody_is_told_of() {
    let fixture = Fixture::new();
    let op = |_: &mut Tx<'_>| -> OpResult<()> { panic!("a fault of ours") };
    let failed = fixture.state.write(Priority::Interactive, op).await;
    assert!(
        matches!(failed, Err(StateError::Fatal { .. })),
        "{failed:?}"
    );
    let mut health = fixture.state.health();
    let failed = health.wait_for(|health| matches!(health, Health::Failed(_)));
    drop(failed.await.expect("told"));
    let later = fixture.state.record(signal("agent:main:t")).await;
    assert!(later.is_err());
    assert!(fixture.state.counts().await.is_ok(), "readers go on");
}

#[tokio::test]
async fn another_process_that_holds_the_database_delays_a_write_and_loses_nothing() {
    let fixture = Fixture::new();
    let outside = fixture.outside();
    outside.execute_batch("BEGIN IMMEDIATE").expect("held");
    let state = fixture.state.clone();
    let write = queued(async move { state.record(signal("agent:main:t")).await }).await;
    outside.execute_batch("ROLLBACK").expect("let go");
    assert!(write.await.expect("task").expect("recorded").recorded);
}

#[tokio::test]
async fn many_producers_share_commits_and_numbers_never_repeat() {
    let fixture = Fixture::new();
    let producers: Vec<_> = (0..16)
        .map(|n| {
            let state = fixture.state.clone();
            tokio::spawn(async move {
                let mut sequences = Vec::new();
                for _ in 0..25 {
                    let recorded = state.record(signal(&format!("agent:main:{n}"))).await;
                    sequences.extend(recorded.expect("recorded").sequence);
                }
                sequences
            })
        })
        .collect();
    let mut all = Vec::new();
    for producer in producers {
        let sequences = producer.await.expect("task");
        assert!(sequences.is_sorted());
        all.extend(sequences);
    }
    all.sort_unstable();
    assert_eq!(all, (1..=400).collect::<Vec<_>>());
    assert_eq!(*fixture.state.head().borrow(), 400);
}

#[tokio::test]
async fn a_page_that_is_damaged_under_the_writer_stops_it_by_name() {
    use std::os::unix::fs::FileExt;

    let fixture = Fixture::new();
    fixture.change("agent:main:t").await;
    let fixture = fixture.reopened().await;
    // Somebody else's commit makes the writer read its pages anew.
    let outside = fixture.outside();
    outside
        .execute("UPDATE write_probe SET at = 1", [])
        .expect("written");
    outside
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .expect("moved");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(fixture.state.path())
        .expect("file");
    let length = file.metadata().expect("length").len();
    let garbage = vec![0x5a; usize::try_from(length - 4096).expect("small")];
    file.write_all_at(&garbage, 4096).expect("damaged");
    let failed = fixture.state.record(signal("agent:main:t")).await;
    let Err(StateError::Fatal { path, .. }) = &failed else {
        panic!("{failed:?}");
    };
    assert_eq!(path, fixture.state.path());
    assert!(matches!(
        *fixture.state.health().borrow(),
        Health::Failed(_)
    ));
    // It is not tried again.
    let again = fixture.state.record(signal("agent:main:t")).await;
    assert_eq!(again, failed);
}
