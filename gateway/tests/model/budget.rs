//! How many interleavings are tried, and from which seeds.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// How many interleavings are tried where nobody says: some twenty seconds.
const DEFAULT_CASES: u32 = 200;

/// What is left to try.
pub(crate) struct Budget {
    seed: u64,
    left: Left,
}

enum Left {
    Cases(u32),
    Until(Instant),
}

/// Some interleavings, all of one seed.
pub(crate) struct Batch {
    pub(crate) seed: u64,
    pub(crate) cases: u32,
}

impl Budget {
    pub(crate) fn of_environment() -> Self {
        let seconds = number("TIDINGS_MODEL_SECONDS").map(Duration::from_secs);
        let cases = number("TIDINGS_MODEL_CASES");
        let cases = cases.map(|cases| u32::try_from(cases).expect("not that many cases"));
        let fresh = || RandomState::new().hash_one("a fresh seed");
        Self {
            seed: number("TIDINGS_SEED").unwrap_or_else(fresh),
            left: match seconds {
                Some(seconds) => Left::Until(Instant::now() + seconds),
                None => Left::Cases(cases.unwrap_or(DEFAULT_CASES)),
            },
        }
    }

    /// The seed of the next batch.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The next interleavings to try, at most so many; each batch has the seed behind the
    /// one before.
    pub(crate) fn next(&mut self, at_most: u32) -> Option<Batch> {
        let cases = match &mut self.left {
            Left::Cases(left) => {
                let cases = at_most.min(*left);
                *left -= cases;
                cases
            }
            Left::Until(end) if Instant::now() < *end => at_most,
            Left::Until(_) => 0,
        };
        let seed = self.seed;
        self.seed = seed.wrapping_add(1);
        (cases > 0).then_some(Batch { seed, cases })
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is not a number: {text}")),
    )
}
