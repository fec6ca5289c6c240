//! The watcher on real directories.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::*;
use crate::clock::SystemClock;
use crate::discover::Surroundings;
use tidings_protocol::EpochMs;

/// How long a test waits before it says that something never came.
const PATIENCE: Duration = Duration::from_secs(20);

struct Watched {
    directory: tempfile::TempDir,
    watcher: Watcher,
}

impl Watched {
    /// A watched root `projects`, which exists if `made` says so.
    async fn start(catalog: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("root")).expect("a directory");
        let watched = Self::begin(directory, catalog);
        watched.until_state(RootState::Watched).await;
        watched.take();
        watched
    }

    fn begin(directory: tempfile::TempDir, catalog: &str) -> Self {
        let root = format!("{catalog}={}", directory.path().join("root").display());
        let given = [root.parse().expect("a root")];
        let roots = RootSet::new(&Surroundings::default(), &given).expect("roots");
        let clock = Arc::new(SystemClock::new());
        let watcher = Watcher::start(&roots, clock, HANG_LIMIT);
        Self { directory, watcher }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join("root").join(path)
    }

    fn append(&self, path: &str) -> PathBuf {
        let path = self.path(path);
        let file = fs::File::options().create(true).append(true).open(&path);
        file.expect("open").write_all(b"x\n").expect("write");
        path
    }

    fn take(&self) -> Changes {
        self.watcher.changes()
    }

    async fn until(&self, what: &str, mut holds: impl FnMut(&Watcher) -> bool) {
        let waited = tokio::time::timeout(PATIENCE, async {
            while !holds(&self.watcher) {
                self.watcher.news().await;
            }
        });
        assert!(waited.await.is_ok(), "never: {what}");
    }

    async fn until_state(&self, state: RootState) {
        self.until("the state", |watcher| watcher.view()[0].state == state)
            .await;
    }

    /// Waits until the file is told, by its name or with everything.
    async fn until_told(&self, path: &Path) {
        let told = |watcher: &Watcher| {
            let changes = watcher.changes();
            changes.everything || changes.files.contains(path)
        };
        self.until(&path.display().to_string(), told).await;
    }
}

#[tokio::test]
async fn an_appended_line_is_told_and_reading_is_not() {
    let watched = Watched::start("claude").await;
    fs::create_dir(watched.path("p")).expect("a directory");
    let file = watched.append("p/s.jsonl");
    watched.until_told(&file).await;
    let other = watched.append("p/other.jsonl");
    watched.until_told(&other).await;
    watched.take();
    // What comes before the sentinel has been heard when the sentinel is.
    for _ in 0..3 {
        fs::read(&file).expect("read");
    }
    watched.append("p/notes.txt");
    let sentinel = watched.append("p/sentinel.jsonl");
    let mut told = Vec::new();
    watched
        .until("the sentinel", |watcher| {
            told.extend(watcher.changes().files);
            told.contains(&sentinel)
        })
        .await;
    assert!(!told.contains(&file), "{told:?}");
}

#[tokio::test]
async fn a_file_in_a_directory_made_a_moment_ago_is_told() {
    const NAME: &str = "rollout-1-0199a213-81c0-7800-8aa1-bbab2a035a53.jsonl";
    let watched = Watched::start("codex").await;
    for day in 0..20 {
        fs::create_dir_all(watched.path(&format!("2026/{day}/x"))).expect("directories");
        let file = watched.append(&format!("2026/{day}/x/{NAME}"));
        watched.until_told(&file).await;
    }
    // By now the directory is watched, so a later line is told too.
    let file = watched.append(&format!("2026/19/x/{NAME}"));
    watched.until_told(&file).await;
}

#[tokio::test]
async fn a_renamed_directory_is_watched_under_its_new_name() {
    let watched = Watched::start("claude").await;
    fs::create_dir(watched.path("p")).expect("a directory");
    let file = watched.append("p/s.jsonl");
    watched.until_told(&file).await;
    fs::rename(watched.path("p"), watched.path("q")).expect("rename");
    watched.until_told(&watched.path("q/s.jsonl")).await;
    watched.take();
    let file = watched.append("q/s.jsonl");
    watched.until_told(&file).await;
    // Another directory under the old name is another directory.
    fs::create_dir(watched.path("p")).expect("a directory");
    let file = watched.append("p/s.jsonl");
    watched.until_told(&file).await;
    let file = watched.append("p/s.jsonl");
    watched.until_told(&file).await;
}

#[tokio::test]
async fn a_removed_file_and_a_renamed_one_are_told() {
    let watched = Watched::start("openclaw").await;
    let file = watched.append("s.jsonl");
    watched.until_told(&file).await;
    fs::rename(&file, watched.path("t.jsonl")).expect("rename");
    watched.until_told(&watched.path("t.jsonl")).await;
    fs::remove_file(watched.path("t.jsonl")).expect("remove");
    watched.until_told(&watched.path("t.jsonl")).await;
}

#[tokio::test]
async fn a_root_that_goes_away_is_seen_and_is_watched_again_when_it_is_back() {
    let watched = Watched::start("claude").await;
    let root = watched.path("");
    fs::remove_dir_all(&root).expect("remove");
    watched.until_state(RootState::Unavailable).await;
    let view = watched.watcher.view().remove(0);
    assert!(view.warnings[0].contains("is not there"));
    fs::create_dir_all(root.join("p")).expect("directories");
    watched.watcher.survey_unwatched();
    watched.until_state(RootState::Watched).await;
    watched.take();
    let file = watched.append("p/s.jsonl");
    watched.until_told(&file).await;
}

#[tokio::test]
async fn a_root_replaced_behind_our_back_is_noticed_by_the_next_survey() {
    let watched = Watched::start("claude").await;
    // The parent is renamed, so no event comes from the root itself.
    let parent = watched.directory.path().to_owned();
    let away = tempfile::tempdir().expect("a directory");
    let moved = away.path().join("moved");
    fs::rename(&parent, &moved).expect("rename");
    fs::create_dir_all(parent.join("root/p")).expect("directories");
    watched.watcher.survey();
    watched
        .until("a new beginning", |watcher| watcher.changes().everything)
        .await;
    let file = watched.append("p/s.jsonl");
    watched.until_told(&file).await;
}

#[tokio::test]
async fn a_root_that_never_was_is_worth_showing_only_if_somebody_named_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let named = Watched::begin(directory, "claude");
    let surveyed = |watcher: &Watcher| !watcher.view()[0].warnings.is_empty();
    named.until("the survey", surveyed).await;
    assert_eq!(named.watcher.view()[0].standing, Standing::Expected);

    let home = tempfile::tempdir().expect("a directory");
    fs::create_dir_all(home.path().join(".pi/agent/sessions")).expect("directories");
    let surroundings = Surroundings {
        home: Some(home.path().to_owned()),
        ..Surroundings::default()
    };
    let roots = RootSet::new(&surroundings, &[]).expect("roots");
    let clock = Arc::new(SystemClock::new());
    let watched = Watched {
        watcher: Watcher::start(&roots, clock, HANG_LIMIT),
        directory: home,
    };
    let shown = |watcher: &Watcher| {
        let worth_showing = |view: &RootView| view.standing == Standing::Expected;
        watcher.view().iter().filter(|v| worth_showing(v)).count() == 1
    };
    watched.until("the one that is there", shown).await;
    assert!(watched.watcher.view().iter().all(|v| v.warnings.is_empty()));
}

#[derive(Debug, Default)]
struct HandClock(Mutex<Duration>);

impl HandClock {
    fn set(&self, to: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = to;
    }
}

impl Clock for HandClock {
    fn now(&self) -> EpochMs {
        0
    }

    fn monotonic(&self) -> Duration {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tokio::test]
async fn a_root_that_does_not_answer_is_shown_and_told_when_it_does() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::create_dir(directory.path().join("root")).expect("a directory");
    let given = [
        format!("claude={}", directory.path().join("root").display())
            .parse()
            .expect("a root"),
    ];
    let roots = RootSet::new(&Surroundings::default(), &given).expect("roots");
    let clock = Arc::new(HandClock::default());
    // A keeper that has begun to wait, as far as anybody can see.
    let kept = Kept {
        root: Arc::new(roots.all()[0].clone()),
        post: Arc::new(Post::new()),
    };
    kept.post.seen().waiting_since = Some(Duration::ZERO);
    let watched = Watched {
        watcher: Watcher {
            roots: vec![kept],
            collected: Arc::default(),
            clock: clock.clone(),
            hang_limit: HANG_LIMIT,
        },
        directory,
    };
    clock.set(HANG_LIMIT);
    assert_eq!(watched.watcher.view()[0].answer, Answer::Timely);
    clock.set(HANG_LIMIT + Duration::from_secs(1));
    let view = watched.watcher.view().remove(0);
    assert_eq!(view.answer, Answer::Hung);
    assert_eq!(view.state, RootState::Unavailable);
    assert!(view.warnings[0].contains("for 46 s"));
    assert!(watched.watcher.answers().eq([Answer::Hung]));

    let Watcher {
        roots, collected, ..
    } = &watched.watcher;
    let clock: Arc<dyn Clock> = clock;
    roots[0].start_keeper(collected, &clock, HANG_LIMIT);
    watched.watcher.survey();
    watched
        .until("everything", |watcher| watcher.changes().everything)
        .await;
    assert_eq!(watched.watcher.view()[0].answer, Answer::Timely);
}
