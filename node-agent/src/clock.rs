//! The one place that reads a clock; everybody else is handed one.

use std::time::{Duration, Instant};

use tidings_protocol::EpochMs;

/// Clocks that differ by more than this are set wrong, and not just unsynchronised.
pub const MAX_SKEW_MS: i64 = 5 * 60 * 1_000;

/// A source of time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Wall-clock time; it may jump.
    fn now(&self) -> EpochMs;
    /// Time since some fixed point; it never goes back.
    fn monotonic(&self) -> Duration;
}

/// The machine's own clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time begins now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock module")]
    fn now(&self) -> EpochMs {
        // A clock before 1970 is as good as 1970: every use clamps.
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        EpochMs::try_from(since.as_millis()).unwrap_or(EpochMs::MAX)
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}
