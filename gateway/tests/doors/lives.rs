//! When a conversation of a running gateway ends, by itself or because somebody asks, and what
//! becomes of its transcript.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tidings_gateway::sessions::local_time::{self, offset_at};
use tidings_node::cli::Connection;
use tidings_node::clock::Clock;
use tidings_protocol::session_api::{
    AgentRef, ErrorType, InputProvenance, MessageRecorded, Request, SessionEntry, SessionsSend,
};
use tidings_protocol::{EpochMs, SessionKey};
use tokio::time::Instant;

use crate::clock::{DAY_MS, Shifted};
use crate::served::{
    PATIENCE, ask, body, connect, gateway_by, key, message, refused, session, speak, speaker, watch,
};

const KEY: &str = "agent:main:main";
const OTHER: &str = "agent:main:other";
const HOUR_MS: EpochMs = DAY_MS / 24;

/// A running gateway whose clock can be moved on, with one session and its transcript.
struct Story {
    clock: Arc<Shifted>,
    scratch: tempfile::TempDir,
    gateway: Option<tidings_gateway::Gateway>,
    door: Connection,
}

impl Story {
    async fn begin() -> Self {
        let scratch = tempfile::tempdir().expect("scratch directory");
        let clock = Arc::new(Shifted::default());
        clock.set_on(until_noon(clock.now()));
        let state_dir = scratch.path().join("state");
        let gateway = gateway_by(&state_dir, clock.clone()).await;
        let mut story = Self {
            clock,
            door: connect(&state_dir).await,
            scratch,
            gateway: Some(gateway),
        };
        for key in [KEY, OTHER] {
            story.turn(key).await;
        }
        story.write_transcript(KEY).await;
        story
    }

    /// The same with a gateway that was started anew.
    async fn restarted(mut self) -> Self {
        drop(self.door);
        self.gateway.take().expect("it runs").stop().await;
        let state_dir = self.scratch.path().join("state");
        let gateway = gateway_by(&state_dir, self.clock.clone()).await;
        Self {
            door: connect(&state_dir).await,
            gateway: Some(gateway),
            ..self
        }
    }

    async fn end(mut self) {
        drop(self.door);
        self.gateway.take().expect("it runs").stop().await;
    }

    fn dir(&self) -> PathBuf {
        self.scratch.path().join("state/agents/main/sessions")
    }

    async fn turn(&mut self, key: &str) {
        ask(&mut self.door, Request::TurnBegin(speaker(key))).await;
        ask(&mut self.door, Request::TurnEnd(speaker(key))).await;
    }

    async fn entry(&mut self, key: &str) -> Value {
        let shown = ask(&mut self.door, Request::SessionShow(session(key))).await;
        let entry: SessionEntry = *body!(shown, SessionShow);
        serde_json::from_str(&entry.entry).expect("JSON")
    }

    async fn id(&mut self, key: &str) -> String {
        let entry = self.entry(key).await;
        entry["sessionId"].as_str().expect("an id").to_owned()
    }

    /// Writes a transcript for the conversation that stands; answers its id.
    async fn write_transcript(&mut self, key: &str) -> String {
        let id = self.id(key).await;
        std::fs::create_dir_all(self.dir()).expect("directory");
        std::fs::write(self.dir().join(format!("{id}.jsonl")), "{}\n").expect("written");
        id
    }

    async fn send(&mut self, send: SessionsSend) {
        ask(&mut self.door, Request::SessionsSend(send)).await;
    }

    /// Records a message; answers whether another conversation has begun.
    async fn hears(&mut self, provenance: InputProvenance, dedupe_key: Option<&str>) -> bool {
        let before = self.id(KEY).await;
        let recorded = Request::MessageRecorded(MessageRecorded {
            session_key: Some(key(KEY)),
            agent: None,
            provenance,
            channel: Some("telegram".to_owned()),
            occurred_at: None,
            dedupe_key: dedupe_key.map(str::to_owned),
        });
        ask(&mut self.door, recorded).await;
        self.id(KEY).await != before
    }

    /// The archives of a conversation, by the word in their names.
    fn archives(&self, id: &str, word: &str) -> Vec<String> {
        names(&self.dir())
            .into_iter()
            .filter(|name| name.starts_with(&format!("{id}.jsonl.{word}.")))
            .collect()
    }
}

/// How long it is until a local noon: far from any daily boundary.
fn until_noon(now: EpochMs) -> EpochMs {
    let local = now + offset_at(&local_time::machine(), now);
    DAY_MS - local.rem_euclid(DAY_MS) + DAY_MS / 2
}

fn names(dir: &Path) -> Vec<String> {
    let listed = std::fs::read_dir(dir).expect("listed");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("one").file_name();
    let names = listed.map(|entry| name(entry).into_string().expect("text"));
    names.collect()
}

fn from_session(key: &str) -> InputProvenance {
    InputProvenance::InterSession {
        sender: SessionKey::parse(key).expect("key"),
    }
}

#[tokio::test]
async fn the_first_message_of_a_new_day_begins_another_conversation_without_old_notices() {
    let mut story = Story::begin().await;
    let first = story.id(KEY).await;
    watch(&mut story.door, KEY, OTHER).await;
    speak(&mut story.door, OTHER).await;
    let notices = async |door: &mut Connection| {
        let list = ask(door, Request::NoticesList(session(KEY))).await;
        body!(list, Notices).notices.len()
    };
    assert_eq!(notices(&mut story.door).await, 1);
    story.send(message(KEY, "the same day")).await;
    assert_eq!(story.id(KEY).await, first);

    story.clock.pass_days(1);
    // A turn and a result are no messages, and change nothing about it.
    story.turn(KEY).await;
    assert!(!story.hears(InputProvenance::InternalSystem, None).await);
    assert_eq!(notices(&mut story.door).await, 1);
    story.send(message(KEY, "good morning")).await;

    let second = story.id(KEY).await;
    assert_ne!(second, first);
    assert_eq!(story.archives(&first, "reset").len(), 1);
    assert!(!story.dir().join(format!("{first}.jsonl")).exists());
    assert_eq!(
        notices(&mut story.door).await,
        0,
        "they were of the old one"
    );
    speak(&mut story.door, OTHER).await;
    assert_eq!(notices(&mut story.door).await, 1, "it watches on");
    story.send(message(KEY, "and again")).await;
    assert_eq!(story.id(KEY).await, second);
    story.end().await;
}

#[tokio::test]
async fn whoever_speaks_first_ends_the_old_day_and_a_message_that_came_before_does_not() {
    for provenance in [InputProvenance::ExternalUser, from_session(OTHER)] {
        let mut story = Story::begin().await;
        watch(&mut story.door, OTHER, KEY).await;
        let today = story.hears(InputProvenance::ExternalUser, Some("m1")).await;
        assert!(!today);
        story.clock.pass_days(1);
        let again = story.hears(InputProvenance::ExternalUser, Some("m1")).await;
        assert!(!again, "it was recorded yesterday");
        assert!(
            story.hears(provenance.clone(), Some("m2")).await,
            "{provenance:?}"
        );
        story.end().await;
    }
    let mut story = Story::begin().await;
    let first = story.id(KEY).await;
    story.clock.pass_days(1);
    let from_other = SessionsSend {
        sender: Some(key(OTHER)),
        ..message(KEY, "from a session")
    };
    story.send(from_other).await;
    assert_ne!(story.id(KEY).await, first);
    story.end().await;
}

#[tokio::test]
async fn no_conversation_ends_in_the_middle_of_a_turn_or_where_its_transcript_is_elsewhere() {
    let mut story = Story::begin().await;
    let first = story.id(KEY).await;
    let elsewhere = story.id(OTHER).await;
    story.clock.pass_days(1);
    ask(&mut story.door, Request::TurnBegin(speaker(KEY))).await;
    story.send(message(KEY, "while it runs")).await;
    assert_eq!(story.id(KEY).await, first);
    // A turn that nobody ends is over after half an hour.
    story.clock.set_on(HOUR_MS);
    story.send(message(KEY, "afterwards")).await;
    assert_ne!(story.id(KEY).await, first);
    story.send(message(OTHER, "hello")).await;
    assert_eq!(story.id(OTHER).await, elsewhere);
    story.end().await;
}

#[tokio::test]
async fn an_operator_who_comes_back_to_a_conversation_keeps_it_for_one_message() {
    let mut story = Story::begin().await;
    let first = story.id(KEY).await;
    story.clock.pass_days(1);
    let shown = |id: &str, sender: Option<&str>| SessionsSend {
        sender: sender.map(key),
        expected_session_id: Some(id.to_owned()),
        ..message(KEY, "hello")
    };
    let wrong = refused(
        &mut story.door,
        Request::SessionsSend(shown("another", None)),
    );
    wrong.await;
    assert_eq!(story.id(KEY).await, first, "a refused message ends nothing");
    story.send(shown(&first, None)).await;
    assert_eq!(story.id(KEY).await, first, "kept");
    let mut story = story.restarted().await;
    let again = Request::SessionsSend(shown(&first, None));
    let error = refused(&mut story.door, again).await;
    assert_eq!(error.error_type, ErrorType::Conflict, "{error}");
    let second = story.write_transcript(KEY).await;
    assert_ne!(second, first, "and for one only");

    story.clock.pass_days(1);
    let by_session = Request::SessionsSend(shown(&second, Some(OTHER)));
    refused(&mut story.door, by_session).await;
    assert_ne!(story.id(KEY).await, second, "a session keeps nothing");
    story.end().await;
}

#[tokio::test]
async fn a_reset_and_a_deleted_session_leave_archives_and_an_agent_leaves_nothing() {
    let mut story = Story::begin().await;
    let first = story.id(KEY).await;
    ask(&mut story.door, Request::SessionReset(speaker(KEY))).await;
    assert_eq!(story.archives(&first, "reset").len(), 1);
    let second = story.write_transcript(KEY).await;
    ask(&mut story.door, Request::SessionDelete(session(KEY))).await;
    assert_eq!(story.archives(&second, "deleted").len(), 1);

    story.turn(KEY).await;
    let third = story.write_transcript(KEY).await;
    let dir = story.dir();
    std::fs::write(dir.join("notes.txt"), "mine").expect("written");
    let delete = Request::AgentsDelete(AgentRef {
        agent: "main".to_owned(),
    });
    ask(&mut story.door, delete).await;
    assert!(!dir.join(format!("{third}.jsonl")).exists());
    let began = Instant::now();
    loop {
        let error = refused(&mut story.door, Request::SessionShow(session(KEY))).await;
        assert_eq!(error.error_type, ErrorType::NotFound);
        // The readable projection follows a moment later, where there was one.
        let shown_file = std::fs::read_to_string(dir.join("sessions.json"));
        let mut left = names(&dir);
        left.retain(|name| name != "sessions.json");
        if left == ["notes.txt"] && shown_file.as_ref().map_or(true, |text| text.trim() == "{}") {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{left:?} {shown_file:?}");
    }
    story.end().await;
}

#[tokio::test]
async fn an_entry_that_is_taken_out_by_hand_leaves_its_transcript_among_the_archives() {
    let mut story = Story::begin().await;
    let id = story.id(KEY).await;
    let shown_file = story.dir().join("sessions.json");
    let began = Instant::now();
    let mut is_taken_out = false;
    while story.archives(&id, "deleted").is_empty() {
        // What answers is what writes the file.
        ask(&mut story.door, Request::AgentsList {}).await;
        let shown = std::fs::read(&shown_file).unwrap_or_default();
        let shown: Option<Value> = serde_json::from_slice(&shown).ok();
        if let Some(mut entries) = shown.filter(|_| !is_taken_out)
            && let Some(entries) = entries.as_object_mut()
            && entries.remove(KEY).is_some()
        {
            let content = serde_json::to_vec(entries).expect("JSON");
            std::fs::write(&shown_file, content).expect("written");
            is_taken_out = true;
        }
        assert!(began.elapsed() < PATIENCE, "taken out: {is_taken_out}");
    }
    let error = refused(&mut story.door, Request::SessionShow(session(KEY))).await;
    assert_eq!(error.error_type, ErrorType::NotFound);
    story.end().await;
}
