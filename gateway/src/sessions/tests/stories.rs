//! Stories of changes by the gateway and by hand, cleanups and ends of the process at any file
//! operation: nothing acknowledged is lost, nothing that nobody touched changes, no text is
//! lost but what upkeep said it removes, and nothing stays of a session that is gone.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::config::{Config, WriteLock};
use crate::sessions::maintenance::facts::{Action, Occasion, Settings};
use crate::sessions::maintenance::keep;
use crate::sessions::maintenance::run::Doing;
use crate::sessions::merge::{EntryDigest, digest_of, entry_of};
use crate::state::{NewMessage, RollOver, Watching};

#[derive(Debug, Clone)]
enum Step {
    /// The gateway changes an entry, makes it, or deletes it.
    Gateway(usize, GatewayChange),
    /// Somebody edits an entry in the file.
    Hand(usize, HandChange),
    /// A conversation is written.
    Write(usize),
    /// File and entries are brought together.
    Sync,
    /// That ends after so many file operations, and a new process begins.
    Crash(usize),
    /// Somebody asks for the upkeep; the process ends after so many file operations.
    Cleanup(usize),
    /// What has ended is put away; the process ends after so many file operations.
    PutAway(usize),
}

#[derive(Debug, Clone, Copy)]
enum GatewayChange {
    Make,
    Pin,
    Archive,
    Reset,
    RollOver,
    Delete,
    /// It watches the next one.
    Watch,
    /// Somebody sends it a message.
    Message,
}

#[derive(Debug, Clone, Copy)]
enum HandChange {
    Label(u8),
    Remove,
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
/// More file operations than anything here takes.
const TO_THE_END: usize = 1_000;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gateway = prop_oneof![
        3 => Just(GatewayChange::Make),
        1 => Just(GatewayChange::Pin),
        1 => Just(GatewayChange::Archive),
        2 => Just(GatewayChange::Reset),
        1 => Just(GatewayChange::RollOver),
        2 => Just(GatewayChange::Delete),
        1 => Just(GatewayChange::Watch),
        1 => Just(GatewayChange::Message),
    ];
    let hand =
        prop_oneof![3 => any::<u8>().prop_map(HandChange::Label), 1 => Just(HandChange::Remove)];
    let operations = prop_oneof![3 => 0..14usize, 1 => Just(TO_THE_END)];
    let name = 0..NAMES.len();
    let step = prop_oneof![
        5 => (name.clone(), gateway).prop_map(|(name, change)| Step::Gateway(name, change)),
        3 => (name.clone(), hand).prop_map(|(name, change)| Step::Hand(name, change)),
        3 => name.prop_map(Step::Write),
        1 => Just(Step::Sync),
        3 => operations.clone().prop_map(Step::Crash),
        3 => operations.clone().prop_map(Step::Cleanup),
        2 => operations.prop_map(Step::PutAway),
    ];
    proptest::collection::vec(step, 1..24)
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
    // What was written of each conversation, by session id.
    written: BTreeMap<String, String>,
    // Files that upkeep said it removes.
    removed: BTreeSet<String>,
}

/// A limit that bites: two entries, and nothing goes for its age.
fn settings() -> Settings {
    let mut config = Config::default();
    config.session.maintenance.max_entries = 2;
    keep::settings(&config)
}

impl Story {
    async fn in_database(&self, name: &str) -> Shown {
        let entry = self.fixture.entry(name).await?;
        Some(digest_of(&entry_of(entry, START).expect("an entry")))
    }

    async fn all_in_database(&self) -> Vec<Shown> {
        let mut all = Vec::new();
        for name in NAMES {
            all.push(self.in_database(name).await);
        }
        all
    }

    fn expect(&mut self, name: &'static str) -> &mut Expected {
        self.expected.entry(name).or_default()
    }

    /// What is another in the database now was changed by the gateway.
    async fn note_changes_since(&mut self, before: Vec<Shown>) {
        for (name, before) in NAMES.into_iter().zip(before) {
            let now = self.in_database(name).await;
            if now != before {
                self.expect(name).gateway = Some(now);
            }
        }
    }

    async fn gateway(&mut self, at: usize, change: GatewayChange) {
        self.fixture.pass(1);
        let before = self.all_in_database().await;
        let (state, session) = (self.fixture.state(), session(NAMES[at]));
        // What is not there, or archived, is refused: that is no change.
        match change {
            GatewayChange::Make => {
                state.ensure_session(session).await.expect("made");
            }
            GatewayChange::Pin => {
                let _ = state.mark_session(session, SessionMark::Pin).await;
            }
            GatewayChange::Archive => {
                let _ = state.mark_session(session, SessionMark::Archive).await;
            }
            GatewayChange::Reset => {
                state.reset_session(session).await.expect("reset");
            }
            GatewayChange::RollOver => {
                let rolled = state.roll_over_session(RollOver::of(session)).await;
                rolled.expect("rolled over");
            }
            GatewayChange::Delete => {
                state.delete_session(session).await.expect("deleted");
            }
            GatewayChange::Watch => {
                let target = super::session(NAMES[(at + 1) % NAMES.len()]);
                let _ = state.watch_add(session.key().clone(), target).await;
            }
            GatewayChange::Message => {
                let message = NewMessage {
                    target: session,
                    sender: None,
                    body: "m".to_owned(),
                    watch: Watching::Unchanged,
                    expected_session_id: None,
                };
                let _ = state.send(message).await;
            }
        }
        self.note_changes_since(before).await;
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
                let fresh = json!({"sessionId": format!("hand-{name}"), "updatedAt": START});
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

    /// A turn of the conversation that stands. An id that a person gave may come again.
    async fn write(&mut self, name: &str) {
        let Some(entry) = self.fixture.entry(name).await else {
            return;
        };
        let id = entry["sessionId"].as_str().expect("an id").to_owned();
        let file = format!("{id}.jsonl");
        if self.written.contains_key(&id) || self.removed.contains(&file) {
            return;
        }
        let said = format!("{{\"said\":\"{id}\"}}\n");
        self.fixture.put(&file, &said);
        self.written.insert(id, said);
    }

    async fn cleanup(&mut self, operations: usize) {
        let before = self.all_in_database().await;
        let planned = self
            .fixture
            .stores
            .maintain(&agent(), &settings(), Occasion::Asked, Doing::Nothing)
            .await
            .expect("a plan");
        let goes = |action: &Action| match action {
            Action::Entry { session, .. } => Some(session.clone()),
            Action::File { .. } => None,
        };
        let gone: BTreeSet<SessionAddress> = planned.actions.iter().filter_map(goes).collect();
        let files = planned.actions.iter().flat_map(Action::files);
        self.removed.extend(files.map(|file| file.name.clone()));
        let stores = self.ending_after(operations);
        stores
            .maintain(&agent(), &settings(), Occasion::Asked, Doing::Everything)
            .await
            .expect("an outcome");
        drop(stores);
        self.note_changes_since(before.clone()).await;
        for (name, before) in NAMES.into_iter().zip(before) {
            let now = self.in_database(name).await;
            let goes = gone.contains(&session(name));
            assert!(now == before || (goes && now.is_none()), "{name}: {now:?}");
        }
        self.restart(operations).await;
    }

    async fn put_away(&mut self, operations: usize) {
        let stores = self.ending_after(operations);
        let locker = stores.locker(&WriteLock::default()).without_waiting();
        stores.put_away(&locker).await.expect("rows");
        drop((stores, locker));
        self.restart(operations).await;
    }

    fn ending_after(&self, operations: usize) -> Stores {
        Stores {
            files: Files::ending_after(operations),
            ..self.fixture.stores.clone()
        }
    }

    /// A new process, where the one before has ended.
    async fn restart(&mut self, operations: usize) {
        if operations != TO_THE_END {
            let fixture = std::mem::replace(&mut self.fixture, Fixture::new());
            self.fixture = fixture.reopened().await;
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
        self.assert_nothing_is_left_of_who_is_gone();
    }

    fn assert_nothing_is_left_of_who_is_gone(&self) {
        for (sql, what) in [
            (
                "SELECT target_session_key FROM session_watch_cursors
                 WHERE target_session_key NOT IN (SELECT session_key FROM session_entries)
                    OR watcher_session_key NOT IN (SELECT session_key FROM session_entries)",
                "a watch",
            ),
            (
                "SELECT session_key FROM session_messages
                 WHERE session_key NOT IN (SELECT session_key FROM session_entries)",
                "a message",
            ),
            (
                "SELECT session_key FROM session_upstream_links
                 WHERE session_key NOT IN (SELECT session_key FROM session_entries)",
                "a link",
            ),
        ] {
            assert_eq!(self.fixture.query(sql), Vec::<String>::new(), "{what}");
        }
    }

    /// What was written stands, whole and once, or upkeep said that it removes it.
    async fn nothing_written_is_lost(&self) {
        let locker = self.fixture.stores.locker(&WriteLock::default());
        let put_away = self.fixture.stores.put_away(&locker).await;
        assert_eq!(put_away, Ok(0));
        let names = self.fixture.names();
        for (id, said) in &self.written {
            let file = format!("{id}.jsonl");
            let archive = |name: &&String| {
                [".reset.", ".deleted."]
                    .iter()
                    .any(|word| name.starts_with(&format!("{file}{word}")))
            };
            let stands = |name: &&String| **name == file || archive(name);
            let standing: Vec<&String> = names.iter().filter(stands).collect();
            let was_removed = self.removed.iter().any(|name| stands(&name));
            match standing.as_slice() {
                [name] => {
                    let content = std::fs::read_to_string(self.fixture.sessions_dir().join(name));
                    assert_eq!(&content.expect("text"), said, "{name}");
                }
                [] => assert!(was_removed, "{id} is lost: {names:?}"),
                _ => panic!("{id} stands more than once: {names:?}"),
            }
        }
        let query = "SELECT session_id FROM session_entries";
        for id in self.fixture.query(query) {
            let file = format!("{id}.jsonl");
            if self.written.contains_key(&id) && !self.removed.contains(&file) {
                assert!(names.contains(&file), "{id} continues a session");
            }
        }
    }
}

async fn tell(steps: Vec<Step>) {
    let mut story = Story {
        fixture: Fixture::new(),
        expected: BTreeMap::new(),
        written: BTreeMap::new(),
        removed: BTreeSet::new(),
    };
    for step in steps {
        match step {
            Step::Gateway(at, change) => story.gateway(at, change).await,
            Step::Hand(at, change) => story.hand(NAMES[at], change),
            Step::Write(at) => story.write(NAMES[at]).await,
            Step::Sync => story.brought_together().await,
            Step::Crash(operations) => {
                story.fixture.sync_ending_after(operations).await;
                story.restart(operations).await;
            }
            Step::Cleanup(operations) => story.cleanup(operations).await,
            Step::PutAway(operations) => story.put_away(operations).await,
        }
    }
    story.brought_together().await;
    story.nothing_written_is_lost().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_changes_edits_cleanups_and_ends_loses_what_was_acknowledged(
        steps in steps()
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("runtime");
        runtime.block_on(tell(steps));
    }
}
