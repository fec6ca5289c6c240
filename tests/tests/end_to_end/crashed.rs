//! `kill -9` of a gateway that is asked for everything at once: what it answered is there,
//! and nothing is there by half. `scripts/crash` does the same for as long as one likes.

use tidings_tests::crash::crash;
use tidings_tests::seed;

#[test]
fn a_gateway_killed_under_load_keeps_what_it_answered_and_nothing_by_half() {
    match crash(seed(), 10, |_| {}) {
        Ok(tally) => assert!(tally.answers > 0 && tally.lost_writes > 0, "{tally:?}"),
        Err(broken) => panic!("{broken}"),
    }
}
