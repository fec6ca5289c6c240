//! `tidings`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidings_gateway::cli::main()
}
