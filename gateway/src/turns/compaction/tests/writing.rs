//! Compactions over real transcripts and a real database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidings_node::clock::{Clock, SystemClock};
use tidings_protocol::SessionKey;

use super::super::plan::Trigger;
use super::super::provider::Providers;
use super::super::request::SummaryError;
use super::super::run::{CompactionError, Compactor, Order, Outcome};
use super::super::summarise::Summarisers;
use super::{Fake, entries};
use crate::config::{Compaction, KeepRecent};
use crate::sessions::files::Files;
use crate::sessions::names;
use crate::sessions::projection::Stores;
use crate::sessions::transcript::entry::header;
use crate::sessions::transcript::index::Index;
use crate::sessions::transcript::lock::{LockTimes, Locker};
use crate::state::{SessionAddress, State, StateOptions};
use crate::turns::budget::Budget;
use crate::turns::view::View;

struct Fixture {
    dir: TempDir,
    stores: Stores,
    locker: Locker,
    session: SessionAddress,
    session_id: String,
    settings: Compaction,
    model: Fake,
}

impl Fixture {
    /// A session with a conversation.
    async fn with(conversation: &str) -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let options = StateOptions {
            directory: dir.path().to_owned(),
            clock: clock.clone(),
        };
        let stores = Stores {
            state: State::open(&options).expect("state"),
            state_dir: dir.path().to_owned(),
            files: Files::default(),
            clock: clock.clone(),
        };
        let key = SessionKey::parse("agent:main:main").expect("a key");
        let session = SessionAddress::qualified(key).expect("an address");
        let made = stores.state.ensure_session(session.clone()).await;
        made.expect("an entry");
        let entry = stores.entry(&session).await.expect("read").expect("there");
        let fixture = Self {
            locker: locker(Files::default(), clock),
            dir,
            stores,
            session,
            session_id: entry.session_id,
            settings: Compaction::default(),
            model: Fake::default(),
        };
        let mut lines = vec![header(&fixture.session_id, "/w", 0, None)];
        lines.extend(entries(conversation));
        fixture.append(&fixture.path().await, &lines).await;
        fixture
    }

    /// From here on only so many file operations succeed.
    fn end_after(&mut self, operations: usize) {
        self.stores.files = Files::ending_after(operations);
        self.locker = locker(self.stores.files.clone(), self.stores.clock.clone());
    }

    async fn entry(&self) -> Value {
        let entry = self.stores.state.session_entry(self.session.clone()).await;
        serde_json::from_str(&entry.expect("an entry").entry).expect("JSON")
    }

    async fn path(&self) -> PathBuf {
        let entry = self
            .stores
            .entry(&self.session)
            .await
            .expect("read")
            .expect("there");
        self.stores
            .transcript_path(&self.session, &entry)
            .expect("here")
    }

    async fn append(&self, path: &Path, lines: &[Value]) {
        let lock = self.locker.acquire(path).await.expect("the lock");
        lock.append(lines).await.expect("appended");
    }

    async fn compact(&self, trigger: Trigger) -> Result<Option<Outcome>, CompactionError> {
        let providers = Providers::default();
        let workspace = self.dir.path().join("workspace");
        let compactor = Compactor {
            stores: &self.stores,
            locker: &self.locker,
            summarisers: Summarisers {
                model: &self.model,
                providers: &providers,
                settings: &self.settings,
            },
            budget: Budget::new(1_000_000, &self.settings),
            workspace: &workspace,
        };
        let order = Order {
            session: self.session.clone(),
            trigger,
            focus: None,
        };
        compactor.compact(&order, std::future::pending()).await
    }

    async fn compacted(&self, trigger: Trigger) -> Outcome {
        let outcome = self.compact(trigger).await;
        outcome
            .expect("a compaction")
            .expect("something to summarise")
    }

    /// The lines of the transcript in which the conversation goes on.
    async fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path().await).expect("a transcript");
        let line = |line: &str| serde_json::from_str(line).expect("JSON");
        text.lines().map(line).collect()
    }

    /// The summary and the ids of what the model sees beside it.
    async fn seen(&self) -> (Option<String>, Vec<String>) {
        let mut file = std::fs::File::open(self.path().await).expect("a transcript");
        let index = Index::read(&mut file).expect("an index");
        let view = View::read(&file, &index).expect("a view");
        let ids = view.items.into_iter().filter_map(|item| item.id);
        (view.summary.map(|summary| summary.text), ids.collect())
    }
}

fn locker(files: Files, clock: Arc<dyn Clock>) -> Locker {
    let times = LockTimes {
        acquire_timeout: Duration::from_mins(2),
        stale: Duration::from_mins(30),
        max_hold: Duration::from_mins(5),
    };
    Locker::new(files, clock, times)
}

fn kept(tokens: u64) -> Compaction {
    Compaction {
        keep_recent_tokens: KeepRecent::Explicit(tokens),
        ..Compaction::default()
    }
}

const FOUR: &str = "u1*4000 a1*4000 u2*4000 a2*4000";

#[tokio::test]
async fn a_compaction_is_one_entry_more_and_later_turns_see_the_summary_and_what_was_kept() {
    let mut fixture = Fixture::with(FOUR).await;
    fixture.settings = kept(2_500);
    let before = fixture.lines().await;
    let outcome = fixture.compacted(Trigger::Threshold).await;
    assert_eq!((outcome.summarised, outcome.kept), (2, 2));
    assert!(outcome.tokens_after < outcome.tokens_before);
    let after = fixture.lines().await;
    assert_eq!(after[..before.len()], before[..]);
    let [compaction] = &after[before.len()..] else {
        panic!("one line more");
    };
    assert_eq!(compaction["type"], "compaction");
    assert_eq!(compaction["parentId"], "a2");
    assert_eq!(compaction["firstKeptEntryId"], "u2");
    assert_eq!(compaction["tokensBefore"], outcome.tokens_before);
    let (summary, seen) = fixture.seen().await;
    assert_eq!(summary.as_deref(), Some("summary 1"));
    assert_eq!(seen, ["u2", "a2"]);
    let entry = fixture.entry().await;
    assert_eq!(entry["sessionId"], fixture.session_id);
    assert_eq!(
        (&entry["compactionCount"], outcome.compaction_count),
        (&json!(1), 1)
    );
    assert_eq!(entry["contextTokens"], outcome.tokens_after);
    assert_eq!(outcome.transcript, fixture.path().await);
    let page = crate::state::SignalsPage {
        session: None,
        after: 0,
        limit: 10,
    };
    let signals = fixture.stores.state.signals(page).await.expect("the log");
    let summaries: Vec<&str> = signals
        .iter()
        .map(|signal| signal.summary.as_str())
        .collect();
    assert_eq!(summaries, ["session compacted"]);
}

#[tokio::test]
async fn a_second_compaction_distils_the_first_summary_again() {
    let mut fixture = Fixture::with(FOUR).await;
    fixture.settings = kept(2_500);
    fixture.compacted(Trigger::Threshold).await;
    let more = [json!({
        "type": "message", "id": "u3", "message": {"role": "user", "content": "more"},
    })];
    fixture.append(&fixture.path().await, &more).await;
    fixture.settings = kept(10);
    fixture.compacted(Trigger::Threshold).await;
    let asked = fixture.model.asked();
    assert_eq!(asked[1].previous_summary.as_deref(), Some("summary 1"));
    assert_eq!(asked[1].messages.len(), 2);
    let (summary, seen) = fixture.seen().await;
    assert_eq!(summary.as_deref(), Some("summary 2"));
    assert_eq!(seen, ["u3"]);
    assert_eq!(fixture.entry().await["compactionCount"], 2);
}

#[tokio::test]
async fn somebody_who_asks_gets_a_hard_checkpoint_that_no_count_knows_of() {
    let fixture = Fixture::with(FOUR).await;
    let outcome = fixture.compacted(Trigger::Manual).await;
    assert_eq!((outcome.summarised, outcome.kept), (4, 0));
    let (summary, seen) = fixture.seen().await;
    assert_eq!((summary.as_deref(), seen.len()), (Some("summary 1"), 0));
    assert_eq!(fixture.entry().await.get("compactionCount"), None);
    // Nothing is left that could be summarised.
    assert_eq!(
        fixture.compact(Trigger::Manual).await.expect("an answer"),
        None
    );
}

#[tokio::test]
async fn a_summary_that_fails_changes_nothing() {
    let mut fixture = Fixture::with(FOUR).await;
    fixture.model = Fake::answering(&[Err(SummaryError::Aborted)]);
    let before = (fixture.lines().await, fixture.entry().await);
    let error = fixture
        .compact(Trigger::Threshold)
        .await
        .expect_err("aborted");
    assert!(matches!(
        error,
        CompactionError::Summary(SummaryError::Aborted)
    ));
    assert_eq!((fixture.lines().await, fixture.entry().await), before);
}

#[tokio::test]
async fn the_sections_of_agents_md_stand_behind_the_summary_where_they_are_wanted() {
    let mut fixture = Fixture::with(FOUR).await;
    let workspace = fixture.dir.path().join("workspace");
    std::fs::create_dir(&workspace).expect("created");
    std::fs::write(
        workspace.join("AGENTS.md"),
        "# A\n## Red Lines\nnever\n# B\n",
    )
    .expect("file");
    fixture.settings.post_compaction_sections = vec!["red lines".to_owned()];
    fixture.compacted(Trigger::Manual).await;
    let lines = fixture.lines().await;
    let last = lines.last().expect("a line");
    assert_eq!(last["type"], "custom_message");
    assert_eq!(last["content"], "## Red Lines\nnever");
    assert_eq!(last["display"], false);
    let (_, seen) = fixture.seen().await;
    assert_eq!(seen, [last["id"].as_str().expect("an id")]);
}

#[tokio::test]
async fn a_compacted_conversation_goes_on_in_a_smaller_transcript_of_the_same_session() {
    let mut fixture = Fixture::with(FOUR).await;
    let first = fixture.path().await;
    let state = json!({"type": "custom", "id": "s", "parentId": "a2", "customType": "x"});
    fixture.append(&first, &[state]).await;
    fixture.settings = kept(2_500);
    fixture.settings.truncate_after_compaction = true;
    let outcome = fixture.compacted(Trigger::Threshold).await;
    let second = fixture.path().await;
    assert_eq!(outcome.transcript, second);
    assert!(!first.exists() && second.exists());
    let lines = fixture.lines().await;
    let header = &lines[0];
    assert_eq!(
        (&header["id"], &header["cwd"]),
        (&json!(fixture.session_id), &json!("/w"))
    );
    let archive = PathBuf::from(header["parentSession"].as_str().expect("a parent"));
    assert!(archive.exists());
    assert_eq!(header["checkpoint"]["trigger"], "threshold");
    assert_eq!(header["checkpoint"]["tokensBefore"], outcome.tokens_before);
    let ids: Vec<&str> = lines[1..]
        .iter()
        .filter_map(|line| line["id"].as_str())
        .collect();
    let compaction_id = header["checkpoint"]["compactionId"]
        .as_str()
        .expect("an id");
    assert_eq!(ids, ["u2", "a2", "s", compaction_id]);
    let (summary, seen) = fixture.seen().await;
    assert_eq!(
        (summary.as_deref(), seen),
        (Some("summary 1"), vec!["u2".to_owned(), "a2".to_owned()])
    );
    let entry = fixture.entry().await;
    assert_eq!(entry["sessionId"], fixture.session_id);
    assert_eq!(
        entry["sessionFile"],
        second
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .as_ref()
    );
    // And once more: the name does not grow, and no copy is made beside the archives.
    fixture.settings = kept(0);
    fixture.settings.truncate_after_compaction = true;
    fixture.compacted(Trigger::Size).await;
    let third = fixture.path().await;
    assert_eq!(third.as_os_str().len(), second.as_os_str().len());
    let dir = names::sessions_dir(fixture.dir.path(), fixture.session.agent());
    let files = Files::default().list(&dir).expect("listed");
    let archives = files
        .iter()
        .filter(|file| file.name.contains(".jsonl.reset."));
    assert_eq!((files.len(), archives.count()), (3, 2));
}

#[tokio::test]
async fn a_process_that_ends_at_any_file_operation_leaves_the_conversation_whole() {
    let mut operations = 0;
    loop {
        let mut fixture = Fixture::with(FOUR).await;
        fixture.settings = kept(2_500);
        fixture.settings.truncate_after_compaction = true;
        fixture.end_after(operations);
        let is_done = fixture.compact(Trigger::Threshold).await.is_ok();
        fixture.end_after(usize::MAX);
        match fixture.seen().await {
            (None, seen) => assert_eq!(seen, ["u1", "a1", "u2", "a2"], "{operations}"),
            (Some(summary), seen) => {
                let found = (summary.as_str(), seen);
                let whole = ("summary 1", vec!["u2".to_owned(), "a2".to_owned()]);
                assert_eq!(found, whole, "{operations}");
            }
        }
        if is_done {
            break;
        }
        operations += 1;
    }
    assert!(operations > 10, "{operations}");
}

#[tokio::test]
async fn what_was_said_while_a_summary_was_made_is_kept() {
    // The summariser appends to the transcript, as somebody else could.
    struct Talking<'a>(&'a Fixture);
    impl super::Summariser for Talking<'_> {
        fn summarise<'a>(&'a self, _: &'a super::SummaryRequest) -> super::Summarising<'a> {
            Box::pin(async {
                let said = json!({"type": "message", "id": "u9", "parentId": "a2",
                                  "message": {"role": "user", "content": "meanwhile"}});
                self.0.append(&self.0.path().await, &[said]).await;
                Ok("summary".to_owned())
            })
        }
    }
    let fixture = Fixture::with(FOUR).await;
    let providers = Providers::default();
    let talking = Talking(&fixture);
    let compactor = Compactor {
        stores: &fixture.stores,
        locker: &fixture.locker,
        summarisers: Summarisers {
            model: &talking,
            providers: &providers,
            settings: &fixture.settings,
        },
        budget: Budget::new(1_000_000, &fixture.settings),
        workspace: fixture.dir.path(),
    };
    let order = Order {
        session: fixture.session.clone(),
        trigger: Trigger::Manual,
        focus: None,
    };
    let compacted = compactor.compact(&order, std::future::pending()).await;
    compacted.expect("a compaction");
    let (summary, seen) = fixture.seen().await;
    assert_eq!(
        (summary.as_deref(), seen),
        (Some("summary"), vec!["u9".to_owned()])
    );
}

#[tokio::test]
async fn a_command_before_a_compaction_is_told_of_it_and_decides_nothing() {
    let mut fixture = Fixture::with(FOUR).await;
    let out = fixture.dir.path().join("out");
    let line = format!("cat > {}; exit 1", out.display());
    fixture.settings.before_command = Some(line);
    fixture.compacted(Trigger::Manual).await;
    let told: Value = serde_json::from_slice(&std::fs::read(out).expect("told")).expect("JSON");
    assert_eq!(told["sessionKey"], "agent:main:main");
    assert_eq!(
        (&told["trigger"], &told["sessionId"]),
        (&json!("manual"), &json!(fixture.session_id))
    );
}
