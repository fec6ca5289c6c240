//! What somebody else writes into `sessions.json`.

use serde_json::{Value, json};
use tidings_protocol::{Actor, SignalKind};

use super::*;
use crate::state::NewSignal;

/// A store with the entries `a`, `b` and `c`, in step.
async fn filled() -> Fixture {
    let fixture = Fixture::new();
    for name in ["a", "b", "c"] {
        fixture.make(name).await;
    }
    fixture.sync().await;
    fixture
}

#[tokio::test]
async fn what_is_edited_added_and_removed_by_hand_is_taken_and_shown() {
    let fixture = filled().await;
    fixture.edit(|entries| {
        entries[&key("a")]["label"] = json!("by hand");
        entries[&key("a")]["later"] = json!({"x": [1, null]});
        entries.remove(&key("b"));
        entries.insert(" AGENT:main:New ".to_owned(), json!({"sessionId": "n"}));
    });
    fixture.sync().await;
    let entry = fixture.entry("a").await.expect("an entry");
    assert_eq!(
        (&entry["label"], &entry["later"]["x"]),
        (&json!("by hand"), &json!([1, null]))
    );
    assert_eq!(fixture.entry("b").await, None);
    assert_eq!(
        fixture.entry("new").await.expect("added")["updatedAt"],
        START
    );
    fixture.assert_in_step().await;
    fixture.mark("a", SessionMark::Pin).await;
    fixture.sync().await;
    assert_eq!(
        fixture.file()[&key("a")]["later"]["x"][0],
        1,
        "kept by a patch"
    );
    assert_eq!(fixture.rejected(), Vec::<Vec<u8>>::new());
}

#[tokio::test]
async fn where_both_sides_changed_an_entry_the_gateways_stays() {
    let fixture = filled().await;
    fixture.edit(|entries| {
        entries[&key("a")]["label"] = json!("by hand");
        entries[&key("b")]["label"] = json!("by hand");
    });
    fixture.mark("a", SessionMark::Pin).await;
    fixture.sync().await;
    let entry = fixture.entry("a").await.expect("an entry");
    assert_eq!(
        (entry.get("label"), entry["pinnedAt"].is_number()),
        (None, true)
    );
    let entry = fixture.entry("b").await.expect("an entry");
    assert_eq!(entry["label"], "by hand");
    fixture.assert_in_step().await;
}

#[tokio::test]
async fn an_entry_removed_by_hand_goes_with_all_that_is_its_own() {
    let fixture = filled().await;
    let (manager, target) = (session("a"), session("b"));
    let watched = fixture
        .state()
        .watch_add(manager.key().clone(), target.clone())
        .await;
    assert!(watched.expect("an answer").watched);
    let signal = NewSignal::new(target, SignalKind::GoalChanged, Actor::Human);
    fixture.state().record(signal).await.expect("recorded");
    fixture.edit(|entries| {
        entries.remove(&key("b"));
    });
    fixture.sync().await;
    let counts = fixture.state().counts().await.expect("counts");
    assert_eq!((counts.sessions, counts.signals, counts.watches), (2, 0, 0));
}

#[tokio::test]
async fn a_file_that_is_no_store_is_set_aside_and_the_entries_are_written_again() {
    let fixture = filled().await;
    let whole = std::fs::read(fixture.path()).expect("a file");
    let broken: [&[u8]; 5] = [b"", &whole[..whole.len() / 2], b"null", b"[]", b"\0\0\0"];
    for content in broken {
        std::fs::write(fixture.path(), content).expect("written");
        fixture.sync().await;
        fixture.assert_in_step().await;
        assert_eq!(fixture.file().len(), 3);
    }
    let mut rejected = fixture.rejected();
    let mut broken = broken.map(<[u8]>::to_vec);
    broken.sort();
    rejected.sort();
    assert_eq!(rejected, broken);
    std::fs::remove_file(fixture.path()).expect("removed");
    fixture.sync().await;
    fixture.assert_in_step().await;
    std::fs::remove_file(fixture.path()).expect("removed");
    std::fs::create_dir(fixture.path()).expect("a directory");
    fixture.sync().await;
    fixture.assert_in_step().await;
}

#[tokio::test]
async fn an_edit_that_removes_most_of_many_entries_is_set_aside() {
    let fixture = Fixture::new();
    for number in 0..12 {
        fixture.make(&number.to_string()).await;
    }
    fixture.sync().await;
    fixture.edit(Map::clear);
    fixture.sync().await;
    assert_eq!(fixture.rejected(), [b"{}"]);
    fixture.assert_in_step().await;
    assert_eq!(fixture.file().len(), 12);
}

#[tokio::test]
async fn a_file_that_holds_an_entry_that_cannot_be_meant_is_kept_and_the_rest_of_it_taken() {
    let fixture = filled().await;
    fixture.edit(|entries| {
        entries[&key("a")]["label"] = json!("by hand");
        entries[&key("b")]["updatedAt"] = json!(1.5);
        entries.insert("agent:ops:x".to_owned(), json!({"sessionId": "x"}));
    });
    let written = std::fs::read(fixture.path()).expect("a file");
    let before = fixture.entry("b").await;
    fixture.sync().await;
    assert_eq!(
        fixture.entry("a").await.expect("an entry")["label"],
        "by hand"
    );
    assert_eq!(
        fixture.entry("b").await,
        before,
        "neither changed nor removed"
    );
    assert_eq!(fixture.rejected(), [written]);
    fixture.assert_in_step().await;
}

#[tokio::test]
async fn a_half_written_file_is_left_to_whoever_writes_it() {
    let fixture = filled().await;
    std::fs::write(fixture.path(), b"{\"agent:main:a\":").expect("written");
    let files = Files::default();
    let seen = files.look(&fixture.path()).expect("looked").expect("there");
    *fixture.clock.0.lock().expect("clock") = seen.modified + 500;
    assert_eq!(fixture.sync().await, Synced::BeingWritten);
    assert_eq!(fixture.rejected(), Vec::<Vec<u8>>::new());
    fixture.pass(500);
    fixture.sync().await;
    assert_eq!(fixture.rejected().len(), 1);
    fixture.assert_in_step().await;
}

#[tokio::test]
async fn a_file_that_was_there_before_the_first_entry_is_taken_in() {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.sessions_dir()).expect("directory");
    let written = json!({key("a"): {"sessionId": "s", "updatedAt": 5, "label": "old"}});
    std::fs::write(fixture.path(), written.to_string()).expect("written");
    fixture.sync().await;
    assert_eq!(fixture.entry("a").await.expect("an entry")["label"], "old");
    fixture.assert_in_step().await;
}

#[tokio::test]
async fn another_way_to_write_the_same_is_no_edit() {
    let fixture = filled().await;
    let before = fixture.state().projection(agent()).await.expect("entries");
    let compact = Value::Object(fixture.file()).to_string();
    std::fs::write(fixture.path(), compact).expect("written");
    fixture.sync().await;
    assert_eq!(fixture.state().projection(agent()).await, Ok(before));
    fixture.assert_in_step().await;
}

#[tokio::test]
async fn in_step_nothing_is_written_to_file_or_database() {
    let fixture = filled().await;
    let wal = fixture.dir.path().join("state.sqlite-wal");
    let size = || std::fs::metadata(&wal).map_or(0, |wal| wal.len());
    let (before, seen) = (size(), fixture.sync().await);
    for _ in 0..3 {
        assert_eq!(fixture.sync().await, seen);
    }
    assert_eq!(size(), before);
}
