//! Follows links: reads their files when something happens to them, and reports what was
//! found to whatever connection there is.
//!
//! All state is in one engine behind one lock that nobody waits with. One task drives it;
//! files are read on a bounded pool of threads. Nothing is queued: a link that has
//! something to do is in a line, once, and what it found stays with it until the
//! connection takes it.

mod driver;
mod engine;
mod followed;
mod gateway_clock;
mod index;
mod pool;
mod queues;
mod slots;
mod status;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tidings_protocol::report::{Link, LinkId, Report, ReportAnswer};
use tidings_protocol::session_api::{
    ApiError, ErrorType, HistoryItems, NodeLinkStatus, RootStatus,
};
use tidings_protocol::wire::messages::{
    CatalogPage, CatalogThreads, HistoryPage, OpenThread, Presence, ThreadOpened,
};
use tidings_protocol::{Catalog, ThreadId};
use tokio::sync::{Semaphore, mpsc, oneshot};

use self::driver::{Shared, Timing, supervise};
use self::engine::Engine;
pub use self::gateway_clock::{GatewayClock, Moment};
use self::pool::Pool;
use self::slots::MAX_SLOW;
use crate::clock::Clock;
use crate::discover::listing::Listings;
use crate::discover::{RootPlaces, RootSet, catalog};
use crate::tail::Places;
use crate::watch::{HANG_LIMIT, Watcher};

/// How many catalog requests are worked on at once; the others wait for their turn.
const MAX_REQUESTS: usize = 4;
/// How long a graceful end waits for the answers to its last reports.
const END_LIMIT: Duration = Duration::from_secs(3);
/// How long a presence waits for the file events of its moment: the kernel hands them over
/// in less than a millisecond, a loaded machine in a few.
const EVENTS_ARRIVE_WITHIN: Duration = Duration::from_millis(50);

const TIMING: Timing = Timing {
    first_sweep: Duration::from_secs(15),
    sweep: Duration::from_mins(1),
    hang_limit: HANG_LIMIT,
};

/// What to follow, and with what.
#[derive(Debug)]
pub struct FollowerOptions {
    /// Where transcripts are.
    pub roots: RootSet,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where it is remembered which directories were seen; nowhere, where there is no next
    /// agent.
    pub seen_file: Option<PathBuf>,
    /// How many files are read at once; more while some are slow.
    pub readers: usize,
}

impl FollowerOptions {
    /// The usual number of readers: reading is short, and the disk is one.
    pub const READERS: usize = 4;
}

/// A handle on what is followed. The last one that is dropped ends it.
#[derive(Clone)]
pub struct Follower {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    requests: Arc<Semaphore>,
    listings: Arc<Listings>,
}

impl Follower {
    /// Begins to watch the roots. Must be called on a tokio runtime.
    #[must_use]
    pub fn start(options: FollowerOptions) -> Self {
        Self::start_with(options, TIMING, |places| places)
    }

    /// The same with other times, and with `wrap` around what the readers see of the roots.
    fn start_with(
        options: FollowerOptions,
        timing: Timing,
        wrap: impl FnOnce(Arc<RootPlaces>) -> Arc<dyn Places>,
    ) -> Self {
        let FollowerOptions {
            roots,
            clock,
            seen_file,
            readers,
        } = options;
        let roots = Arc::new(roots);
        let watcher = Watcher::start(&roots, clock.clone(), timing.hang_limit);
        let places = Arc::new(match seen_file {
            Some(file) => RootPlaces::remembering(roots.clone(), file),
            None => RootPlaces::new(roots.clone()),
        });
        let shared = Arc::new(Shared::new(
            Engine::new(roots, readers, timing.hang_limit),
            watcher,
            places.clone(),
            wrap(places),
            Pool::new(readers.max(1) + MAX_SLOW + MAX_REQUESTS),
            clock,
            timing,
        ));
        tokio::spawn(supervise(shared.clone()));
        let requests = Arc::new(Semaphore::new(MAX_REQUESTS));
        Self {
            handle: Arc::new(Handle {
                shared,
                requests,
                listings: Arc::default(),
            }),
        }
    }

    /// A new connection, which takes reports as fast as it can send them. Its links come
    /// next, all of them, and then [`Follower::links_end`]. Each report is to be answered
    /// on the same connection; no answer of an older one may be given after this. `gateway` is
    /// the clock by which the times of its deliveries are.
    pub fn connected(&self, reports: mpsc::Sender<Report>, gateway: GatewayClock) {
        self.shared()
            .put(|engine, _| engine.connected(reports, gateway));
    }

    /// The connection is gone. A closed channel says the same to whoever has a report for it.
    pub fn disconnected(&self) {
        self.shared().put(|engine, _| engine.disconnected());
    }

    /// The gateway names a link, or changes it.
    pub fn link(&self, link: Link) {
        let now = self.now();
        self.shared().put(|engine, _| engine.link(link, now));
    }

    /// The gateway has removed a link.
    pub fn link_removed(&self, link: LinkId) {
        self.shared().put(|engine, _| engine.forget(link));
    }

    /// The gateway has named all its links: what it has not named is followed no more.
    pub fn links_end(&self) {
        self.shared().put(|engine, _| engine.links_end());
        self.shared().watcher.survey_unwatched();
    }

    /// The gateway has answered a report.
    pub fn answer(&self, answer: ReportAnswer) {
        let now = self.now();
        self.shared().put(|engine, _| engine.answer(answer, now));
    }

    /// A hook says that the program writes to the file of this thread.
    pub fn nudge(&self, thread: &(Catalog, ThreadId)) {
        self.shared().put(|engine, now| engine.nudged(thread, now));
    }

    /// Signs of life. They speak for the moment of the call, and wait a little for the
    /// file events of that moment.
    pub async fn presence(&self) -> Presence {
        let shared = self.shared();
        let node_time = shared.clock.now();
        self.handle.listings.forget_old(shared.clock.monotonic());
        tokio::time::sleep(EVENTS_ARRIVE_WITHIN).await;
        let changes = shared.watcher.changes();
        shared.put(|engine, now| engine.hear(&changes, now));
        let views = shared.watcher.view();
        let warnings = self.warnings();
        let engine = shared.engine();
        status::presence(&engine, shared.roots.roots(), &views, warnings, node_time)
    }

    /// What is followed.
    pub fn links(&self) -> Vec<NodeLinkStatus> {
        status::links(&self.shared().engine())
    }

    /// Where transcripts are looked for.
    pub fn roots(&self) -> Vec<RootStatus> {
        let shared = self.shared();
        status::roots(shared.roots.roots(), &shared.watcher.view())
    }

    /// What an operator should know.
    pub fn warnings(&self) -> Vec<String> {
        let shared = self.shared();
        let (views, now) = (shared.watcher.view(), shared.clock.monotonic());
        status::warnings(&shared.engine(), &views, now, shared.timing.hang_limit)
    }

    /// A page of the threads on this machine.
    pub async fn catalog_page(&self, page: CatalogPage) -> CatalogThreads {
        let (places, listings) = (self.shared().roots.clone(), self.handle.listings.clone());
        let now = self.now().monotonic;
        let listed = self.ask(move || listings.page(&places, &page, now)).await;
        listed.unwrap_or_default()
    }

    /// Prepares a thread for being followed.
    pub async fn open_thread(&self, wanted: OpenThread) -> Result<ThreadOpened, ApiError> {
        let (places, clock) = (self.shared().roots.clone(), self.shared().clock.clone());
        let opened = self.ask(move || catalog::open(&places, clock.now(), &wanted));
        opened.await.unwrap_or_else(|| {
            let message = "the node agent could not open the thread";
            Err(ApiError::new(ErrorType::Internal, message)
                .with_hint("its log says why; if it is about to stop, try again"))
        })
    }

    /// A part of a thread's conversation.
    pub async fn history(&self, wanted: HistoryPage) -> Result<HistoryItems, ApiError> {
        let places = self.shared().roots.clone();
        let read = self.ask(move || catalog::history(&places, &wanted)).await;
        read.unwrap_or_else(|| {
            let message = "the node agent could not read the thread";
            Err(ApiError::new(ErrorType::Internal, message)
                .with_hint("its log says why; if it is about to stop, try again"))
        })
    }

    /// A graceful end: reports quiet progress, waits a little for the answers, and stops.
    pub async fn finish(&self) {
        let shared = self.shared();
        let mut ended = shared.ended.subscribe();
        shared.put(Engine::end);
        if tokio::time::timeout(END_LIMIT, ended.wait_for(|ended| *ended))
            .await
            .is_err()
        {
            tracing::warn!("stopping without an answer to the last reports; they are read again");
        }
        shared.stop();
    }

    /// Does something that may block, a few at a time; `None` if it failed.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let shared = self.shared();
        shared.watcher.survey_unwatched();
        let permit = self.handle.requests.clone().acquire_owned().await.ok()?;
        let (answer, answered) = oneshot::channel();
        shared.pool.run(move || {
            // Whoever asked may be gone; the place is taken until the work is done.
            let _ = answer.send(question());
            drop(permit);
        });
        answered.await.ok()
    }

    fn now(&self) -> Moment {
        Moment::of(&*self.shared().clock)
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").finish_non_exhaustive()
    }
}
