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
mod cable;
mod clock;
mod clocks;
mod counted;
pub mod crash;
mod daemon;
mod dice;
mod disk;
mod door;
mod follow;
mod fuse;
mod gateway;
mod hooks;
mod http;
mod lines;
mod load;
mod machines;
pub mod model;
mod mount;
mod namespace;
mod node;
mod process;
mod scratch;
mod shim;
pub mod soak;
mod spawn;
mod speaking;
mod terminal;
pub mod transcripts;
mod weather;

pub use answer::{Answer, Begun, run};
pub use binaries::{Binaries, binaries, cargo};
pub use cable::{Cable, NetworkEnd};
pub use clock::{DEADLINE, until, until_within};
pub use clocks::Clocks;
pub use counted::{counted_turns, human_turns};
pub use daemon::Ended;
pub use dice::{Dice, seed};
pub use disk::{Cut, Disk, Fault};
pub use door::DoorClient;
pub use follow::Follow;
pub use fuse::ServedFile;
pub use gateway::{Gateway, Setup};
pub use hooks::{Hooks, Waiter};
pub use load::{Load, RunningLoad};
pub use machines::{Adopted, TwoMachines, WATCHER, notice};
pub use mount::Mount;
pub use namespace::Namespace;
pub use node::Node;
pub use process::{cpu_ticks, peak_kib, resident_kib, time_on_cpu};
pub use scratch::{Scratch, containing, files};
pub use speaking::Speaking;
pub use terminal::{CTRL_C, CTRL_D, Terminal};
pub use weather::{Proxy, Weather};
