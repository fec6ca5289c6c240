//! The state layer against a naive model of the specification's sections 4 to 6: random
//! interleavings of everything that moves a cursor, compared after each step.
//!
//! Thousands of interleavings, as far as they are done within a minute. `TIDINGS_MODEL_SECONDS`
//! says for how long instead; `TIDINGS_SEED` repeats an earlier run. `scripts/model` sets them.

mod budget;
mod compare;
mod oracle;
mod steps;
mod world;

use std::sync::{Mutex, MutexGuard};
use std::thread;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use tidings_protocol::digest::sha256;

use budget::Budget;
use steps::{Step, steps};
use world::World;

/// How many interleavings one seed gives, so that a failure is soon repeated.
const CASES_PER_SEED: u32 = 10;

/// How many threads try at once, at the most: each has a database of its own.
const MAX_THREADS: usize = 4;

#[test]
fn cursors_notices_deltas_and_gaps_are_those_of_the_specification() {
    let budget = Mutex::new(Budget::of_environment());
    eprintln!("TIDINGS_SEED={}", taken(&budget).seed());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads.min(MAX_THREADS) {
            scope.spawn(|| try_all(&budget));
        }
    });
    let held = taken(&budget).given();
    assert!(held >= CASES_PER_SEED, "nothing was tried");
    eprintln!("{held} interleavings held");
}

/// Tries what the budget gives, until it gives no more; whatever does not hold panics.
fn try_all(budget: &Mutex<Budget>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    loop {
        let batch = taken(budget).next(CASES_PER_SEED);
        let Some(batch) = batch else { return };
        let tried = runner(batch.seed, batch.cases).run(&steps(), |steps| {
            runtime.block_on(compare(&steps));
            Ok::<(), TestCaseError>(())
        });
        if let Err(error) = tried {
            taken(budget).end();
            panic!("TIDINGS_SEED={}: {error}", batch.seed);
        }
    }
}

fn taken(budget: &Mutex<Budget>) -> MutexGuard<'_, Budget> {
    budget.lock().expect("nobody panics while it is taken")
}

async fn compare(steps: &[Step]) {
    let mut world = World::new();
    for step in steps {
        world.take(step).await;
    }
    world.finish().await;
}

fn runner(seed: u64, cases: u32) -> TestRunner {
    let config = Config {
        cases,
        // The failing steps are printed in their shortest form; nothing is written.
        failure_persistence: None,
        ..Config::default()
    };
    let seed = sha256(&seed.to_be_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    TestRunner::new_with_rng(config, rng)
}
