//! Figures of the real programs: `cargo bench -p tidings-tests`, all of them in some minutes;
//! `cargo bench -p tidings-tests -- scan` (or `instructions`; `log`, and of it `rate` or `nodes`;
//! `restart`, `latency`, `hook`, `idle`, `reconnect`, `store`) some.
//!
//! Figures depend on the machine and on what else it does; each is printed with the
//! specification's number beside it, and nothing fails when one is missed.

mod fleet;
mod hook;
mod idle;
mod latency;
mod log;
mod nodes;
mod noise;
mod rate;
mod restart;
mod scan;
mod store;
mod table;

use tidings_tests::{Gateway, Scratch};

use table::Figures;

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    // `cargo test --benches` passes flags of the test harness; there is nothing to test here.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    if let [first, what, root, path] = &wanted[..]
        && first == "alone"
    {
        return scan::alone(what, root.as_ref(), path.as_ref());
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let mut figures = Figures::default();
    noise::noise(&mut figures);
    if is_wanted("scan") {
        scan::scan(&mut figures);
    }
    if is_wanted("instructions") {
        scan::instructions(&mut figures);
    }
    let mut beside_the_database = None;
    if is_wanted("rate") || is_wanted("log") {
        beside_the_database = rate::rate(&mut figures);
    }
    if is_wanted("nodes") || is_wanted("log") {
        nodes::nodes(&mut figures, beside_the_database);
    }
    if is_wanted("log") {
        with_local_node(|gateway, _| {
            log::record(gateway, &mut figures);
            log::read(gateway, &mut figures);
        });
    }
    if is_wanted("restart") {
        with_local_node(|gateway, claude| {
            log::fill(gateway);
            restart::adopt_many(gateway, claude);
            restart::start(gateway, &mut figures);
            restart::killed(gateway, claude, &mut figures);
        });
    }
    if is_wanted("latency") {
        with_local_node(|gateway, claude| latency::latency(gateway, claude, &mut figures));
    }
    if is_wanted("hook") {
        with_local_node(|gateway, claude| hook::hook(gateway, claude, &mut figures));
    }
    if is_wanted("idle") {
        idle::idle(&mut figures);
    }
    if is_wanted("reconnect") {
        fleet::fleet(&mut figures);
    }
    if is_wanted("store") {
        store::transcript(&mut figures);
        store::entries(&mut figures);
    }
    figures.print();
}

/// A fresh gateway with a node of its own machine, and where that one's Claude Code writes.
fn with_local_node(measure: impl FnOnce(&mut Gateway, &std::path::Path)) {
    let scratch = Scratch::new();
    let (claude, codex) = (scratch.folder("claude"), scratch.folder("codex"));
    let mut gateway = Gateway::start_to_measure(&scratch, &claude, &codex);
    measure(&mut gateway, &claude);
}
