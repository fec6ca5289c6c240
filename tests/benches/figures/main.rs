//! The figures of the signal log, measured on the real gateway: `cargo bench -p tidings-tests`.
//!
//! Figures depend on the machine and on what else it does; each is printed with the
//! specification's number beside it, and nothing fails when one is missed.

mod log;
mod restart;
mod table;

use tidings_tests::{Gateway, Scratch};

use table::Figures;

fn main() {
    // `cargo test --benches` passes flags of the test harness; there is nothing to test here.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let scratch = Scratch::new();
    let (claude, codex) = (scratch.folder("claude"), scratch.folder("codex"));
    let mut gateway = Gateway::start_to_measure(&scratch, &claude, &codex);
    let mut figures = Figures::default();
    log::record(&gateway, &mut figures);
    log::read(&gateway, &mut figures);
    restart::adopt_many(&gateway, &claude);
    restart::start(&mut gateway, &mut figures);
    restart::killed(&mut gateway, &claude, &mut figures);
    figures.print();
}
