//! A disk that fails on request: a small library (`shim/disk.c`) between SQLite and the files
//! of the state database.

mod power;

use std::fs;
use std::path::PathBuf;

use crate::gateway::Setup;
use crate::scratch::Scratch;
use crate::shim::compile;
pub use power::Cut;

/// What goes wrong, and at which call, counted from 1 and from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A write takes half of what it is given: no fault, but rare.
    ShortWrite(u32),
    /// From this write on there is no room.
    Full(u32),
    /// The same, but this write still takes half of what it is given.
    FillsUp(u32),
    /// A write fails.
    BrokenWrite(u32),
    /// A read fails.
    BrokenRead(u32),
    /// An fsync fails.
    BrokenSync(u32),
    /// An fsync of the database file itself fails: of a checkpoint.
    BrokenCheckpoint(u32),
}

/// The disk under a gateway.
#[derive(Debug)]
pub struct Disk {
    library: PathBuf,
    folder: PathBuf,
    faults: u32,
}

impl Disk {
    /// A disk without a fault.
    pub fn new(scratch: &Scratch) -> Self {
        let folder = scratch.folder("disk");
        let library = compile("disk", &folder);
        Self {
            library,
            folder,
            faults: 0,
        }
    }

    /// The same gateway, on this disk.
    pub fn under(&self, setup: Setup) -> Setup {
        setup
            .with_variable("LD_PRELOAD", &self.library)
            .with_variable("TIDINGS_DISK_FOLDER", &self.folder)
    }

    /// Lets a fault happen.
    pub fn fail(&mut self, fault: Fault) {
        let line = match fault {
            Fault::ShortWrite(nth) => format!("write {nth} short"),
            Fault::Full(nth) => format!("write {nth} full"),
            Fault::FillsUp(nth) => format!("write {nth} fills"),
            Fault::BrokenWrite(nth) => format!("write {nth} broken"),
            Fault::BrokenRead(nth) => format!("read {nth} broken"),
            Fault::BrokenSync(nth) => format!("sync {nth} broken"),
            Fault::BrokenCheckpoint(nth) => format!("sync-database {nth} broken"),
        };
        self.faults += 1;
        self.rule(&format!("{line} {}", self.faults));
    }

    /// All is well again.
    pub fn heal(&self) {
        self.rule("none");
    }

    /// What was asked of the disk since its fault: calls with the file they were about. The
    /// first line is the fault itself.
    pub fn journal(&self) -> Vec<String> {
        let journal = fs::read_to_string(self.folder.join("journal")).unwrap_or_default();
        journal.lines().map(str::to_owned).collect()
    }

    /// Put in place in one step, so that nobody reads half of it.
    fn rule(&self, line: &str) {
        let new = self.folder.join("fault.new");
        fs::write(&new, line).expect("a fault");
        fs::rename(new, self.folder.join("fault")).expect("a fault in place");
        // A journal is about one fault.
        let _ = fs::remove_file(self.folder.join("journal"));
    }
}
