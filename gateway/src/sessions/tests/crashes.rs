//! The process ends at any file operation, anywhere in a sequence of changes by the gateway
//! and by hand: nothing acknowledged is lost, and nothing that nobody touched changes.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::sessions::merge::{EntryDigest, digest_of, entry_of};

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

#[derive(Debug, Clone)]
enum Step {
    /// The gateway changes an entry, makes it, or deletes it.
    Gateway(usize, GatewayChange),
    /// Somebody edits an entry in the file.
    Hand(usize, HandChange),
    /// File and entries are brought together.
    Sync,
    /// That ends after so many file operations, and a new process begins.
    Crash(usize),
}

#[derive(Debug, Clone, Copy)]
enum GatewayChange {
    Make,
    Pin,
    Archive,
    Delete,
}

#[derive(Debug, Clone, Copy)]
enum HandChange {
    Label(u8),
    Remove,
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gateway = prop_oneof![
        Just(GatewayChange::Make),
        Just(GatewayChange::Pin),
        Just(GatewayChange::Archive),
        Just(GatewayChange::Delete),
    ];
    let hand =
        prop_oneof![3 => any::<u8>().prop_map(HandChange::Label), 1 => Just(HandChange::Remove)];
    let step = prop_oneof![
        4 => (0..NAMES.len(), gateway).prop_map(|(name, change)| Step::Gateway(name, change)),
        3 => (0..NAMES.len(), hand).prop_map(|(name, change)| Step::Hand(name, change)),
        1 => Just(Step::Sync),
        3 => (0..14usize).prop_map(Step::Crash),
    ];
    proptest::collection::vec(step, 1..16)
}

type Shown = Option<EntryDigest>;

/// What one entry may be in the end.
#[derive(Debug, Default, Clone, Copy)]
struct Expected {
    /// When file and entries were last brought together.
    in_step: Shown,
    /// What the gateway made of it since.
    gateway: Option<Shown>,
    /// What a person made of it since.
    hand: Option<Shown>,
}

impl Expected {
    fn allows(&self, found: Shown) -> bool {
        match (self.gateway, self.hand) {
            (None, None) => found == self.in_step,
            (Some(gateway), None) => found == gateway,
            (None, Some(hand)) => found == hand,
            // The gateway's stays, unless the edit was made upon it or taken before it.
            (Some(gateway), Some(hand)) => found == gateway || found == hand,
        }
    }
}

struct Story {
    fixture: Fixture,
    expected: BTreeMap<&'static str, Expected>,
}

impl Story {
    async fn in_database(&self, name: &str) -> Shown {
        let entry = self.fixture.entry(name).await?;
        Some(digest_of(&entry_of(entry, START).expect("an entry")))
    }

    fn expect(&mut self, name: &'static str) -> &mut Expected {
        self.expected.entry(name).or_default()
    }

    async fn gateway(&mut self, name: &'static str, change: GatewayChange) {
        self.fixture.pass(1);
        let before = self.in_database(name).await;
        let (state, session) = (self.fixture.state(), session(name));
        match change {
            GatewayChange::Make => {
                state.ensure_session(session).await.expect("made");
            }
            // What is not there, or archived, is refused: that is no change.
            GatewayChange::Pin => {
                let _ = state.mark_session(session, SessionMark::Pin).await;
            }
            GatewayChange::Archive => {
                let _ = state.mark_session(session, SessionMark::Archive).await;
            }
            GatewayChange::Delete => {
                state.delete_session(session).await.expect("deleted");
            }
        }
        let now = self.in_database(name).await;
        if now != before {
            self.expect(name).gateway = Some(now);
        }
    }

    fn hand(&mut self, name: &'static str, change: HandChange) {
        if !self.fixture.path().exists() {
            return;
        }
        let mut shown = None;
        let mut changed = false;
        self.fixture.edit(|entries| match change {
            HandChange::Remove => changed = entries.remove(&key(name)).is_some(),
            HandChange::Label(label) => {
                let fresh = json!({"sessionId": "by-hand", "updatedAt": START});
                let entry = entries.entry(key(name)).or_insert(fresh);
                entry["label"] = json!(format!("by hand {label}"));
                let entry = entry_of(entry.clone(), START).expect("an entry");
                shown = Some(digest_of(&entry));
                changed = true;
            }
        });
        if changed {
            self.expect(name).hand = Some(shown);
        }
    }

    async fn brought_together(&mut self) {
        self.fixture.sync().await;
        self.fixture.assert_in_step().await;
        for name in NAMES {
            let found = self.in_database(name).await;
            let expected = *self.expect(name);
            assert!(expected.allows(found), "{name}: {found:?} {expected:?}");
            *self.expect(name) = Expected {
                in_step: found,
                ..Expected::default()
            };
        }
        assert_eq!(self.fixture.rejected(), Vec::<Vec<u8>>::new());
    }
}

async fn tell(steps: Vec<Step>) {
    let mut story = Story {
        fixture: Fixture::new(),
        expected: BTreeMap::new(),
    };
    for step in steps {
        match step {
            Step::Gateway(name, change) => story.gateway(NAMES[name], change).await,
            Step::Hand(name, change) => story.hand(NAMES[name], change),
            Step::Sync => story.brought_together().await,
            Step::Crash(operations) => {
                story.fixture.sync_ending_after(operations).await;
                story.fixture = story.fixture.reopened().await;
            }
        }
    }
    story.brought_together().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_changes_edits_and_ends_loses_what_was_acknowledged(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("runtime");
        runtime.block_on(tell(steps));
    }
}
