//! Notices in every order: two watchers, one target, and everything that can happen between
//! them, in every order of any length.
//!
//! What can happen next depends on where cursors and leases stand towards one another and on
//! nothing else, and such standings are few. So the tour takes every operation in every
//! standing that can be reached, on the real state layer, and compares what it answers with
//! the sentences of the specification's section 4. A step that is taken twice must lead to
//! the same standing twice: that the standings leave nothing out is checked on the way.
//!
//! Six operations deep, beyond two watches that stand, unless `TIDINGS_EVERY_ORDER` says how
//! deep; `scripts/every-order` says: to the end.

mod op;
mod standing;
mod tour;
mod watcher;
mod world;

use op::{Op, Turn, Who};
use tour::{Next, Summary, Tour};
use world::World;

/// How many operations an order has, at the most, where nobody says.
const DEFAULT_DEEP: usize = 6;

/// What a tour tries.
#[derive(Debug, Clone, Copy)]
struct Route {
    /// How many turns the watchers remember, to settle them.
    turns: [usize; 2],
    tries: fn(Op) -> bool,
}

#[test]
fn a_watcher_of_whom_much_comes_late_beside_one_that_only_drains() {
    let summary = take(&Route {
        turns: [2, 0],
        tries: |op| {
            let turn_of_b = matches!(
                op,
                Op::Begin(Who::B) | Op::Confirm(Who::B, _) | Op::Release(Who::B, _)
            );
            !turn_of_b && op != Op::Look(Who::B)
        },
    });
    eprintln!("{summary:?}");
}

#[test]
fn two_watchers_that_both_take_turns() {
    let summary = take(&Route {
        turns: [1, 1],
        tries: |op| {
            let late = matches!(
                op,
                Op::Confirm(_, Turn::Before) | Op::Release(_, Turn::Before)
            );
            !late && !matches!(op, Op::Look(_))
        },
    });
    eprintln!("{summary:?}");
}

/// Takes a tour to its end; whatever does not hold on the way panics.
fn take(route: &Route) -> Summary {
    let deep = std::env::var("TIDINGS_EVERY_ORDER").ok();
    let deep = deep.map_or(DEFAULT_DEEP, |text| {
        text.parse().expect("TIDINGS_EVERY_ORDER is a number")
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let summary = runtime.block_on(async {
        let mut world = World::new(route.turns).await;
        let mut ops = Op::all();
        ops.retain(|op| (route.tries)(*op));
        let mut tour = Tour::new(world.standing(), ops, deep);
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
