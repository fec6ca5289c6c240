//! How many interleavings are tried, and from which seeds.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// How many interleavings are tried where nobody says.
const DEFAULT_CASES: u32 = 3_000;
/// And for how long at the most: a slow machine tries fewer.
const DEFAULT_TIME: Duration = Duration::from_mins(1);

/// What is left to try.
pub(crate) struct Budget {
    seed: u64,
    given: u32,
    cases: u32,
    until: Instant,
}

/// Some interleavings, all of one seed.
pub(crate) struct Batch {
    pub(crate) seed: u64,
    pub(crate) cases: u32,
}

impl Budget {
    pub(crate) fn of_environment() -> Self {
        let seconds = number("TIDINGS_MODEL_SECONDS").map(Duration::from_secs);
        let fresh = || RandomState::new().hash_one("a fresh seed");
        Self {
            seed: number("TIDINGS_SEED").unwrap_or_else(fresh),
            given: 0,
            cases: seconds.map_or(DEFAULT_CASES, |_| u32::MAX),
            until: Instant::now() + seconds.unwrap_or(DEFAULT_TIME),
        }
    }

    /// The seed of the next batch.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// How many interleavings it has given.
    pub(crate) fn given(&self) -> u32 {
        self.given
    }

    /// The next interleavings to try, at most so many; each batch has the seed behind the
    /// one before.
    pub(crate) fn next(&mut self, at_most: u32) -> Option<Batch> {
        let cases = at_most.min(self.cases - self.given);
        if cases == 0 || Instant::now() >= self.until {
            return None;
        }
        self.given += cases;
        let seed = self.seed;
        self.seed = seed.wrapping_add(1);
        Some(Batch { seed, cases })
    }

    /// Gives no more.
    pub(crate) fn end(&mut self) {
        self.cases = self.given;
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is not a number: {text}")),
    )
}
