//! A clock that a test moves on.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use tidings_node::clock::{Clock, SystemClock};
use tidings_protocol::EpochMs;

/// A day.
pub(crate) const DAY_MS: EpochMs = 24 * 60 * 60 * 1_000;

/// The machine's clock, with both of its times moved on at will.
#[derive(Debug, Default)]
pub(crate) struct Shifted {
    system: SystemClock,
    wall_ms: AtomicI64,
    monotonic_ms: AtomicU64,
}

impl Shifted {
    /// The calendar moves on, or back.
    pub(crate) fn set_on(&self, ms: EpochMs) {
        self.wall_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// The calendar moves on by whole days.
    pub(crate) fn pass_days(&self, days: EpochMs) {
        self.set_on(days * DAY_MS);
    }

    /// Time passes that no calendar shows.
    pub(crate) fn pass(&self, time: Duration) {
        let ms = u64::try_from(time.as_millis()).expect("a short time");
        self.monotonic_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for Shifted {
    fn now(&self) -> EpochMs {
        self.system.now() + self.wall_ms.load(Ordering::Relaxed)
    }

    fn monotonic(&self) -> Duration {
        let passed = Duration::from_millis(self.monotonic_ms.load(Ordering::Relaxed));
        self.system.monotonic() + passed
    }
}
