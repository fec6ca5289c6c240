//! Moves the engine: takes what the watcher tells, sends tailers out, hands reports over,
//! and sweeps. The only task; everything that may block is on the pool's threads.

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, watch};

use super::engine::{Engine, ReadOrder, Session};
use super::pool::Pool;
use crate::clock::Clock;
use crate::discover::RootPlaces;
use crate::tail::{Places, Probe};
use crate::watch::{Answer, Watcher};

/// How long after a failure of the driver it is started again.
const RESTART_AFTER: Duration = Duration::from_secs(1);

/// When things are due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    /// The first sweep after the start.
    pub(super) first_sweep: Duration,
    /// Each further one after the one before.
    pub(super) sweep: Duration,
    /// How long a file system may take to answer.
    pub(super) hang_limit: Duration,
}

/// What the driver, the handles and the readers share.
pub(super) struct Shared {
    engine: Mutex<Engine>,
    pub(super) watcher: Watcher,
    pub(super) roots: Arc<RootPlaces>,
    pub(super) places: Arc<dyn Places>,
    pub(super) pool: Pool,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) timing: Timing,
    /// Something has been put into the engine.
    pub(super) news: Notify,
    /// True once everything is reported that an end has to report.
    pub(super) ended: watch::Sender<bool>,
    stopped: AtomicBool,
}

impl Shared {
    pub(super) fn new(
        engine: Engine,
        watcher: Watcher,
        roots: Arc<RootPlaces>,
        places: Arc<dyn Places>,
        pool: Pool,
        clock: Arc<dyn Clock>,
        timing: Timing,
    ) -> Self {
        Self {
            engine: Mutex::new(engine),
            watcher,
            roots,
            places,
            pool,
            clock,
            timing,
            news: Notify::new(),
            ended: watch::Sender::new(false),
            stopped: AtomicBool::new(false),
        }
    }

    /// The engine, for as long as it takes to put something in. Nobody waits with it.
    pub(super) fn engine(&self) -> MutexGuard<'_, Engine> {
        // After a panic a link may be in a wrong line: every line checks what it pops.
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts something into the engine and has the driver look at it.
    pub(super) fn put(&self, put: impl FnOnce(&mut Engine, Duration)) {
        put(&mut self.engine(), self.clock.monotonic());
        self.news.notify_one();
    }

    /// Ends the driver; what is out reading is not waited for.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.pool.stop();
        self.news.notify_one();
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Sends a tailer out.
    fn start(self: &Arc<Self>, order: ReadOrder) {
        let shared = self.clone();
        self.pool.run(move || {
            let ReadOrder { read, mut tailer } = order;
            let probe = Probe {
                places: &*shared.places,
                now: shared.clock.now(),
                monotonic: shared.clock.monotonic(),
            };
            let result = catch_unwind(AssertUnwindSafe(|| tailer.read(&probe)));
            shared.put(|engine, now| match result {
                Ok(reading) => engine.read(read, tailer, reading, now),
                Err(_) => engine.read_failed(read, now),
            });
        });
    }
}

/// Drives until it is stopped, and again should it ever panic.
pub(super) async fn supervise(shared: Arc<Shared>) {
    while let Err(error) = tokio::spawn(drive(shared.clone())).await {
        if error.is_cancelled() {
            return;
        }
        tracing::error!("following failed for a fault of ours; it goes on");
        tokio::time::sleep(RESTART_AFTER).await;
    }
}

async fn drive(shared: Arc<Shared>) {
    let mut sweep_at = shared.clock.monotonic() + shared.timing.first_sweep;
    while !shared.is_stopped() {
        let now = shared.clock.monotonic();
        let sweep_is_due = now >= sweep_at;
        if sweep_is_due {
            sweep_at = now + shared.timing.sweep;
            shared.watcher.survey();
        }
        note_answers(&shared);
        let step = {
            let changes = shared.watcher.changes();
            let mut engine = shared.engine();
            engine.roots_answer(shared.watcher.answers());
            engine.hear(&changes, now);
            if sweep_is_due {
                engine.sweep(now);
            }
            engine.wake(now);
            Step::of(&mut engine, now)
        };
        for order in step.orders {
            shared.start(order);
        }
        let blocked = match step.outlet {
            Some(outlet) => hand_over(&shared, outlet),
            None => None,
        };
        if shared.engine().has_ended(now) {
            shared.ended.send_replace(true);
        }
        let wake_at = step.wake_at.map_or(sweep_at, |at| at.min(sweep_at));
        tokio::select! {
            () = shared.news.notified() => {}
            () = shared.watcher.news() => {}
            () = room(blocked) => {}
            () = tokio::time::sleep(wake_at.saturating_sub(now)) => {}
        }
    }
}

/// What one look at the engine gives to do.
struct Step {
    orders: Vec<ReadOrder>,
    outlet: Option<Session>,
    wake_at: Option<Duration>,
}

impl Step {
    fn of(engine: &mut Engine, now: Duration) -> Self {
        let orders = engine.next_reads(now);
        Self {
            orders,
            outlet: engine.outlet(),
            wake_at: engine.wake_at(now),
        }
    }
}

/// Leaves roots that do not answer out of every search.
fn note_answers(shared: &Shared) {
    for (root, answer) in shared.watcher.answers().enumerate() {
        match answer {
            Answer::Hung => shared.roots.leave_out(root),
            Answer::Timely => shared.roots.take_in(root),
        }
    }
}

/// Hands reports over as long as the connection takes them; the connection, when it has no
/// room for the next.
fn hand_over(shared: &Shared, session: Session) -> Option<Session> {
    loop {
        match session.reports.try_reserve() {
            Ok(permit) => {
                let now = shared.clock.monotonic();
                let report = shared.engine().next_report(session.number, now)?;
                permit.send(report);
            }
            Err(TrySendError::Closed(())) => {
                shared.engine().closed(session.number);
                return None;
            }
            Err(TrySendError::Full(())) => break,
        }
    }
    Some(session)
}

/// Waits until the connection has room again; for ever where it has.
async fn room(blocked: Option<Session>) {
    match blocked {
        // Whether there is still a report for it is decided anew; one that is closed is
        // noticed there too.
        Some(session) => drop(session.reports.reserve().await),
        None => pending().await,
    }
}
