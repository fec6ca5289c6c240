//! Runs crash rounds for as long as one likes: what `scripts/crash` calls. Takes the number
//! of rounds; `TIDINGS_SEED` repeats the dice of an earlier run.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal"
)]

use std::process::ExitCode;

use tidings_tests::crash::crash;
use tidings_tests::seed;

/// How often it says how far it is, in rounds.
const SAY_EVERY: u32 = 10;

fn main() -> ExitCode {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let Some(rounds) = rounds else {
        eprintln!("usage: crash ROUNDS");
        return ExitCode::from(2);
    };
    let seed = seed();
    let outcome = crash(seed, rounds, |tally| {
        if tally.rounds % SAY_EVERY == 0 {
            println!("{} rounds held, {} answers", tally.rounds, tally.answers);
        }
    });
    match outcome {
        Ok(tally) => {
            println!(
                "all held: {} kills, {} of starts as well; {} answers, {} signals, {} writes lost",
                tally.rounds, tally.killed_starts, tally.answers, tally.signals, tally.lost_writes
            );
            ExitCode::SUCCESS
        }
        Err(broken) => {
            println!("{broken}");
            println!("the same dice again: TIDINGS_SEED={seed} scripts/crash {rounds}");
            ExitCode::FAILURE
        }
    }
}
