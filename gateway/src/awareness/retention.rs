//! When the log may be shortened by age. One wrong clock must not erase it.

use std::time::Duration;

use tidings_protocol::EpochMs;

/// How long after start nothing is deleted by age: time for a clock to be set.
pub const QUIET_AFTER_START: Duration = Duration::from_hours(1);
/// How far wall clock and monotonic clock may have drifted apart since start.
pub const MAX_CLOCK_DISAGREEMENT_MS: EpochMs = 10 * 60 * 1_000;

/// Both clocks, read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// The wall clock; it may jump.
    pub wall: EpochMs,
    /// The monotonic clock; it never goes back.
    pub monotonic: Duration,
}

/// Whether deletion by age may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgeDeletion {
    /// It may.
    Allowed,
    /// Not yet: the process has just started.
    TooEarly,
    /// Not now: the clocks disagree, so one of them is wrong.
    ClocksDisagree,
}

/// Judges deletion by age at `now`, for a process that started at `start`.
#[must_use]
pub fn age_deletion(start: ClockReading, now: ClockReading) -> AgeDeletion {
    let monotonic = now.monotonic.saturating_sub(start.monotonic);
    if monotonic < QUIET_AFTER_START {
        return AgeDeletion::TooEarly;
    }
    let monotonic = EpochMs::try_from(monotonic.as_millis()).unwrap_or(EpochMs::MAX);
    let wall = now.wall.saturating_sub(start.wall);
    if wall.saturating_sub(monotonic).saturating_abs() > MAX_CLOCK_DISAGREEMENT_MS {
        return AgeDeletion::ClocksDisagree;
    }
    AgeDeletion::Allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_counts_an_hour_after_start_while_both_clocks_agree() {
        let start = ClockReading {
            wall: 1_000_000,
            monotonic: Duration::from_secs(50),
        };
        let minutes = |n: i64| n * 60_000;
        for (wall, monotonic, expected) in [
            (minutes(59), 59, AgeDeletion::TooEarly),
            (minutes(60), 60, AgeDeletion::Allowed),
            (minutes(70), 60, AgeDeletion::Allowed),
            (minutes(70) + 1, 60, AgeDeletion::ClocksDisagree),
            (minutes(50), 60, AgeDeletion::Allowed),
            (minutes(50) - 1, 60, AgeDeletion::ClocksDisagree),
            (minutes(525_600), 61, AgeDeletion::ClocksDisagree),
            (-minutes(525_600), 61, AgeDeletion::ClocksDisagree),
            (minutes(525_600), 525_600, AgeDeletion::Allowed),
        ] {
            let now = ClockReading {
                wall: start.wall + wall,
                monotonic: start.monotonic + Duration::from_mins(monotonic),
            };
            assert_eq!(age_deletion(start, now), expected, "{wall} {monotonic}");
        }
    }
}
