//! The process ends at any file operation while file and entries are brought together:
//! nothing acknowledged is lost.

use serde_json::json;

use super::*;

/// More operations than bringing file and entries together takes.
const MANY: usize = 40;

/// A gateway's change and three edits by hand that the next look has to bring together.
async fn due() -> Fixture {
    let fixture = Fixture::new();
    for name in ["a", "b", "c", "d"] {
        fixture.make(name).await;
    }
    fixture.sync().await;
    fixture.mark("a", SessionMark::Pin).await;
    fixture.edit(|entries| {
        entries[&key("b")]["label"] = json!("by hand");
        entries.remove(&key("c"));
        entries.insert(key("new"), json!({"sessionId": "n"}));
    });
    fixture
}

async fn assert_brought_together(fixture: &Fixture, ended_after: usize) {
    let label = |entry: Option<Value>| entry.map(|entry| entry["label"].clone());
    let pinned = fixture.entry("a").await.expect("an entry");
    assert!(pinned["pinnedAt"].is_number(), "after {ended_after}");
    let by_hand = Some(json!("by hand"));
    assert_eq!(
        label(fixture.entry("b").await),
        by_hand,
        "after {ended_after}"
    );
    assert_eq!(fixture.entry("c").await, None, "after {ended_after}");
    assert!(fixture.entry("new").await.is_some(), "after {ended_after}");
    assert!(fixture.entry("d").await.is_some(), "after {ended_after}");
    assert_eq!(
        fixture.rejected(),
        Vec::<Vec<u8>>::new(),
        "after {ended_after}"
    );
    fixture.assert_in_step().await;
}

#[tokio::test]
async fn a_process_that_ends_at_any_operation_leaves_what_the_next_brings_together() {
    for ended_after in 0..MANY {
        let fixture = due().await;
        let came_to_its_end = fixture.sync_ending_after(ended_after).await;
        let fixture = fixture.reopened().await;
        fixture.sync().await;
        assert_brought_together(&fixture, ended_after).await;
        if came_to_its_end {
            assert!(ended_after > 5, "{ended_after} operations are too few");
            return;
        }
    }
    panic!("{MANY} operations are not enough");
}

#[tokio::test]
async fn what_the_gateway_and_a_person_do_after_such_an_end_is_kept_too() {
    for ended_after in 0..MANY {
        let fixture = due().await;
        let came_to_its_end = fixture.sync_ending_after(ended_after).await;
        let fixture = fixture.reopened().await;
        fixture.mark("d", SessionMark::Archive).await;
        // The person edits whatever file was left, old or new.
        fixture.edit(|entries| {
            entries.insert(key("newer"), json!({"sessionId": "n2"}));
        });
        fixture.sync().await;
        assert_brought_together(&fixture, ended_after).await;
        assert!(
            fixture.entry("newer").await.is_some(),
            "after {ended_after}"
        );
        let archived = fixture.entry("d").await.expect("an entry");
        assert!(archived["archivedAt"].is_number(), "after {ended_after}");
        if came_to_its_end {
            return;
        }
    }
    panic!("{MANY} operations are not enough");
}

#[tokio::test]
async fn a_first_file_that_never_comes_into_place_is_written_at_last() {
    let mut fixture = Fixture::new();
    fixture.make("a").await;
    for _ in 0..3 {
        assert!(!fixture.sync_ending_after(0).await);
        fixture = fixture.reopened().await;
    }
    fixture.sync().await;
    fixture.assert_in_step().await;
}
