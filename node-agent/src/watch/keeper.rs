//! Keeps one root watched: the only thread that walks its directories, so a file system
//! that does not answer holds up nobody else, and never more than one probe waits for it.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{ErrorKind, RecursiveMode, Watcher};
use tidings_protocol::wire::messages::RootState;

use super::changes::Collected;
use super::events::{Heard, hear};
use super::explain::{lost_events, unwatched};
use super::post::{DirectoryErrand, Lost, Post, RootErrand};
use crate::clock::Clock;
use crate::discover::Root;
use crate::discover::walk::{Step, walk};

/// The keeper of one root, with the kernel's file events or a test's.
pub(super) struct Keeper<W> {
    root: Arc<Root>,
    post: Arc<Post>,
    collected: Arc<Collected>,
    clock: Arc<dyn Clock>,
    hang_limit: Duration,
    watching: Option<Watching<W>>,
    /// The lost events that the log tells of.
    logged: Option<Lost>,
}

/// What a keeper holds while file events come.
struct Watching<W> {
    events: W,
    /// Device and inode of the root.
    identity: (u64, u64),
    /// The directories that are watched.
    directories: HashSet<PathBuf>,
    /// Why some directory is not.
    trouble: Option<String>,
}

/// Whether a walk tells of the files that it finds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Files {
    /// They are new here.
    Tell,
    /// Whoever is interested will be told to look at everything.
    Skip,
}

impl<W: Watcher> Keeper<W> {
    pub(super) fn new(
        root: Arc<Root>,
        post: Arc<Post>,
        collected: Arc<Collected>,
        clock: Arc<dyn Clock>,
        hang_limit: Duration,
    ) -> Self {
        Self {
            root,
            post,
            collected,
            clock,
            hang_limit,
            watching: None,
            logged: None,
        }
    }

    /// Does errands until it is told to stop.
    pub(super) fn run(mut self) {
        loop {
            let errand = self.post.wait();
            match errand.root {
                RootErrand::Stop => return,
                RootErrand::BeginAgain => {
                    self.log_lost();
                    self.watching = None;
                    self.survey();
                }
                RootErrand::Survey => self.survey(),
                RootErrand::Nothing => {}
            }
            for (directory, what) in errand.directories {
                self.look_at(&directory, what);
            }
            self.waiting();
            self.post.seen().waiting_since = None;
        }
    }

    /// Says so when events were lost since it was last said.
    fn log_lost(&mut self) {
        let lost = self.post.seen().lost;
        if lost != self.logged
            && let Some(lost) = lost
        {
            tracing::warn!("{}", lost_events(&self.root, lost));
            self.logged = Some(lost);
        }
    }

    /// Sees whether the root is there, and watches it if it is not watched, or not wholly.
    fn survey(&mut self) {
        self.waiting();
        let identity = match probe(&self.root.path) {
            Ok(identity) => identity,
            Err(error) => return self.lose(&error),
        };
        if self.watching.as_ref().map(|watching| watching.identity) != Some(identity) {
            self.watching = None;
        }
        let whole = matches!(&self.watching, Some(watching) if watching.trouble.is_none());
        if whole {
            return;
        }
        if self.watching.is_none() {
            match self.begin(identity) {
                Ok(watching) => self.watching = Some(watching),
                Err(error) => {
                    return self.show(RootState::Polled, Some(unwatched(&self.root, &error)));
                }
            }
        }
        let root = self.root.clone();
        self.cover(&root.path, Files::Skip);
        self.show_watching();
        // What happened before the watch stood, no event has told.
        self.collected.everything();
    }

    /// Starts to listen, without watching anything yet.
    fn begin(&self, identity: (u64, u64)) -> notify::Result<Watching<W>> {
        let (root, post, collected) =
            (self.root.clone(), self.post.clone(), self.collected.clone());
        let clock = self.clock.clone();
        // Runs on the thread that takes events from the kernel: it must not wait.
        let listen = move |event: notify::Result<notify::Event>| match event {
            Ok(event) => hear(&root, &event, &mut |heard| {
                tell(heard, clock.monotonic(), &post, &collected);
            }),
            Err(_) => tell(Heard::Lost, clock.monotonic(), &post, &collected),
        };
        Ok(Watching {
            events: W::new(listen, notify::Config::default())?,
            identity,
            directories: HashSet::new(),
            trouble: None,
        })
    }

    /// Watches the directory and everything below it that matters. Each is watched before
    /// it is read, so what appears in between is seen at least once.
    fn cover(&mut self, from: &Path, files: Files) {
        let Some(mut watching) = self.watching.take() else {
            return;
        };
        let mut trouble = None;
        let root = self.root.clone();
        let _ = walk(&root, from, &mut |step| {
            self.waiting();
            if self.post.is_stopped() {
                return ControlFlow::Break(());
            }
            match step {
                Step::Directory(path) => match watching.watch(path) {
                    Ok(()) => {}
                    Err(error) => {
                        trouble = Some(unwatched(&self.root, &error));
                        if matches!(error.kind, ErrorKind::MaxFilesWatch) {
                            return ControlFlow::Break(());
                        }
                    }
                },
                Step::Transcript(file) if files == Files::Tell => self.collected.file(file.path),
                Step::Unreadable(path, error) if error.kind() != io::ErrorKind::NotFound => {
                    trouble = Some(format!("{} cannot be read: {error}", path.display()));
                }
                Step::Transcript(_) | Step::Unreadable(..) | Step::Other(_) => {}
            }
            ControlFlow::Continue(())
        });
        if from == root.path || trouble.is_some() {
            watching.trouble = trouble;
        }
        self.watching = Some(watching);
    }

    /// A directory has appeared, or another stands under its name.
    fn look_at(&mut self, directory: &Path, what: DirectoryErrand) {
        let Some(watching) = &mut self.watching else {
            // The next survey begins from nothing.
            return;
        };
        if what == DirectoryErrand::Forget && watching.forget(directory) {
            // A directory that was renamed tells nothing about the files in it.
            self.collected.everything();
        }
        self.waiting();
        if fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.is_dir()) {
            self.cover(directory, Files::Tell);
            self.show_watching();
        }
    }

    /// The root is not there, or cannot be read.
    fn lose(&mut self, error: &io::Error) {
        self.watching = None;
        let before = self.post.seen().clone();
        let path = self.root.path.display();
        let warning = match error.kind() {
            io::ErrorKind::NotFound => format!("{path} is not there"),
            _ => format!("{path} cannot be read: {error}"),
        };
        self.show(RootState::Unavailable, Some(warning));
        if before.ever_there && before.state != RootState::Unavailable {
            // Its links are looked at, and say so.
            self.collected.everything();
        }
    }

    fn show_watching(&self) {
        match self.watching.as_ref().map(|watching| &watching.trouble) {
            Some(None) => self.show(RootState::Watched, None),
            Some(Some(trouble)) => self.show(RootState::Polled, Some(trouble.clone())),
            None => {}
        }
    }

    fn show(&self, state: RootState, warning: Option<String>) {
        let mut seen = self.post.seen();
        if seen.warning != warning
            && let Some(warning) = &warning
            && (seen.ever_there || state != RootState::Unavailable)
        {
            tracing::warn!("{warning}");
        }
        seen.state = state;
        seen.warning = warning;
        seen.ever_there |= state != RootState::Unavailable;
        drop(seen);
        self.collected.stir();
    }

    /// The file system has answered, and from now on is waited for again.
    fn waiting(&self) {
        let now = self.clock.monotonic();
        let since = self.post.seen().waiting_since.replace(now);
        if since.is_some_and(|since| now.saturating_sub(since) > self.hang_limit) {
            // Its threads were skipped meanwhile.
            self.collected.everything();
        }
    }
}

impl<W: Watcher> Watching<W> {
    fn watch(&mut self, directory: &Path) -> notify::Result<()> {
        if self.directories.contains(directory) {
            return Ok(());
        }
        match self.events.watch(directory, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.directories.insert(directory.to_owned());
                Ok(())
            }
            // It has gone again, and the event that says so is on its way.
            Err(error) if matches!(error.kind, ErrorKind::PathNotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Stops watching the directory and what is below it; false if it was not watched.
    fn forget(&mut self, directory: &Path) -> bool {
        let below = |path: &PathBuf| path.starts_with(directory);
        let watched: Vec<PathBuf> = self.directories.extract_if(below).collect();
        for path in &watched {
            // The kernel has usually dropped it already, which is no error here.
            let _ = self.events.unwatch(path);
        }
        !watched.is_empty()
    }
}

/// Passes on what an event said. Never waits.
fn tell(heard: Heard<'_>, now: Duration, post: &Post, collected: &Collected) {
    match heard {
        Heard::Transcript(path) => collected.file(path),
        Heard::Appeared(path) => post.ask_about(path, DirectoryErrand::Watch),
        Heard::Vanished(path) => post.ask_about(path, DirectoryErrand::Forget),
        Heard::Root => post.ask(RootErrand::BeginAgain),
        Heard::Lost => {
            post.seen().note_lost(now);
            post.ask(RootErrand::BeginAgain);
            collected.everything();
        }
    }
}

/// Device and inode of a directory that can be read.
fn probe(root: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::metadata(root)?;
    fs::read_dir(root)?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use notify::{Error, EventHandler, WatcherKind};
    use tidings_protocol::EpochMs;

    use super::*;
    use crate::discover::{RootSet, Surroundings};

    #[derive(Debug, Default)]
    struct HandClock(Mutex<Duration>);

    impl Clock for HandClock {
        fn now(&self) -> EpochMs {
            0
        }

        fn monotonic(&self) -> Duration {
            *self.0.lock().unwrap()
        }
    }

    /// A kernel whose table of watches has no room for directories called `full`.
    struct Kernel;

    impl Watcher for Kernel {
        fn new<F: EventHandler>(_: F, _: notify::Config) -> notify::Result<Self> {
            Ok(Self)
        }

        fn watch(&mut self, path: &Path, _: RecursiveMode) -> notify::Result<()> {
            if path.ends_with("full") {
                Err(Error::new(ErrorKind::MaxFilesWatch).add_path(path.to_owned()))
            } else {
                Ok(())
            }
        }

        fn unwatch(&mut self, _: &Path) -> notify::Result<()> {
            Ok(())
        }

        fn kind() -> WatcherKind {
            WatcherKind::NullWatcher
        }
    }

    fn keeper(root: &Path, clock: Arc<HandClock>) -> Keeper<Kernel> {
        let given = [format!("claude={}", root.display())
            .parse()
            .expect("a root")];
        let roots = RootSet::new(&Surroundings::default(), &given).expect("roots");
        Keeper::new(
            Arc::new(roots.all()[0].clone()),
            Arc::new(Post::new()),
            Arc::default(),
            clock,
            Duration::from_secs(45),
        )
    }

    #[test]
    fn after_a_long_wait_everything_is_looked_at() {
        for (waited, everything) in [(45, false), (46, true)] {
            let clock = Arc::new(HandClock::default());
            let keeper = keeper(Path::new("/r"), clock.clone());
            keeper.waiting();
            *clock.0.lock().unwrap() = Duration::from_secs(waited);
            keeper.waiting();
            assert_eq!(keeper.collected.take().everything, everything, "{waited}");
        }
    }

    #[test]
    fn a_root_without_room_for_its_watches_is_polled_until_there_is() {
        let scratch = tempfile::tempdir().expect("a directory");
        let full = scratch.path().join("full");
        fs::create_dir(&full).expect("a directory");
        let mut keeper = keeper(scratch.path(), Arc::default());
        for _ in 0..2 {
            keeper.survey();
            let seen = keeper.post.seen().clone();
            assert_eq!(seen.state, RootState::Polled);
            let warning = seen.warning.expect("a warning");
            assert!(warning.contains("max_user_watches"), "{warning}");
        }
        fs::remove_dir(&full).expect("remove");
        keeper.collected.take();
        keeper.survey();
        let seen = keeper.post.seen().clone();
        assert_eq!((seen.state, seen.warning), (RootState::Watched, None));
        assert!(keeper.collected.take().everything, "it was not watched");
        keeper.survey();
        assert!(!keeper.collected.take().everything, "it was");
        // A directory that comes later and cannot be watched is noticed too.
        fs::create_dir(&full).expect("a directory");
        keeper.look_at(&full, DirectoryErrand::Watch);
        assert_eq!(keeper.post.seen().state, RootState::Polled);
    }

    #[test]
    fn lost_events_begin_the_watch_again_and_are_counted() {
        let scratch = tempfile::tempdir().expect("a directory");
        let mut keeper = keeper(scratch.path(), Arc::default());
        keeper.survey();
        keeper.collected.take();
        for times in 1..=2 {
            let now = Duration::from_secs(times);
            tell(Heard::Lost, now, &keeper.post, &keeper.collected);
            assert!(keeper.collected.take().everything);
            assert_eq!(keeper.post.wait().root, RootErrand::BeginAgain);
        }
        keeper.log_lost();
        let lost = keeper.post.seen().lost.expect("lost events");
        assert_eq!((lost.times, lost.last_at), (2, Duration::from_secs(2)));
        assert_eq!(keeper.logged, Some(lost));
    }
}
