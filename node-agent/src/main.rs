//! `tidings-node`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidings_node::cli::program::main()
}
