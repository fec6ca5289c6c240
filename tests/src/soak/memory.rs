//! Whether the memory of a process stays flat.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::process::resident_kib;

/// What a process may hold more in the end than after it has warmed up: a part of that for
/// what an allocator keeps of its largest moment, and what caches of a fixed size have still
/// to take in by then (SQLite's pages: 2 MB for each of a gateway's connections). A leak of
/// one kilobyte for each signal or report goes beyond it within minutes.
const MORE_PART: f64 = 0.25;
const MORE_KIB: f64 = 16.0 * 1024.0;

/// What processes have held, by their ids.
#[derive(Debug)]
pub(super) struct Memory {
    warm_after: Duration,
    processes: BTreeMap<u32, Process>,
}

#[derive(Debug)]
struct Process {
    name: String,
    since: Instant,
    warm_kib: Option<f64>,
}

impl Memory {
    /// Processes are warm after this time.
    pub(super) fn warm_after(time: Duration) -> Self {
        Self {
            warm_after: time,
            processes: BTreeMap::new(),
        }
    }

    /// A process has been started.
    pub(super) fn begins(&mut self, process: u32, name: &str) {
        let process_of_now = Process {
            name: name.to_owned(),
            since: Instant::now(),
            warm_kib: None,
        };
        self.processes.insert(process, process_of_now);
    }

    /// A process has ended, or is about to.
    pub(super) fn ends(&mut self, process: u32) {
        self.processes.remove(&process);
    }

    /// Notes what those hold that have just become warm.
    pub(super) fn look(&mut self) {
        for (id, process) in &mut self.processes {
            if process.warm_kib.is_none() && process.since.elapsed() >= self.warm_after {
                process.warm_kib = Some(resident_kib(*id));
            }
        }
    }

    /// How many processes were compared, and which of them hold too much, one line each.
    pub(super) fn compare(&self) -> (usize, Vec<String>) {
        let warm = self.processes.iter().filter_map(|(id, process)| {
            let warm_kib = process.warm_kib?;
            Some((&process.name, warm_kib, resident_kib(*id)))
        });
        let all: Vec<_> = warm.collect();
        let grown = all.iter().filter(|(_, warm, now)| !is_flat(*warm, *now));
        let wrong = grown.map(|(name, warm, now)| {
            format!("{name} held {warm:.0} KiB once it was warm and holds {now:.0} KiB")
        });
        (all.len(), wrong.collect())
    }

    /// What the process of this name held when it was warm, and holds now, in KiB.
    pub(super) fn of(&self, name: &str) -> Option<(f64, f64)> {
        let mut all = self.processes.iter();
        let (id, process) = all.find(|(_, process)| process.name == name)?;
        Some((process.warm_kib?, resident_kib(*id)))
    }
}

fn is_flat(warm_kib: f64, now_kib: f64) -> bool {
    now_kib <= warm_kib * (1.0 + MORE_PART) + MORE_KIB
}

#[test]
fn memory_is_flat_up_to_its_bound() {
    let warm = 40.0 * 1024.0;
    assert!(is_flat(warm, warm));
    assert!(is_flat(warm, 66.0 * 1024.0));
    assert!(!is_flat(warm, 67.0 * 1024.0));
}
