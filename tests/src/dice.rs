//! Random numbers that a seed gives again.

use std::hash::{BuildHasher, RandomState};

/// The variable that names the seed of a run to repeat.
const SEED_VARIABLE: &str = "TIDINGS_SEED";

/// Dice (xorshift). What they decide is repeated by their seed; what the scheduler decides
/// is not.
#[derive(Debug, Clone)]
pub struct Dice(u64);

/// The seed of this run: `TIDINGS_SEED` where it is set, else a fresh one. It is printed, so
/// that whoever sees the run fail can repeat it.
#[expect(
    clippy::print_stderr,
    reason = "the tests have no other way to say it, and a test that holds shows nothing"
)]
pub fn seed() -> u64 {
    let seed = match std::env::var(SEED_VARIABLE) {
        Ok(text) => text.parse().expect("TIDINGS_SEED is a number"),
        Err(_) => RandomState::new().hash_one("a fresh seed"),
    };
    eprintln!("{SEED_VARIABLE}={seed}");
    seed
}

impl Dice {
    /// The dice of this seed.
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring numbers, and zero gives nothing but
        // zeros: the step and the mixer of splitmix64.
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((mixed ^ (mixed >> 31)) | 1)
    }

    /// Other dice, which these decide on.
    #[must_use]
    pub fn split(&mut self) -> Self {
        Self::new(self.next())
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// True once in `times`, on the average.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    #[track_caller]
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let len = u64::try_from(from.len()).expect("a small number");
        let at = usize::try_from(self.below(len)).expect("a small number");
        &from[at]
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn a_seed_gives_the_same_numbers_again_and_another_seed_other_ones() {
    let numbers = |seed| {
        let mut dice = Dice::new(seed);
        let mut other = dice.split();
        [(); 8].map(|()| (dice.below(1_000_000), other.below(1_000_000)))
    };
    assert_eq!(numbers(0), numbers(0));
    assert_ne!(numbers(0), numbers(1));
    assert_ne!(numbers(0).map(|n| n.0), numbers(0).map(|n| n.1));
}
