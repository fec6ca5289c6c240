//! Watches the roots: one file watch per directory, each set before the directory is read.
//! What changed is collected until somebody takes it, so nothing here grows with the load.

mod changes;
mod events;
mod explain;
mod keeper;
mod post;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use notify::RecommendedWatcher;
use tidings_protocol::wire::messages::RootState;

use self::changes::Collected;
use self::explain::lost_events;
use self::keeper::Keeper;
use self::post::{Lost, Post, RootErrand, Seen};
use crate::clock::Clock;
use crate::discover::roots::Origin;
use crate::discover::{Root, RootSet};

pub use changes::Changes;

/// How long a file system may take to answer before its root is skipped.
pub const HANG_LIMIT: Duration = Duration::from_secs(45);

/// How long it is shown that file events were lost: long enough for somebody who looks now
/// and then.
const LOST_IS_SHOWN_FOR: Duration = Duration::from_hours(1);

/// Watches a set of roots, each from a thread of its own, until it is dropped.
#[derive(Debug)]
pub struct Watcher {
    roots: Vec<Kept>,
    collected: Arc<Collected>,
    clock: Arc<dyn Clock>,
    hang_limit: Duration,
}

#[derive(Debug)]
struct Kept {
    root: Arc<Root>,
    post: Arc<Post>,
}

/// A root as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootView {
    /// How its files are followed.
    pub state: RootState,
    /// What an operator should know about it.
    pub warnings: Vec<String>,
    /// Whether it answers.
    pub answer: Answer,
    /// Whether it is worth showing.
    pub standing: Standing,
}

/// Whether a root's file system answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// In time.
    Timely,
    /// Not within [`HANG_LIMIT`]: whoever touches it waits with it.
    Hung,
}

/// Whether a root is worth showing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is there, was there, or somebody named it.
    Expected,
    /// A default root of a program that is not installed.
    NeverThere,
}

impl Watcher {
    /// Begins to watch. Everything is reported as changed once a root's watches stand.
    #[must_use]
    pub fn start(roots: &RootSet, clock: Arc<dyn Clock>, hang_limit: Duration) -> Self {
        let collected = Arc::new(Collected::default());
        let keep = |root: &Root| {
            let root = Arc::new(root.clone());
            let post = Arc::new(Post::new());
            post.ask(RootErrand::Survey);
            let kept = Kept { root, post };
            kept.start_keeper(&collected, &clock, hang_limit);
            kept
        };
        let roots = roots.all().iter().map(keep).collect();
        Self {
            roots,
            collected,
            clock,
            hang_limit,
        }
    }

    /// Waits until files changed or a root is in another state.
    pub async fn news(&self) {
        self.collected.news().await;
    }

    /// Takes what has changed since it was last taken.
    pub fn changes(&self) -> Changes {
        self.collected.take()
    }

    /// Has every root looked at, and watched where it is not. One look per root at a time.
    pub fn survey(&self) {
        for kept in &self.roots {
            kept.post.ask(RootErrand::Survey);
        }
    }

    /// The same for the roots that were not there or are not wholly watched.
    pub fn survey_unwatched(&self) {
        for kept in &self.roots {
            let state = kept.post.seen().state;
            if state != RootState::Watched {
                kept.post.ask(RootErrand::Survey);
            }
        }
    }

    /// Whether each root answers, in the order of the set. Cheap, unlike [`Watcher::view`].
    pub fn answers(&self) -> impl Iterator<Item = Answer> + '_ {
        let now = self.clock.monotonic();
        self.roots
            .iter()
            .map(move |kept| kept.post.seen().waiting(now))
            .map(|waiting| {
                if waiting > self.hang_limit {
                    Answer::Hung
                } else {
                    Answer::Timely
                }
            })
    }

    /// The roots as they are shown, in the order of the set.
    pub fn view(&self) -> Vec<RootView> {
        let now = self.clock.monotonic();
        self.roots
            .iter()
            .map(|kept| self.view_of(kept, now))
            .collect()
    }

    fn view_of(&self, kept: &Kept, now: Duration) -> RootView {
        let seen = kept.post.seen().clone();
        let standing = if seen.ever_there || kept.root.origin == Origin::Given {
            Standing::Expected
        } else {
            Standing::NeverThere
        };
        let waiting = seen.waiting(now);
        if waiting > self.hang_limit {
            let warning = format!(
                "{} has not answered for {} s; its threads are not read until it does",
                kept.root.path.display(),
                waiting.as_secs()
            );
            return RootView {
                state: RootState::Unavailable,
                warnings: vec![warning],
                answer: Answer::Hung,
                standing: Standing::Expected,
            };
        }
        RootView {
            state: seen.state,
            warnings: warnings(&kept.root, &seen, standing, now),
            answer: Answer::Timely,
            standing,
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        for kept in &self.roots {
            kept.post.ask(RootErrand::Stop);
        }
    }
}

impl Kept {
    /// Starts the root's keeper, and another one after it should it ever panic. Its thread
    /// is not waited for: it may be stuck in a file system that never answers.
    fn start_keeper(
        &self,
        collected: &Arc<Collected>,
        clock: &Arc<dyn Clock>,
        hang_limit: Duration,
    ) {
        let (root, post) = (self.root.clone(), self.post.clone());
        let (collected, clock) = (collected.clone(), clock.clone());
        let new_keeper = move || {
            Keeper::<RecommendedWatcher>::new(
                root.clone(),
                post.clone(),
                collected.clone(),
                clock.clone(),
                hang_limit,
            )
        };
        let (root, post) = (self.root.clone(), self.post.clone());
        let keep = move || {
            while !post.is_stopped() {
                let keeper = new_keeper();
                if catch_unwind(AssertUnwindSafe(|| keeper.run())).is_err() {
                    tracing::error!(root = %root.path.display(), "watching failed; it begins again at the next sweep");
                    show_fault(&post, &root);
                }
            }
        };
        let started = thread::Builder::new()
            .name("tidings-keeper".to_owned())
            .spawn(keep);
        if started.is_err() {
            show_fault(&self.post, &self.root);
        }
    }
}

/// What to say of a root that answers.
fn warnings(root: &Root, seen: &Seen, standing: Standing, now: Duration) -> Vec<String> {
    if standing == Standing::NeverThere {
        return Vec::new();
    }
    let recent = |lost: &Lost| now.saturating_sub(lost.last_at) < LOST_IS_SHOWN_FOR;
    let lost = seen.lost.filter(recent);
    let lost = lost.map(|lost| lost_events(root, lost));
    seen.warning.clone().into_iter().chain(lost).collect()
}

fn show_fault(post: &Post, root: &Root) {
    let mut seen = post.seen();
    seen.state = RootState::Polled;
    seen.waiting_since = None;
    seen.warning = Some(format!(
        "{} is not watched for a fault of ours; it is read once a minute",
        root.path.display()
    ));
}
