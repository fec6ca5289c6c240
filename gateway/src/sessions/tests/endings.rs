//! What is left of conversations, sessions and agents that have ended: whatever ends the
//! process meanwhile, the next one finishes it, once.

use serde_json::json;

use super::*;
use crate::config::WriteLock;
use crate::sessions::archives::PutAwayError;
use crate::sessions::transcript::lock::{LockTimes, Locker};
use crate::state::RollOver;

/// More file operations than putting one transcript away takes.
const MANY: usize = 20;
const SAID: &str = "{\"type\":\"session\"}\n{\"type\":\"message\"}\n";

impl Fixture {
    fn ending_after(&self, operations: usize) -> (Stores, Locker) {
        let stores = Stores {
            files: Files::ending_after(operations),
            ..self.stores.clone()
        };
        let locker = stores.locker(&WriteLock::default()).without_waiting();
        (stores, locker)
    }

    fn at_once(&self) -> Locker {
        self.stores.locker(&WriteLock::default()).without_waiting()
    }

    /// The files besides the store, each with its content.
    fn left(&self) -> Vec<(String, String)> {
        let names = self.names().into_iter();
        names
            .filter(|name| !name.starts_with(names::STORE))
            .map(|name| {
                let content = std::fs::read_to_string(self.sessions_dir().join(&name));
                (name, content.expect("text"))
            })
            .collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Ending {
    Reset,
    RollOver,
    Delete,
    ByHand,
}

/// A session with a transcript, and how it ends; answers its session id.
async fn ended(ending: Ending) -> (Fixture, String) {
    let fixture = Fixture::new();
    fixture.make("a").await;
    fixture.make("b").await;
    let id = fixture.session_id("a").await;
    fixture.put(&format!("{id}.jsonl"), SAID);
    fixture.sync().await;
    let state = fixture.state();
    match ending {
        Ending::Reset => {
            state.reset_session(session("a")).await.expect("reset");
        }
        Ending::RollOver => {
            let rolled = state.roll_over_session(RollOver::of(session("a"))).await;
            assert_eq!(rolled, Ok(Some(0)));
        }
        Ending::Delete => {
            assert_eq!(state.delete_session(session("a")).await, Ok(true));
        }
        Ending::ByHand => {
            fixture.edit(|entries| {
                entries.remove(&key("a"));
            });
            fixture.sync().await;
            assert!(fixture.entry("a").await.is_none());
        }
    }
    (fixture, id)
}

#[tokio::test]
async fn a_transcript_is_put_away_once_whichever_file_operation_ends_the_process() {
    for (ending, word) in [
        (Ending::Reset, "reset"),
        (Ending::RollOver, "reset"),
        (Ending::Delete, "deleted"),
        (Ending::ByHand, "deleted"),
    ] {
        let archive = |id: &str| {
            let stamp = names::stamp(START);
            vec![(format!("{id}.jsonl.{word}.{stamp}"), SAID.to_owned())]
        };
        let mut came_to_its_end = false;
        for ended_after in 0..MANY {
            let (fixture, id) = ended(ending).await;
            let (stores, locker) = fixture.ending_after(ended_after);
            came_to_its_end = stores.put_away(&locker).await.expect("rows") == 0;
            drop((stores, locker));
            let fixture = fixture.reopened().await;
            // Long after: what a lock of the ended process says is not believed any more.
            let put_away = fixture.stores.put_away(&fixture.at_once()).await;
            assert_eq!(put_away, Ok(0), "{ending:?} after {ended_after}");
            let drafts = |name: &str| name.contains(".lock");
            let mut left = fixture.left();
            left.retain(|(name, _)| !drafts(name));
            assert_eq!(left, archive(&id), "{ending:?} after {ended_after}");
            assert_eq!(fixture.state().ended_transcripts(0).await, Ok(Vec::new()));
            assert!(fixture.entry("b").await.is_some());
            if came_to_its_end {
                assert!(ended_after >= 5, "{ended_after} operations are too few");
                break;
            }
        }
        assert!(came_to_its_end, "{MANY} operations are not enough");
    }
}

#[tokio::test]
async fn a_transcript_that_somebody_writes_waits_for_its_writer() {
    let (fixture, id) = ended(Ending::Reset).await;
    let path = fixture.sessions_dir().join(format!("{id}.jsonl"));
    let clock: Arc<dyn Clock> = Arc::new(tidings_node::clock::SystemClock::new());
    let times = LockTimes::resolve(&WriteLock::default(), |_| None);
    let locker = Locker::new(Files::default(), clock, times);
    let writer = locker.acquire(&path).await.expect("free");
    let at_once = locker.clone().without_waiting();
    assert_eq!(fixture.stores.put_away(&at_once).await, Ok(1));
    writer
        .append(&[json!({"type": "message"})])
        .await
        .expect("appended");
    drop(writer);
    assert_eq!(fixture.stores.put_away(&locker).await, Ok(0));
    let left = fixture.left();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].1.lines().count(), 3, "its last line went with it");
}

#[tokio::test]
async fn a_transcript_that_another_entry_names_stays_and_one_elsewhere_is_not_touched() {
    let fixture = Fixture::new();
    fixture.put("shared.jsonl", SAID);
    fixture.put("own.jsonl", SAID);
    fixture.put("t.jsonl", SAID);
    let elsewhere = fixture.dir.path().join("elsewhere.jsonl");
    std::fs::write(&elsewhere, SAID).expect("written");
    let store = json!({
        key("a"): {"sessionId": "shared", "updatedAt": 1},
        key("b"): {"sessionId": "b", "updatedAt": 1, "sessionFile": "shared.jsonl"},
        key("c"): {"sessionId": "c", "updatedAt": 1, "sessionFile": elsewhere},
        key("d"): {"sessionId": "d", "updatedAt": 1, "sessionFile": "own.jsonl"},
        key("adopted:claude:local:t"): {"sessionId": "t", "updatedAt": 1},
    });
    fixture.put(names::STORE, &store.to_string());
    fixture.sync().await;
    for name in ["a", "c", "adopted:claude:local:t"] {
        fixture
            .state()
            .reset_session(session(name))
            .await
            .expect("reset");
    }
    assert_eq!(fixture.stores.put_away(&fixture.at_once()).await, Ok(0));
    assert!(elsewhere.exists());
    let names = |fixture: &Fixture| -> Vec<String> {
        fixture.left().into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names(&fixture), ["own.jsonl", "shared.jsonl", "t.jsonl"]);
    for name in ["b", "d"] {
        fixture
            .state()
            .reset_session(session(name))
            .await
            .expect("reset");
    }
    assert_eq!(fixture.stores.put_away(&fixture.at_once()).await, Ok(0));
    let stamp = names::stamp(START);
    assert_eq!(
        names(&fixture),
        [
            format!("own.jsonl.reset.{stamp}"),
            format!("shared.jsonl.reset.{stamp}"),
            "t.jsonl".to_owned()
        ]
    );
}

#[tokio::test]
async fn a_topic_has_a_transcript_of_its_own_that_ends_with_its_own_conversation() {
    let fixture = Fixture::new();
    fixture.put("s.jsonl", SAID);
    fixture.put("s-topic-7.jsonl", SAID);
    let (group, topic) = ("telegram:group:1", "telegram:group:1:topic:7");
    let store = json!({
        key(group): {"sessionId": "s", "updatedAt": 1},
        key(topic): {"sessionId": "s", "updatedAt": 1},
    });
    fixture.put(names::STORE, &store.to_string());
    fixture.sync().await;
    let stamp = names::stamp(START);
    let end = async |name: &str| {
        let reset = fixture.state().reset_session(session(name)).await;
        reset.expect("reset");
        assert_eq!(fixture.stores.put_away(&fixture.at_once()).await, Ok(0));
        let names = fixture.left().into_iter().map(|(name, _)| name);
        names.collect::<Vec<String>>()
    };
    let ended_topic = format!("s-topic-7.jsonl.reset.{stamp}");
    assert_eq!(
        end(topic).await,
        [ended_topic.clone(), "s.jsonl".to_owned()]
    );
    let ended_group = format!("s.jsonl.reset.{stamp}");
    assert_eq!(end(group).await, [ended_topic, ended_group]);
}

#[tokio::test]
async fn an_archive_never_takes_the_place_of_another() {
    let (fixture, id) = ended(Ending::Reset).await;
    let archive = format!("{id}.jsonl.reset.{}", names::stamp(START));
    fixture.put(&archive, "an older one\n");
    assert_eq!(fixture.stores.put_away(&fixture.at_once()).await, Ok(0));
    let expected = [
        (archive.clone(), "an older one\n".to_owned()),
        (format!("{archive}-2"), SAID.to_owned()),
    ];
    assert_eq!(fixture.left(), expected);
}

#[tokio::test]
async fn an_agent_leaves_with_its_files_whichever_operation_ends_the_process() {
    for ended_after in 0..MANY {
        let fixture = Fixture::new();
        for name in ["a", "b"] {
            fixture.make(name).await;
            let id = fixture.session_id(name).await;
            fixture.put(&format!("{id}.jsonl"), SAID);
        }
        fixture.put("x.jsonl.reset.2026", SAID);
        fixture.put("sessions.json.rejected-2026", "{");
        fixture.put("notes.txt", "mine");
        fixture.sync().await;
        let deleted = fixture.state().delete_agent(agent()).await;
        assert_eq!(deleted, Ok(2));
        let (stores, _) = fixture.ending_after(ended_after);
        let left: Result<(), PutAwayError> = stores.agent_leaves(&agent()).await;
        drop(stores);
        let fixture = fixture.reopened().await;
        if left.is_err() {
            assert_eq!(fixture.state().leaving_agents().await, Ok(vec![agent()]));
        }
        fixture.stores.finish_leaving().await.expect("finished");
        fixture.sync().await;
        assert_eq!(fixture.state().leaving_agents().await, Ok(Vec::new()));
        assert_eq!(fixture.names(), ["notes.txt", names::STORE]);
        assert!(fixture.file().is_empty());
        if left.is_ok() {
            assert!(ended_after >= 4, "{ended_after} operations are too few");
            return;
        }
    }
    panic!("{MANY} operations are not enough");
}
