//! Clocks that jump on request: a small library (`shim/clock.c`) between a process and the
//! machine's clocks.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::gateway::Setup;
use crate::node::Node;
use crate::scratch::Scratch;
use crate::shim::compile;

/// The clocks that a gateway or a node sees. They go as the machine's do, but from elsewhere.
#[derive(Debug)]
pub struct Clocks {
    library: PathBuf,
    file: PathBuf,
    wall_ms: i64,
    monotonic_ms: i64,
}

impl Clocks {
    /// Clocks that show what the machine's show.
    pub fn new(scratch: &Scratch) -> Self {
        let folder = scratch.folder("clocks");
        let clocks = Self {
            library: compile("clock", &folder),
            file: folder.join("ahead"),
            wall_ms: 0,
            monotonic_ms: 0,
        };
        clocks.write();
        clocks
    }

    /// The same gateway, going by these clocks.
    pub fn under(&self, setup: Setup) -> Setup {
        setup
            .with_variable("LD_PRELOAD", &self.library)
            .with_variable("TIDINGS_CLOCK_FILE", &self.file)
    }

    /// Other clocks, made like these, which show what the machine's show.
    #[must_use]
    pub fn others(&self, name: &str) -> Self {
        let clocks = Self {
            library: self.library.clone(),
            file: self.file.with_file_name(name),
            wall_ms: 0,
            monotonic_ms: 0,
        };
        clocks.write();
        clocks
    }

    /// The agent of this node goes by these clocks from its next start on.
    pub fn govern(&self, node: &mut Node) {
        node.set_variable("LD_PRELOAD", &self.library);
        node.set_variable("TIDINGS_CLOCK_FILE", &self.file);
    }

    /// How far the wall clock is ahead, in milliseconds.
    pub fn wall_ahead(&self) -> i64 {
        self.wall_ms
    }

    /// Somebody sets the wall clock ahead, or back.
    pub fn set_wall_ahead(&mut self, ms: i64) {
        self.wall_ms += ms;
        self.write();
    }

    /// Time passes.
    pub fn pass(&mut self, time: Duration) {
        let ms = i64::try_from(time.as_millis()).expect("a time that a test can wait");
        self.wall_ms += ms;
        self.monotonic_ms += ms;
        self.write();
    }

    /// Put in place in one step, so that nobody reads half of it.
    fn write(&self) {
        let new = self.file.with_extension("new");
        let ahead = format!("{} {}\n", self.wall_ms, self.monotonic_ms);
        fs::write(&new, ahead).expect("how far ahead");
        fs::rename(new, &self.file).expect("in place");
    }
}
