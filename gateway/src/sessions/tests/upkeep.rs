//! The upkeep of a store with real files, and the ends of conversations.

use jiff::tz::TimeZone;
use serde_json::json;
use tokio::sync::watch;

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::config::{ArchiveRetention, Config, Hour, Session, Size, Switch, WriteLock};
use crate::sessions::files::Gate;
use crate::sessions::lifecycle::Ended;
use crate::sessions::lives::{Continued, Life};
use crate::sessions::maintenance::facts::{Occasion, Settings};
use crate::sessions::maintenance::keep;
use crate::sessions::maintenance::run::{Doing, Outcome};
use crate::sessions::transcript::lock::{LockTimes, Locker};
use crate::state::{Conversation, NewCronRun, NewMessage, Watching};

const DAY: EpochMs = 24 * 60 * 60 * 1_000;

impl Fixture {
    async fn maintain(&self, settings: &Settings, doing: Doing) -> Outcome {
        let done = self
            .stores
            .maintain(&agent(), settings, Occasion::Asked, doing)
            .await;
        done.expect("looked after")
    }

    fn locker(&self) -> Locker {
        let times = LockTimes::resolve(&WriteLock::default(), |_| None);
        Locker::new(Files::default(), self.stores.clock.clone(), times)
    }
}

/// An old entry with files, a needed one, and files of nobody.
async fn due() -> (Fixture, String) {
    let fixture = Fixture::new();
    fixture.make("old").await;
    fixture.make("needed").await;
    let manager = session("needed");
    fixture.make("target").await;
    let watched = fixture
        .state()
        .watch_add(manager.key().clone(), session("target"))
        .await;
    assert!(watched.expect("an answer").watched);
    let id = fixture.session_id("old").await;
    fixture.put(&format!("{id}.jsonl"), "1234567890");
    fixture.put(&format!("{id}.trajectory.jsonl"), "12345");
    fixture.put("lost.jsonl", "123");
    fixture.put("notes.txt", "mine");
    fixture.pass(31 * DAY);
    fixture.make("young").await;
    (fixture, id)
}

#[tokio::test]
async fn a_dry_run_says_exactly_what_is_done_and_a_second_run_finds_nothing() {
    let (fixture, id) = due().await;
    let settings = keep::settings(&Config::default());
    let said = fixture.maintain(&settings, Doing::Nothing).await;
    assert_eq!(fixture.names().len(), 4, "nothing is touched");
    let done = fixture.maintain(&settings, Doing::Everything).await;
    assert_eq!(done, said);
    let counts = (
        done.before,
        done.after,
        done.pruned,
        done.capped,
        done.missing,
    );
    assert_eq!(counts, (4, 3, 1, 0, 3));
    assert_eq!((done.freed_bytes, done.stuck.len()), (18, 0));
    assert_eq!(fixture.names(), ["notes.txt"]);
    assert!(!id.is_empty() && fixture.entry("old").await.is_none());
    assert!(fixture.entry("needed").await.is_some() && fixture.entry("target").await.is_some());
    let again = fixture.maintain(&settings, Doing::Everything).await;
    assert_eq!((again.actions.len(), again.before, again.after), (0, 3, 3));
}

#[tokio::test]
async fn what_somebody_has_removed_by_cleanup_is_one_line_and_what_removes_nothing_is_none() {
    let (fixture, _) = due().await;
    let settings = keep::settings(&Config::default());
    fixture.maintain(&settings, Doing::Nothing).await;
    fixture
        .stores
        .maintain(&agent(), &settings, Occasion::Unsure, Doing::Everything)
        .await
        .expect("looked after");
    assert_eq!(fixture.audited(), Vec::<String>::new());
    fixture.maintain(&settings, Doing::Everything).await;
    fixture.maintain(&settings, Doing::Everything).await;
    assert_eq!(
        fixture.audited(),
        ["operator sessions.cleanup main: begun: 1 entries and 3 files go"]
    );
}

#[tokio::test]
async fn what_changed_since_it_was_looked_at_stays() {
    let (fixture, _) = due().await;
    let before = fixture
        .state()
        .stored_entries(agent())
        .await
        .expect("entries");
    let old = before
        .iter()
        .find(|stored| stored.session == session("old"))
        .expect("old");
    let updated_at = old.entry.updated_at;
    let state = fixture.state();
    state.turn_begin(session("old")).await.expect("a turn");
    assert_eq!(
        state.remove_unneeded(session("old"), updated_at).await,
        Ok(false),
        "it runs"
    );
    state.turn_end(session("old")).await.expect("ended");
    assert_eq!(
        state.remove_unneeded(session("old"), updated_at - 1).await,
        Ok(false)
    );
    let message = NewMessage {
        target: session("young"),
        sender: None,
        body: "m".to_owned(),
        watch: Watching::Unchanged,
        expected_session_id: None,
    };
    state.send(message).await.expect("queued");
    let entries = state.stored_entries(agent()).await.expect("entries");
    let young = entries
        .iter()
        .find(|stored| stored.session == session("young"));
    let young = young.expect("young");
    assert!(young.is_needed, "a message waits for it");
    let removed = state
        .remove_unneeded(session("young"), young.entry.updated_at)
        .await;
    assert_eq!(removed, Ok(false));
    assert_eq!(
        state.remove_unneeded(session("old"), updated_at).await,
        Ok(true)
    );
}

#[tokio::test]
async fn upkeep_that_ends_at_any_operation_leaves_no_entry_without_its_files() {
    for ended_after in 0..6 {
        let (fixture, id) = due().await;
        let settings = keep::settings(&Config::default());
        let ending = Stores {
            files: Files::ending_after(ended_after),
            ..fixture.stores.clone()
        };
        let done = ending
            .maintain(&agent(), &settings, Occasion::Asked, Doing::Everything)
            .await;
        assert_eq!(
            done.expect("an outcome").stuck.len(),
            3 - ended_after.min(3)
        );
        if fixture.entry("old").await.is_some() {
            assert!(
                fixture.names().contains(&format!("{id}.jsonl")),
                "after {ended_after}"
            );
        }
        let fixture = fixture.reopened().await;
        fixture.maintain(&settings, Doing::Everything).await;
        assert_eq!(fixture.names(), ["notes.txt"], "after {ended_after}");
    }
}

#[tokio::test]
async fn upkeep_runs_by_itself_after_the_gateway_added_entries_and_not_after_an_edit_by_hand() {
    let fixture = Fixture::new();
    let mut config = Config::default();
    config.session.maintenance.max_entries = 2;
    let (_reload, config) = watch::channel(Arc::new(config));
    let effects = fixture.state().subscribe();
    let upkeep = keep::keep(fixture.stores.clone(), config, effects, None);
    let story = async {
        fixture.make("a").await;
        fixture.sync().await;
        fixture.edit(|entries| {
            for number in 0..8 {
                entries.insert(
                    key(&format!("h{number}")),
                    json!({"sessionId": "h", "updatedAt": 1}),
                );
            }
        });
        fixture.sync().await;
        assert_eq!(fixture.state().counts().await.expect("counts").sessions, 9);
        fixture.pass(1);
        fixture.make("b").await;
        while fixture.state().counts().await.expect("counts").sessions > 2 {}
        assert!(fixture.entry("a").await.is_some() && fixture.entry("b").await.is_some());
    };
    let told = async {
        tokio::select! {
            () = upkeep => panic!("the state is open"),
            () = story => {}
        }
    };
    let patience = Duration::from_mins(1);
    tokio::time::timeout(patience, told)
        .await
        .expect("looked after in time");
}

#[tokio::test]
async fn an_entry_that_is_too_old_goes_when_the_gateway_has_added_one() {
    let fixture = Fixture::new();
    fixture.make("old").await;
    fixture.pass(31 * DAY);
    let (_reload, config) = watch::channel(Arc::new(Config::default()));
    let effects = fixture.state().subscribe();
    let last_ran = Some(*fixture.clock.0.lock().expect("clock"));
    let upkeep = keep::keep(fixture.stores.clone(), config, effects, last_ran);
    let story = async {
        fixture.make("young").await;
        while fixture.entry("old").await.is_some() {
            tokio::task::yield_now().await;
        }
    };
    let told = async {
        tokio::select! {
            () = upkeep => panic!("the state is open"),
            () = story => {}
        }
    };
    let told = tokio::time::timeout(Duration::from_mins(1), told).await;
    told.expect("looked after in time");
    assert!(fixture.entry("young").await.is_some());
}

/// Fails the first removal, as a file system does that holds on to a file.
struct HoldsOn(AtomicBool);

impl Gate for HoldsOn {
    fn pass(&self, action: &'static str) -> std::io::Result<()> {
        if action == "remove" && self.0.swap(false, Ordering::Relaxed) {
            return Err(std::io::Error::other("it is held"));
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_removed_frees_nothing_and_another_goes_in_its_place() {
    let fixture = Fixture::new();
    for name in ["a", "b", "c"] {
        fixture.put(&format!("{name}.jsonl.reset.x"), "0123456789");
    }
    let mut config = Config::default();
    config.session.maintenance.max_disk_bytes = Switch::On(Size(25));
    config.session.maintenance.reset_archive_retention = ArchiveRetention::Off;
    let settings = keep::settings(&config);
    let holding = Stores {
        files: Files::behind(Arc::new(HoldsOn(AtomicBool::new(true)))),
        ..fixture.stores.clone()
    };
    let done = holding
        .maintain(&agent(), &settings, Occasion::Usual, Doing::Everything)
        .await
        .expect("looked after");
    assert_eq!((done.freed_bytes, done.stuck.len()), (10, 1));
    assert_eq!(fixture.names().len(), 2);
    assert!(done.stuck.iter().all(|name| fixture.names().contains(name)));
}

#[tokio::test]
async fn a_budget_counts_files_and_not_the_database() {
    let (fixture, _) = due().await;
    let mut config = Config::default();
    config.session.maintenance.max_disk_bytes = Switch::On(Size(1_000));
    let settings = keep::settings(&config);
    let done = fixture
        .stores
        .maintain(&agent(), &settings, Occasion::Unsure, Doing::Nothing)
        .await;
    assert_eq!(done.expect("a plan").actions, []);
}

#[tokio::test]
async fn the_first_message_of_a_new_day_begins_a_new_conversation_and_archives_the_old() {
    let fixture = Fixture::new();
    fixture.make("a").await;
    let id = fixture.session_id("a").await;
    let settings = Session::default();
    assert_eq!(settings.reset.at_hour, Hour::FOUR);
    let life = Life {
        settings: &settings,
        zone: &TimeZone::UTC,
        expected: None,
        resumed: None,
        dedupe_key: None,
    };
    let before = async |life| {
        let continued = fixture.stores.before_message(&session("a"), life).await;
        continued.expect("continued")
    };
    fixture.pass(DAY);
    assert_eq!(
        before(life).await,
        Continued::Same,
        "its transcript is elsewhere"
    );
    fixture.put(&format!("{id}.jsonl"), "{}\n");
    let resumed = Life {
        resumed: Some(&id),
        ..life
    };
    assert_eq!(
        before(resumed).await,
        Continued::Same,
        "kept for one message"
    );
    assert_eq!(
        before(resumed).await,
        Continued::RolledOver(Ended::DayOver),
        "and for one only"
    );
    let put_away = fixture.stores.put_away(&fixture.locker()).await;
    assert_eq!(put_away, Ok(0));
    let names = fixture.names();
    assert!(
        matches!(names.as_slice(), [name] if name.starts_with(&format!("{id}.jsonl.reset.2096-"))),
        "{names:?}"
    );
    assert_ne!(fixture.session_id("a").await, id);
    assert_eq!(before(life).await, Continued::Same);
}

#[tokio::test]
async fn an_entry_without_a_start_takes_it_from_the_header_of_its_transcript() {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.sessions_dir()).expect("directory");
    let entry = json!({"sessionId": "s", "updatedAt": START});
    fixture.put(names::STORE, &json!({key("a"): entry}).to_string());
    fixture.sync().await;
    let settings = Session::default();
    let life = Life {
        settings: &settings,
        zone: &TimeZone::UTC,
        expected: None,
        resumed: None,
        dedupe_key: None,
    };
    let before = async || {
        let continued = fixture.stores.before_message(&session("a"), life).await;
        continued.expect("continued")
    };
    fixture.put("s.jsonl", "no header\n");
    assert_eq!(
        before().await,
        Continued::Same,
        "else by the change of the entry"
    );
    fixture.put(
        "s.jsonl",
        "{\"type\":\"session\",\"timestamp\":\"2026-12-01T04:00:00Z\"}\n",
    );
    assert!(matches!(before().await, Continued::RolledOver(_)));
}

#[tokio::test]
async fn a_cron_job_goes_on_in_its_conversation_or_begins_another_that_inherits_no_rights() {
    let fixture = Fixture::new();
    let run = |conversation| NewCronRun {
        job_id: "nightly".to_owned(),
        session: SessionAddress::resolve(
            SessionKey::parse("cron:nightly").expect("a key"),
            &agent(),
        )
        .expect("an address"),
        conversation,
        keep_runs: 2_000,
    };
    let begin = async |conversation| {
        let begun = fixture.state().begin_cron_run(run(conversation)).await;
        begun.expect("begun")
    };
    let first = begin(Conversation::Standing).await;
    assert!(first.is_new);
    fixture.sync().await;
    fixture.edit(|entries| {
        entries["cron:nightly"]["thinkingLevel"] = json!("high");
        entries["cron:nightly"]["elevatedLevel"] = json!("full");
    });
    fixture.sync().await;
    let second = begin(Conversation::Standing).await;
    assert_eq!(
        (&second.session_id, second.is_new),
        (&first.session_id, false)
    );
    let third = begin(Conversation::New).await;
    assert!(third.is_new && third.session_id != first.session_id);
    fixture.sync().await;
    let entry = &fixture.file()["cron:nightly"];
    assert_eq!(
        (&entry["thinkingLevel"], entry.get("elevatedLevel")),
        (&json!("high"), None)
    );
}
