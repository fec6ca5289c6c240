//! Soaks a gateway and its nodes for as long as one likes: what `scripts/soak` calls. Takes
//! the number of seconds; `TIDINGS_SEED` repeats the dice of an earlier run.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]

use std::process::ExitCode;
use std::time::Duration;

use tidings_tests::seed;
use tidings_tests::soak::soak;

/// What is said on the way.
const SAID: [&str; 5] = [
    "turns typed",
    "requests of watchers answered",
    "node agents killed and started",
    "times the gateway was killed and started",
    "files cut",
];

fn main() -> ExitCode {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let Some(seconds) = seconds else {
        eprintln!("usage: soak SECONDS");
        return ExitCode::from(2);
    };
    let seed = seed();
    let soaked = soak(seed, Duration::from_secs(seconds), |after, tally| {
        let counts = SAID.map(|what| format!("{} {what}", tally.of(what)));
        eprintln!("{} s: {}", after.as_secs(), counts.join(", "));
    });
    print!("{soaked}");
    if soaked.wrong.is_empty() {
        println!("all held for {seconds} s");
        return ExitCode::SUCCESS;
    }
    println!("everything is kept in {}", soaked.folder.display());
    println!("the same dice again: TIDINGS_SEED={seed} scripts/soak {seconds}");
    ExitCode::FAILURE
}
