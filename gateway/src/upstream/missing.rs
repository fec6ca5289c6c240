//! When an upstream file counts as gone.

use tidings_protocol::EpochMs;
use tidings_protocol::report::Outcome;

/// How many misses in a row make a file gone.
pub const MISSES_UNTIL_GONE: u32 = 3;
/// How far two misses are apart, at least, by the gateway's clock: a node that looks
/// again and again in one moment has looked once.
pub const MISS_INTERVAL_MS: EpochMs = 45_000;

/// The misses of a link so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Misses {
    /// How many in a row.
    pub count: u32,
    /// When the last one counted.
    pub last_at: Option<EpochMs>,
}

/// What an outcome does to the misses of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The file is there, or nobody can tell yet.
    Counting(Misses),
    /// The file is gone for good.
    Gone,
}

impl Misses {
    /// The misses after a report with this outcome.
    #[must_use]
    pub fn after(self, outcome: &Outcome, now: EpochMs) -> Presence {
        match outcome {
            Outcome::Activity(_) | Outcome::Quiet => Presence::Counting(Self::default()),
            Outcome::Inconclusive(_) => Presence::Counting(self),
            Outcome::Missing => self.missed(now),
        }
    }

    fn missed(self, now: EpochMs) -> Presence {
        let count = match self.last_at {
            Some(last) if now < last => {
                // The clock was set back: measure the interval from here on.
                return Presence::Counting(Self {
                    last_at: Some(now),
                    ..self
                });
            }
            Some(last) if now.saturating_sub(last) < MISS_INTERVAL_MS => {
                return Presence::Counting(self);
            }
            _ => self.count + 1,
        };
        if count >= MISSES_UNTIL_GONE {
            return Presence::Gone;
        }
        Presence::Counting(Self {
            count,
            last_at: Some(now),
        })
    }
}

#[cfg(test)]
mod tests {
    use tidings_protocol::report::{Activity, Inconclusive};

    use super::*;

    fn misses(count: u32, last_at: EpochMs) -> Misses {
        Misses {
            count,
            last_at: Some(last_at),
        }
    }

    #[test]
    fn three_misses_apart_make_a_file_gone() {
        let none = Misses::default();
        for (before, at, after) in [
            (none, 100_000, Presence::Counting(misses(1, 100_000))),
            (
                misses(1, 100_000),
                144_999,
                Presence::Counting(misses(1, 100_000)),
            ),
            (
                misses(1, 100_000),
                145_000,
                Presence::Counting(misses(2, 145_000)),
            ),
            (
                misses(2, 145_000),
                189_999,
                Presence::Counting(misses(2, 145_000)),
            ),
            (misses(2, 145_000), 190_000, Presence::Gone),
            // A clock set back neither counts nor stops the counting.
            (
                misses(2, 145_000),
                5_000,
                Presence::Counting(misses(2, 5_000)),
            ),
            (misses(2, 5_000), 50_000, Presence::Gone),
        ] {
            assert_eq!(
                before.after(&Outcome::Missing, at),
                after,
                "{before:?} {at}"
            );
        }
    }

    #[test]
    fn a_good_look_starts_the_count_anew_and_no_look_leaves_it() {
        let before = misses(2, 100_000);
        for (outcome, after) in [
            (Outcome::Quiet, Misses::default()),
            (Outcome::Activity(Activity::default()), Misses::default()),
            (Outcome::Inconclusive(Inconclusive::NeverSeen), before),
        ] {
            assert_eq!(
                before.after(&outcome, 900_000),
                Presence::Counting(after),
                "{outcome:?}"
            );
        }
    }
}
