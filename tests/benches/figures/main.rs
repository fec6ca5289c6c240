//! Figures of the real programs: `cargo bench -p tidings-tests`, all of them in some minutes;
//! `cargo bench -p tidings-tests -- scan` (or `instructions`; `log`, and of it `rate` or `nodes`;
//! `restart`, `latency`, `hook`, `idle`, `reconnect`, `store`) some. `growth` (or, of less,
//! `growth small`) is taken only by its name. With `--json` stdout has one document, of what the
//! specification asks for; with `--markdown` a table of that.
//!
//! Figures depend on the machine and on what else it does; each is printed with the
//! specification's number beside it, and nothing fails when one is missed.

mod backlog;
mod fleet;
mod growth;
mod hook;
mod idle;
mod latency;
mod log;
mod nodes;
mod noise;
mod rate;
mod restart;
mod scan;
mod spec;
mod store;
mod table;
mod tail;

use tidings_tests::{Gateway, Scratch};

use growth::Extent;
use table::Figures;

/// The names that somebody asked for; none for all.
struct Wanted(Vec<String>);

impl Wanted {
    fn has(&self, name: &str) -> bool {
        self.0.is_empty() || self.names(name)
    }

    fn names(&self, name: &str) -> bool {
        self.0.iter().any(|word| word == name)
    }
}

fn main() {
    let (flags, words): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|word| word.starts_with('-'));
    // `cargo test --benches` passes flags of the test harness; there is nothing to test here.
    if flags.iter().any(|flag| flag == "--test") {
        return;
    }
    if let [first, what, root, path] = &words[..]
        && first == "alone"
    {
        return scan::alone(what, root.as_ref(), path.as_ref());
    }
    let figures = measure(&Wanted(words));
    let asked_for = |name: &str| flags.iter().any(|flag| flag == name);
    if asked_for("--json") {
        figures.print_json();
    } else if asked_for("--markdown") {
        figures.print_page();
    } else {
        figures.print();
    }
}

fn measure(wanted: &Wanted) -> Figures {
    let mut figures = Figures::default();
    let noise = noise::noise(&mut figures);
    if wanted.has("scan") {
        scan::scan(&mut figures);
    }
    if wanted.has("instructions") {
        scan::instructions(&mut figures);
    }
    let mut beside_the_database = None;
    if wanted.has("rate") || wanted.has("log") {
        beside_the_database = Some(rate::rate(&mut figures));
    }
    if wanted.has("nodes") || wanted.has("log") {
        nodes::nodes(&mut figures, beside_the_database);
    }
    if wanted.has("log") {
        with_local_node(|gateway, _| {
            log::record(gateway, &mut figures);
            log::read(gateway, &noise, &mut figures);
        });
    }
    if wanted.has("restart") {
        with_local_node(|gateway, claude| {
            log::fill(gateway);
            restart::adopt_many(gateway, claude);
            restart::start(gateway, &mut figures);
            restart::killed(gateway, claude, &mut figures);
        });
    }
    if wanted.has("latency") {
        with_local_node(|gateway, claude| {
            latency::latency(gateway, claude, &mut figures);
            backlog::backlog(gateway, claude, &mut figures);
        });
    }
    if wanted.has("hook") {
        with_local_node(|gateway, claude| hook::hook(gateway, claude, &mut figures));
    }
    if wanted.has("idle") {
        idle::idle(&mut figures);
    }
    if wanted.has("reconnect") {
        fleet::fleet(&mut figures);
    }
    if wanted.has("store") {
        store::transcript(&mut figures);
        store::entries(&mut figures);
    }
    if wanted.names("growth") {
        let small = wanted.names("small");
        let extent = if small { Extent::SMALL } else { Extent::WHOLE };
        growth::growth(extent, &mut figures);
    }
    figures
}

/// A fresh gateway with a node of its own machine, and where that one's Claude Code writes.
fn with_local_node(measure: impl FnOnce(&mut Gateway, &std::path::Path)) {
    let scratch = Scratch::new();
    let (claude, codex) = (scratch.folder("claude"), scratch.folder("codex"));
    let mut gateway = Gateway::start_to_measure(&scratch, &claude, &codex);
    measure(&mut gateway, &claude);
}
