//! The follower on real files and real file events, against a gateway in memory.

mod connection;
mod engine;
mod files;
mod hostile;
mod many;
mod slow;

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use tidings_protocol::report::{Echo, Look, Outcome, ReportVerdict};
use tidings_protocol::{Catalog, ThreadId};

use super::*;
use crate::clock::SystemClock;
use crate::discover::Surroundings;

/// How long a test waits before it says that something never came.
const PATIENCE: Duration = Duration::from_secs(20);

/// Long enough for no test to see a sweep.
const NO_SWEEP: Duration = Duration::from_hours(1);

/// No sweep comes to the rescue of an event that was missed.
const EVENTS_ONLY: Timing = Timing {
    first_sweep: NO_SWEEP,
    sweep: NO_SWEEP,
    hang_limit: HANG_LIMIT,
};

/// Sweeps come so close together that a test can wait for them.
const SWEEPING: Timing = Timing {
    first_sweep: Duration::from_millis(20),
    sweep: Duration::from_millis(20),
    hang_limit: HANG_LIMIT,
};

/// A node's files, its follower, and a gateway that it reports to.
struct Bench {
    directory: tempfile::TempDir,
    follower: Follower,
    gateway: Gateway,
}

/// A gateway that applies reports by link and revision, and checks what they tell.
#[derive(Default)]
struct Gateway {
    links: HashMap<LinkId, Link>,
    /// Where each recorded turn begins, per link.
    recorded: HashMap<LinkId, Vec<u64>>,
    reports: Option<mpsc::Receiver<Report>>,
    last_link: u64,
    /// How far its clock is ahead.
    ahead_ms: i64,
}

impl Bench {
    /// Roots `claude` and `codex`, watched, and a connected gateway without links.
    async fn start(timing: Timing) -> Self {
        Self::start_with(timing, |places| places).await
    }

    async fn start_with(
        timing: Timing,
        wrap: impl FnOnce(Arc<RootPlaces>) -> Arc<dyn Places>,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let given = ["claude", "codex"].map(|catalog| {
            let path = directory.path().join(catalog);
            fs::create_dir(&path).expect("a directory");
            format!("{catalog}={}", path.display())
                .parse()
                .expect("a root")
        });
        let options = FollowerOptions {
            roots: RootSet::new(&Surroundings::default(), &given).expect("roots"),
            clock: Arc::new(SystemClock::new()),
            seen_file: None,
            readers: FollowerOptions::READERS,
        };
        let bench = Self {
            directory,
            follower: Follower::start_with(options, timing, wrap),
            gateway: Gateway::default(),
        };
        let watched = |presence: Presence| {
            let states = presence.roots.into_iter().map(|root| root.state.as_str());
            states.eq(["watched", "watched"])
        };
        while !watched(bench.follower.presence().await) {}
        bench
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    /// A file with one human line from before it is followed.
    fn old_file(&self, path: &str) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        append(&path, &human("old"));
        path
    }

    /// Connects, and names all links.
    fn connect(&mut self, capacity: usize) {
        let (sender, reports) = mpsc::channel(capacity);
        self.gateway.reports = Some(reports);
        let gateway = gateway_clock(self.gateway.ahead_ms);
        self.follower.connected(sender, gateway);
        for link in self.gateway.links.values() {
            self.follower.link(link.clone());
        }
        self.follower.links_end();
    }

    /// Adopts the thread in `path` and follows it.
    async fn adopt(&mut self, path: &Path) -> LinkId {
        let link = self.open(path).await;
        let id = link.link;
        self.gateway.links.insert(id, link.clone());
        self.follower.link(link);
        self.until_idle(id).await;
        id
    }

    /// The thread in `path` as a link that is not followed yet.
    async fn open(&mut self, path: &Path) -> Link {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        let catalog = if name.starts_with("rollout-") {
            Catalog::Codex
        } else {
            Catalog::Claude
        };
        let thread_id = crate::discover::files::thread_in_name(catalog, name).expect("a thread");
        let wanted = OpenThread {
            catalog,
            thread_id: thread_id.clone(),
        };
        let opened = self.follower.open_thread(wanted).await.expect("a thread");
        self.gateway.last_link += 1;
        Link {
            link: LinkId(self.gateway.last_link),
            revision: 1,
            catalog,
            thread_id,
            path: opened.thread.path,
            marker: opened.marker,
            echo: Echo::default(),
            last_look: Look::Good,
        }
    }

    /// Waits until the link has been read and has nothing to report.
    async fn until_idle(&self, link: LinkId) {
        let waited = tokio::time::timeout(PATIENCE, async {
            while self.follower.presence().await.pending.contains(&link) {}
        });
        assert!(waited.await.is_ok(), "{link:?} never comes to rest");
    }

    /// The next report, which must come.
    async fn report(&mut self) -> Report {
        let reports = self.gateway.reports.as_mut().expect("connected");
        let next = tokio::time::timeout(PATIENCE, reports.recv()).await;
        next.expect("no report came").expect("an open channel")
    }

    /// A report that has come already, if one has.
    fn report_so_far(&mut self) -> Option<Report> {
        let reports = self.gateway.reports.as_mut().expect("connected");
        reports.try_recv().ok()
    }

    /// Records a report and answers it.
    fn apply(&mut self, report: &Report) {
        let verdict = self.gateway.record(report);
        self.follower.answer(ReportAnswer {
            link: report.link,
            verdict,
        });
    }

    /// Records reports until `count` turns of the link are recorded.
    async fn apply_until(&mut self, link: LinkId, count: usize) {
        while self.gateway.turns(link).len() < count {
            let report = self.report().await;
            self.apply(&report);
        }
    }
}

impl Gateway {
    fn record(&mut self, report: &Report) -> ReportVerdict {
        report.check().expect("a good report");
        let Some(link) = self.links.get_mut(&report.link) else {
            return ReportVerdict::Stale { current: None };
        };
        if link.revision != report.revision {
            return ReportVerdict::Stale {
                current: Some(Box::new(link.clone())),
            };
        }
        link.revision += 1;
        link.marker = report.marker.clone();
        link.path.clone_from(&report.path);
        if let Outcome::Activity(activity) = &report.outcome {
            let turns = self.recorded.entry(report.link).or_default();
            turns.extend(activity.turns.iter().map(|turn| turn.byte_start));
        }
        ReportVerdict::Applied {
            revision: link.revision,
        }
    }

    /// Where the link's recorded turns begin.
    fn turns(&self, link: LinkId) -> Vec<u64> {
        self.recorded.get(&link).cloned().unwrap_or_default()
    }
}

/// A clock that is ahead of this machine's.
fn gateway_clock(ahead_ms: i64) -> GatewayClock {
    let asked = Moment::of(&SystemClock::new());
    GatewayClock {
        showed: asked.wall + ahead_ms,
        asked,
    }
}

/// A line that a human wrote.
fn human(id: &str) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"{id}\",\"timestamp\":\"2026-01-02T03:04:05.000Z\",\
         \"message\":{{\"role\":\"user\",\"content\":\"human words\"}}}}\n"
    )
}

/// A line that nobody wrote.
fn reply(id: &str) -> String {
    format!(
        "{{\"type\":\"assistant\",\"uuid\":\"{id}\",\"timestamp\":\"2026-01-02T03:04:05.000Z\",\
         \"message\":{{\"role\":\"assistant\",\"content\":[]}}}}\n"
    )
}

/// Appends in one write; where it begins.
fn append(path: &Path, text: &str) -> u64 {
    let mut file = fs::File::options()
        .create(true)
        .append(true)
        .open(path)
        .expect("open");
    let at = file.metadata().expect("metadata").len();
    file.write_all(text.as_bytes()).expect("write");
    at
}

fn turns(report: &Report) -> Vec<u64> {
    match &report.outcome {
        Outcome::Activity(activity) => activity.turns.iter().map(|t| t.byte_start).collect(),
        _ => Vec::new(),
    }
}
