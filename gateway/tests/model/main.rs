//! The state layer against a naive model of the specification's sections 4 to 6: random
//! interleavings of everything that moves a cursor, compared after each step.
//!
//! `TIDINGS_MODEL_CASES` says how many interleavings are tried.

mod oracle;
mod steps;
mod world;

use proptest::prelude::*;
use proptest::test_runner::Config;

use steps::steps;
use world::World;

/// How many interleavings are tried where nobody says: some twenty seconds.
const DEFAULT_CASES: u32 = 200;

fn config() -> Config {
    let cases = std::env::var("TIDINGS_MODEL_CASES").ok();
    let cases = cases.map(|text| text.parse().expect("TIDINGS_MODEL_CASES is a number"));
    Config {
        cases: cases.unwrap_or(DEFAULT_CASES),
        // The failing steps are printed in their shortest form; nothing is written.
        failure_persistence: None,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn cursors_notices_deltas_and_gaps_are_those_of_the_specification(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let mut world = World::new();
            for step in &steps {
                world.take(step).await;
            }
            world.finish().await;
        });
    }
}
