//! Several writers of one transcript: tasks, and real processes that are killed.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::json;

use super::*;
use crate::config::WriteLock as Configured;
use crate::sessions::transcript::lock::{LockError, LockTimes, Locker};
use crate::sessions::transcript::write::WriteError;

/// Longer than anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// Where the transcript is, for a process that is to write it.
const TRANSCRIPT: &str = "TIDINGS_TEST_TRANSCRIPT";
/// How such a process calls itself.
const WRITER: &str = "TIDINGS_TEST_WRITER";
/// How many turns such a process writes.
const TURNS: &str = "TIDINGS_TEST_TURNS";

fn times() -> LockTimes {
    LockTimes {
        acquire_timeout: PATIENCE,
        ..LockTimes::resolve(&Configured::default(), |_| None)
    }
}

fn locker(times: LockTimes) -> Locker {
    Locker::new(
        Files::default(),
        Arc::new(tidings_node::clock::SystemClock::new()),
        times,
    )
}

/// Two lines that belong together.
fn turn(writer: &str, number: usize) -> [Value; 2] {
    let long = "x".repeat(5_000);
    ["begin", "end"].map(|part| json!({"w": writer, "n": number, "part": part, "long": long}))
}

fn lines(path: &Path) -> Vec<Option<Value>> {
    let content = std::fs::read_to_string(path).expect("a transcript");
    let lines = content.lines();
    lines.map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn the_environment_overrides_each_time_and_no_number_is_none() {
    let variable = |name: &str| match name {
        "TIDINGS_SESSION_WRITE_LOCK_STALE_MS" => Some(" 7 ".to_owned()),
        "TIDINGS_SESSION_WRITE_LOCK_MAX_HOLD_MS" => Some("soon".to_owned()),
        _ => None,
    };
    let times = LockTimes::resolve(&Configured::default(), variable);
    assert_eq!(times.acquire_timeout, Duration::from_mins(1));
    assert_eq!(times.stale, Duration::from_millis(7));
    assert_eq!(times.max_hold, Duration::from_mins(5));
}

#[tokio::test]
async fn a_second_writer_waits_and_is_told_who_writes() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("t.jsonl");
    let first = locker(times()).acquire(&path).await.expect("free");
    let impatient = LockTimes {
        acquire_timeout: Duration::from_millis(1),
        ..times()
    };
    let busy = locker(impatient)
        .acquire(&path)
        .await
        .expect_err("held")
        .to_string();
    let holder = format!("is being written by process {}", std::process::id());
    assert!(busy.contains(&holder), "{busy}");
    let second = tokio::spawn(async move { locker(times()).acquire(&path).await });
    drop(first);
    second.await.expect("ended").expect("free again");
}

#[tokio::test]
async fn lines_are_appended_whole_and_after_a_torn_one_on_a_new_line() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("new/dir/t.jsonl");
    let lock = locker(times()).acquire(&path).await.expect("free");
    let first = lock
        .append(&[json!({"n": 1}), json!({"n": 2})])
        .await
        .expect("appended");
    assert_eq!((first.offset, first.end), (0, 16));
    drop(lock);
    let mut content = std::fs::read(&path).expect("there");
    content.extend(b"{\"torn\":");
    std::fs::write(&path, &content).expect("torn");
    let lock = locker(times()).acquire(&path).await.expect("free");
    let second = lock.append(&[json!({"n": 3})]).await.expect("appended");
    assert_eq!(second.offset, content.len() as u64 + 1);
    assert_eq!(second.end, std::fs::metadata(&path).expect("there").len());
    let lines = lines(&path);
    assert_eq!(lines[2], None, "left as it was");
    assert_eq!(lines[3], Some(json!({"n": 3})));
    drop(lock);
    let left = Files::default()
        .list(path.parent().expect("a directory"))
        .expect("listed");
    assert_eq!(left.len(), 1, "no lock and no draft: {left:?}");
}

#[tokio::test]
async fn a_process_that_ends_at_any_operation_of_an_append_leaves_whole_lines_behind_it() {
    for ended_after in 0..20 {
        let scratch = tempfile::tempdir().expect("scratch");
        let path = scratch.path().join("t.jsonl");
        let lock = locker(times()).acquire(&path).await.expect("free");
        lock.append(&[json!({"n": 1})]).await.expect("appended");
        drop(lock);
        let ending = Locker::new(
            Files::ending_after(ended_after),
            Arc::new(tidings_node::clock::SystemClock::new()),
            times(),
        );
        let acknowledged = match ending.acquire(&path).await {
            Ok(lock) => lock.append(&[json!({"n": 2})]).await.is_ok(),
            Err(_) => false,
        };
        // Its lock may stand there still, held by this very process: as old as can be.
        let takes_over = LockTimes {
            stale: Duration::ZERO,
            ..times()
        };
        let lock = locker(takes_over).acquire(&path).await.expect("taken over");
        lock.append(&[json!({"n": 3})]).await.expect("appended");
        let lines: Vec<Value> = lines(&path).into_iter().flatten().collect();
        assert_eq!(lines.first(), Some(&json!({"n": 1})), "{ended_after}");
        assert_eq!(lines.last(), Some(&json!({"n": 3})), "{ended_after}");
        assert!(
            !acknowledged || lines.contains(&json!({"n": 2})),
            "{ended_after}"
        );
        if acknowledged {
            return;
        }
    }
    panic!("no append came to its end");
}

#[tokio::test]
async fn a_lock_whose_process_has_ended_is_taken_over_at_once_and_one_of_nobody_when_it_is_old() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("t.jsonl");
    let lock = scratch.path().join("t.jsonl.lock");
    let mut child = Command::new("true").spawn().expect("runs");
    let owner = json!({"pid": child.id(), "started": "x:1", "token": "t", "acquiredAt": 0});
    child.wait().expect("ended");
    std::fs::write(&lock, owner.to_string()).expect("written");
    drop(locker(times()).acquire(&path).await.expect("taken over"));
    std::fs::write(&lock, "").expect("written");
    let impatient = LockTimes {
        acquire_timeout: Duration::from_millis(1),
        ..times()
    };
    let held = locker(impatient).acquire(&path).await;
    assert!(
        matches!(held, Err(LockError::Busy { .. })),
        "young, and nobody can be asked"
    );
    let takes_over = LockTimes {
        stale: Duration::ZERO,
        ..impatient
    };
    locker(takes_over).acquire(&path).await.expect("taken over");
}

#[tokio::test]
async fn a_lock_that_is_held_for_too_long_is_given_back_and_appends_no_more() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("t.jsonl");
    let brief = LockTimes {
        max_hold: Duration::from_millis(1),
        ..times()
    };
    let first = locker(brief).acquire(&path).await.expect("free");
    let second = locker(times()).acquire(&path).await.expect("given back");
    let lost = first.append(&[json!({"n": 1})]).await;
    assert!(matches!(
        lost,
        Err(WriteError::Lock(LockError::Lost { .. }))
    ));
    second.append(&[json!({"n": 2})]).await.expect("appended");
    drop(first);
    second.append(&[json!({"n": 3})]).await.expect("still held");
    assert_eq!(lines(&path).len(), 2);
}

/// Writes turns into the transcript that the environment names, else into one of its own.
#[tokio::test]
async fn a_writer_appends_turn_after_turn() {
    let scratch = tempfile::tempdir().expect("scratch");
    let path =
        std::env::var_os(TRANSCRIPT).map_or_else(|| scratch.path().join("t.jsonl"), PathBuf::from);
    let writer = std::env::var(WRITER).unwrap_or_else(|_| "own".to_owned());
    let turns = std::env::var(TURNS).map_or(3, |turns| turns.parse().expect("a number"));
    for number in 0..turns {
        let lock = locker(times()).acquire(&path).await.expect("acquired");
        lock.append(&turn(&writer, number)).await.expect("appended");
        drop(lock);
        // Whoever started this process counts what was acknowledged.
        println!("\nacknowledged {number}");
    }
    let written = lines(&path).into_iter().flatten();
    let own = written.filter(|line| line["w"] == writer.as_str()).count();
    assert_eq!(own, turns * 2);
}

fn writer(path: &Path, name: &str, turns: usize) -> Child {
    let this = std::env::current_exe().expect("this program");
    Command::new(this)
        .args(["--exact", "--nocapture"])
        .arg("sessions::tests::writers::a_writer_appends_turn_after_turn")
        .env(TRANSCRIPT, path)
        .env(WRITER, name)
        .env(TURNS, turns.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a writer")
}

/// How many turns a process said were written, before it ended or was killed.
fn acknowledged(child: Child) -> usize {
    let output = child.wait_with_output().expect("ended");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.lines()
        .filter(|line| line.starts_with("acknowledged "))
        .count()
}

#[test]
fn two_processes_that_append_to_one_transcript_never_interleave_or_lose_a_line() {
    const EACH: usize = 40;
    let scratch = tempfile::tempdir().expect("scratch");
    let path = scratch.path().join("t.jsonl");
    let (a, b) = (writer(&path, "a", EACH), writer(&path, "b", EACH));
    let mut killed = writer(&path, "k", 100_000);
    let began = Instant::now();
    // Killed in the middle of its work, and at once another takes its place.
    while std::fs::metadata(&path).map_or(0, |file| file.len()) < 200_000 {
        assert!(began.elapsed() < PATIENCE, "nothing is written");
        std::thread::yield_now();
    }
    killed.kill().expect("killed");
    let of_killed = acknowledged(killed);
    let after = writer(&path, "c", EACH);
    let whole = [acknowledged(a), acknowledged(b), acknowledged(after)];
    assert_eq!(whole, [EACH; 3]);

    let lines = lines(&path);
    let broken = lines.iter().filter(|line| line.is_none()).count();
    assert!(
        broken <= 1,
        "only what was killed in its middle is no line: {broken}"
    );
    let mut lines = lines.into_iter().flatten().peekable();
    let mut turns: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    while let Some(first) = lines.next() {
        assert_eq!(first["part"], "begin");
        let second = lines.next_if(|line| line["part"] == "end");
        let Some(second) = second else {
            assert_eq!(first["w"], "k", "only a kill parts a turn");
            continue;
        };
        assert_eq!((&first["w"], &first["n"]), (&second["w"], &second["n"]));
        let name = first["w"].as_str().expect("a name").to_owned();
        let number = turns.entry(name).or_default();
        assert_eq!(first["n"], *number, "in order");
        *number += 1;
    }
    for (name, at_least) in [("a", EACH), ("b", EACH), ("c", EACH), ("k", of_killed)] {
        let found = turns.get(name).copied().unwrap_or_default();
        assert!(found >= at_least, "{name}: {found} of {at_least}");
    }
}
