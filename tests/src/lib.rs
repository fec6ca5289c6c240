//! What the end-to-end tests share: the real binaries as processes, what they print, and
//! transcripts as the agent programs write them.
//!
//! Nothing here sleeps: whoever waits reads with a deadline. Nothing of the machine is
//! read: every process has a home, a temporary folder and an environment of its own.
#![forbid(unsafe_code)]
#![expect(
    clippy::missing_panics_doc,
    reason = "a harness: whatever goes wrong in it fails the test that called it"
)]

mod answer;
pub mod audit;
mod binaries;
mod clock;
mod counted;
pub mod crash;
mod daemon;
mod dice;
mod disk;
mod door;
mod follow;
mod gateway;
mod lines;
mod load;
mod machines;
mod mount;
mod node;
mod scratch;
pub mod transcripts;

pub use answer::{Answer, run};
pub use binaries::{Binaries, binaries};
pub use clock::{DEADLINE, until};
pub use counted::{counted_turns, human_turns};
pub use daemon::Ended;
pub use dice::{Dice, seed};
pub use disk::{Cut, Disk, Fault};
pub use door::DoorClient;
pub use follow::Follow;
pub use gateway::{Gateway, Setup};
pub use load::{Load, RunningLoad};
pub use machines::{Adopted, TwoMachines, WATCHER, notice};
pub use mount::Mount;
pub use node::Node;
pub use scratch::{Scratch, containing, files};
