//! Between a root's keeper, who may be stuck in the file system, and everybody else, who
//! must not be: errands go in, the view of the root comes out.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidings_protocol::wire::messages::RootState;

/// How many directories wait for the keeper apart; beyond that it goes through all.
const MAX_DIRECTORIES: usize = 1024;

/// What a keeper is asked to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Errand {
    /// What to do about the root.
    pub(super) root: RootErrand,
    /// Directories to look at.
    pub(super) directories: HashMap<PathBuf, DirectoryErrand>,
}

/// What to do about the root itself; the later includes the earlier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RootErrand {
    /// Nothing.
    #[default]
    Nothing,
    /// See whether it is there, and watch it if it is not watched.
    Survey,
    /// Forget what is watched and begin again.
    BeginAgain,
    /// Stop for good.
    Stop,
}

/// What to do about a directory; the later includes the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DirectoryErrand {
    /// Watch it if it is there.
    Watch,
    /// It is not the directory that was watched under this name.
    Forget,
}

/// A root as its keeper last saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) state: RootState,
    /// What an operator should know.
    pub(super) warning: Option<String>,
    /// File events that were lost, if ever any were.
    pub(super) lost: Option<Lost>,
    /// It has been there at least once.
    pub(super) ever_there: bool,
    /// Since when the keeper has been waiting for the file system's answer.
    pub(super) waiting_since: Option<Duration>,
}

/// File events that came faster than they could be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost {
    /// How often.
    pub(super) times: u32,
    /// When last.
    pub(super) last_at: Duration,
}

/// The letter box of one root.
#[derive(Debug)]
pub(super) struct Post {
    errand: Mutex<Errand>,
    arrived: Condvar,
    seen: Mutex<Seen>,
}

impl Post {
    pub(super) fn new() -> Self {
        Self {
            errand: Mutex::default(),
            arrived: Condvar::new(),
            seen: Mutex::new(Seen {
                state: RootState::Unavailable,
                warning: None,
                lost: None,
                ever_there: false,
                waiting_since: None,
            }),
        }
    }

    /// Asks for something about the root.
    pub(super) fn ask(&self, what: RootErrand) {
        let mut errand = lock(&self.errand);
        errand.root = errand.root.max(what);
        drop(errand);
        self.arrived.notify_one();
    }

    /// Asks for a look at a directory.
    pub(super) fn ask_about(&self, directory: &Path, what: DirectoryErrand) {
        let mut errand = lock(&self.errand);
        if let Some(known) = errand.directories.get_mut(directory) {
            *known = (*known).max(what);
        } else if errand.directories.len() == MAX_DIRECTORIES {
            errand.directories = HashMap::new();
            errand.root = errand.root.max(RootErrand::BeginAgain);
        } else {
            errand.directories.insert(directory.to_owned(), what);
        }
        drop(errand);
        self.arrived.notify_one();
    }

    /// Waits for the next errand.
    pub(super) fn wait(&self) -> Errand {
        let mut errand = lock(&self.errand);
        while *errand == Errand::default() {
            errand = self
                .arrived
                .wait(errand)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let taken = std::mem::take(&mut *errand);
        if taken.root == RootErrand::Stop {
            // Whoever asks next is told the same.
            errand.root = RootErrand::Stop;
        }
        taken
    }

    /// True once the keeper was asked to stop.
    pub(super) fn is_stopped(&self) -> bool {
        lock(&self.errand).root == RootErrand::Stop
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.seen)
    }
}

impl Seen {
    /// File events were lost just now.
    pub(super) fn note_lost(&mut self, now: Duration) {
        let times = self.lost.map_or(0, |lost| lost.times);
        self.lost = Some(Lost {
            times: times.saturating_add(1),
            last_at: now,
        });
    }

    /// How long the file system has been waited for.
    pub(super) fn waiting(&self, now: Duration) -> Duration {
        self.waiting_since
            .map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind it is whole after every statement, whoever panicked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errands_that_wait_together_become_one() {
        let post = Post::new();
        post.ask(RootErrand::BeginAgain);
        post.ask(RootErrand::Survey);
        for what in [
            DirectoryErrand::Watch,
            DirectoryErrand::Forget,
            DirectoryErrand::Watch,
        ] {
            post.ask_about(Path::new("/a"), what);
        }
        let expected = Errand {
            root: RootErrand::BeginAgain,
            directories: HashMap::from([("/a".into(), DirectoryErrand::Forget)]),
        };
        assert_eq!(post.wait(), expected);
    }

    #[test]
    fn too_many_directories_become_a_new_beginning() {
        let post = Post::new();
        for n in 0..=MAX_DIRECTORIES {
            post.ask_about(Path::new(&format!("/{n}")), DirectoryErrand::Watch);
        }
        let expected = Errand {
            root: RootErrand::BeginAgain,
            directories: HashMap::new(),
        };
        assert_eq!(post.wait(), expected);
    }

    #[test]
    fn who_is_stopped_stays_stopped() {
        let post = Post::new();
        post.ask(RootErrand::Stop);
        for _ in 0..2 {
            assert_eq!(post.wait().root, RootErrand::Stop);
            assert!(post.is_stopped());
        }
    }
}
