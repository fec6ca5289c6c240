//! A file of the database goes, or another takes its place, while it is open.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::state::{Health, StateError};

/// What happens to a file.
type Happens = fn(&Path);

const CASES: [(&str, Happens); 3] = [
    ("it is deleted", |file| {
        fs::remove_file(file).expect("deleted");
    }),
    ("it is moved away", |file| {
        fs::rename(file, file.with_extension("away")).expect("moved");
    }),
    ("a copy takes its place", |file| {
        let copy = file.with_extension("copy");
        fs::copy(file, &copy).expect("a copy");
        fs::rename(copy, file).expect("in its place");
    }),
];

fn log_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Both files, each with everything that happens to it.
fn cases() -> impl Iterator<Item = (&'static str, fn(&Path) -> PathBuf, Happens)> {
    let whole: fn(&Path) -> PathBuf = Path::to_owned;
    let files = [whole, log_of];
    files
        .into_iter()
        .flat_map(|file| CASES.map(|(what, happens)| (what, file, happens)))
}

#[tokio::test]
async fn a_commit_to_a_file_that_is_not_there_any_more_is_not_acknowledged() {
    for (what, file, happens) in cases() {
        let fixture = Fixture::new();
        fixture.change("agent:main:t").await;
        let path = file(fixture.state.path());
        happens(&path);
        let target = address("agent:main:t");
        let signal = NewSignal::new(target, SignalKind::GoalChanged, Actor::Human);
        let failed = fixture.state.record(signal.clone()).await;
        let replaced = StateError::Replaced { path };
        assert_eq!(failed, Err(replaced.clone()), "{what}");
        assert_eq!(fixture.state.record(signal).await, Err(replaced), "{what}");
        assert!(matches!(
            *fixture.state.health().borrow(),
            Health::Failed(_)
        ));
    }
}

#[tokio::test]
async fn a_file_that_goes_while_nobody_writes_is_missed_all_the_same() {
    for (what, file, happens) in cases() {
        let fixture = Fixture::new();
        let path = file(fixture.state.path());
        happens(&path);
        let replaced = StateError::Replaced { path };
        let checked = fixture.state.check_integrity().await;
        assert_eq!(checked, Err(replaced.clone()), "{what}");
        let mut health = fixture.state.health();
        let failed = health.wait_for(|health| matches!(health, Health::Failed(_)));
        let failed = tokio::time::timeout(Duration::from_mins(2), failed).await;
        let failed = failed.expect("told").expect("told").clone();
        let Health::Failed(error) = failed else {
            panic!("{what}: {failed:?}");
        };
        assert_eq!(*error, replaced, "{what}");
    }
}
