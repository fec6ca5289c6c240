//! The state layer against a naive model of the specification's sections 4 to 6: random
//! interleavings of everything that moves a cursor, compared after each step.
//!
//! `TIDINGS_MODEL_CASES` says how many interleavings are tried, or `TIDINGS_MODEL_SECONDS`
//! for how long; `TIDINGS_SEED` repeats an earlier run. `scripts/model` sets them.

mod budget;
mod oracle;
mod steps;
mod world;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use tidings_protocol::digest::sha256;

use budget::Budget;
use steps::{Step, steps};
use world::World;

/// How many interleavings one seed gives, so that a failure is soon repeated.
const CASES_PER_SEED: u32 = 10;

#[test]
fn cursors_notices_deltas_and_gaps_are_those_of_the_specification() {
    let mut budget = Budget::of_environment();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    eprintln!("TIDINGS_SEED={}", budget.seed());
    let mut held = 0;
    while let Some(batch) = budget.next(CASES_PER_SEED) {
        let tried = runner(batch.seed, batch.cases).run(&steps(), |steps| {
            runtime.block_on(compare(&steps));
            Ok::<(), TestCaseError>(())
        });
        if let Err(error) = tried {
            panic!("TIDINGS_SEED={}: {error}", batch.seed);
        }
        held += batch.cases;
    }
    eprintln!("{held} interleavings held");
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
