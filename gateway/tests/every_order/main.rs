//! Notices in every order: two watchers, one target, and everything that can happen between
//! them, in every order of six operations.
//!
//! What can happen next depends on where cursors and leases stand towards one another and on
//! nothing else, and such standings are few: every order leads through them. So the tour takes
//! every operation in every standing that fewer than six operations lead to, on the real state
//! layer, and compares what it answers with the sentences of the specification's section 4.
//!
//! Two things leave orders out, and both are checked on the way. A standing says of a number
//! or a time only how it stands towards others: a step that is taken twice must lead to the
//! same standing twice, so nothing that it leaves out makes a difference. And the watchers
//! are alike: two standings in which each stands where the other does in the other one are
//! one, and the tour meets it now this way, now that way round.
//!
//! `TIDINGS_EVERY_ORDER` says how deep, beyond two watches that stand; `scripts/every-order`
//! goes deeper.

mod op;
mod standing;
mod tour;
mod watcher;
mod world;

use op::Op;
use tour::{Next, Summary, Tour};
use world::World;

/// How many operations an order has, at the most, where nobody says.
const DEFAULT_DEEP: usize = 6;

#[test]
fn every_order_of_six_operations_tells_two_watchers_what_the_specification_says() {
    eprintln!("{:?}", take());
}

/// Takes a tour to its end; whatever does not hold on the way panics.
fn take() -> Summary {
    let deep = std::env::var("TIDINGS_EVERY_ORDER").ok();
    let deep = deep.map_or(DEFAULT_DEEP, |text| {
        text.parse().expect("TIDINGS_EVERY_ORDER is a number")
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let summary = runtime.block_on(async {
        let mut world = World::new().await;
        let mut tour = Tour::new(world.standing(), Op::all(), deep);
        loop {
            match tour.next() {
                Next::Take(op) => {
                    world.take(op).await;
                    tour.took(op, world.standing());
                }
                Next::StartAnew => {
                    world.start_anew().await;
                    tour.started_anew(&world.standing());
                }
                Next::Done => return tour.summary(),
            }
        }
    });
    assert!(
        summary.deepest >= deep.min(DEFAULT_DEEP),
        "there is more: {summary:?}"
    );
    summary
}
