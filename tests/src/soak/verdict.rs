//! What is left when everybody has stopped: everything is put right, whatever was written
//! since is waited for, and all is compared.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::fleet::Fleet;
use super::follower::Follower;
use super::pace::Pace;
use super::tally::Tally;
use super::thread::{CANARY, Thread};
use super::watching::Watching;
use super::writer::Writer;
use super::{joined, keeper};
use crate::audit::{Audit, Snapshot, audit, snapshot};
use crate::door::DoorClient;
use crate::scratch::{Scratch, containing, files};

/// How long it may take until everything is recorded that was written, on a busy machine: a
/// node that just lost its gateway is back after 5 s, and nothing else takes long.
const PATIENCE: Duration = Duration::from_mins(3);
/// Of what was cut off and written anew two turns may stand in one place: who wrote them
/// knows better than the database.
const JUDGED_BY_THE_WRITER: &str = "a turn that was counted twice";
/// What a process says that ends for a fault of ours.
const PANICKED: &[u8] = b"panicked at";

/// Everybody, when it was enough.
pub(super) struct Remains {
    pub(super) fleet: Fleet,
    pub(super) writers: Vec<Writer>,
    pub(super) watching: Vec<Watching>,
    pub(super) follower: JoinHandle<Follower>,
    /// The last signal that the follower was told of.
    pub(super) last_told: Arc<AtomicU64>,
    /// Says when the follower has followed enough.
    pub(super) following: Arc<Pace>,
    pub(super) tally: Arc<Tally>,
    pub(super) scratch: Scratch,
}

impl Remains {
    /// What the gateway held when it was warm and in the end, and what is wrong, one line
    /// each.
    pub(super) fn judge(mut self, mut wrong: Vec<String>) -> (Option<(f64, f64)>, Vec<String>) {
        if !wrong.is_empty() {
            // A process that should run does not: nothing more can be said.
            self.following.end();
            return (None, wrong);
        }
        for writer in &mut self.writers {
            writer.end();
        }
        let state_dir = self.fleet.gateway.state_dir().to_owned();
        wrong.extend(self.wait_until_recorded());
        wrong.extend(self.fleet.ended_by_themselves());
        self.fleet.look();
        let (processes, grown) = self.fleet.memory.compare();
        self.tally
            .did_times("processes whose memory was compared", processes as u64);
        wrong.extend(grown);
        let gateway_kib = self.fleet.memory.of("gateway");

        let Audit { findings, snapshot } = audit(&state_dir);
        let findings = findings.into_iter();
        wrong.extend(findings.filter(|line| !line.starts_with(JUDGED_BY_THE_WRITER)));
        for writer in &mut self.writers {
            wrong.extend(writer.compare(&snapshot));
        }
        for watching in &mut self.watching {
            wrong.extend(watching.caller().compare(&snapshot));
        }
        self.count(&snapshot);
        let mut door = DoorClient::connect(&state_dir);
        wrong.extend(keeper::compare(&mut door, &snapshot));
        drop(door);
        self.following.end();
        self.fleet.count_datagrams(&self.tally);
        wrong.extend(self.fleet.end());
        wrong.extend(joined(self.follower).compare(&snapshot));
        wrong.extend(traces_of_what_must_not_be(&self.scratch, &self.fleet));
        (gateway_kib, wrong)
    }

    /// Waits until all is recorded that was written, and told to whoever follows.
    fn wait_until_recorded(&self) -> Vec<String> {
        let state_dir = self.fleet.gateway.state_dir();
        let began = std::time::Instant::now();
        loop {
            let now = snapshot(state_dir);
            let open = |thread: &&Thread| !thread.is_recorded(&now);
            let open: Vec<&Thread> = self
                .writers
                .iter()
                .flat_map(Writer::threads)
                .filter(open)
                .collect();
            let is_told = self.last_told.load(Ordering::Relaxed) == now.head();
            if open.is_empty() && is_told {
                return Vec::new();
            }
            if began.elapsed() > PATIENCE {
                let mut wrong: Vec<String> = open
                    .iter()
                    .map(|thread| {
                        let link = now.links.get(thread.session.as_str());
                        let length = thread.transcript().len();
                        format!(
                            "{} of {length} bytes is not recorded: {link:?}",
                            thread.session
                        )
                    })
                    .collect();
                if !is_told {
                    wrong.push(format!("a follower was not told of signal {}", now.head()));
                }
                return wrong;
            }
        }
    }

    fn count(&self, snapshot: &Snapshot) {
        let threads = || self.writers.iter().flat_map(Writer::threads);
        let typed: usize = threads().map(Thread::turns).sum();
        let counted: usize = snapshot.evidence.values().map(Vec::len).sum();
        self.tally
            .did_times("turns to be counted at most", typed as u64);
        self.tally
            .did_times("turns that the log counts", counted as u64);
        self.tally
            .did_times("signals in the log", snapshot.signals.len() as u64);
        self.tally
            .did_times("watches", snapshot.cursors.len() as u64);
    }
}

/// Text that left its transcript, and processes that ended for a fault of ours.
fn traces_of_what_must_not_be(scratch: &Scratch, fleet: &Fleet) -> Vec<String> {
    let mut state = files(fleet.gateway.state_dir());
    let mut logs = vec![fleet.gateway.log()];
    for host in &fleet.hosts {
        state.extend(files(&host.node.state_dir()));
        logs.push(host.node.log());
    }
    state.extend(files(&scratch.home()));
    state.extend(files(&scratch.tmp()));
    let leaks = containing([state, logs.clone()].concat(), CANARY.as_bytes());
    let panics = containing(logs, PANICKED);
    let line = |what: &str, files: Vec<PathBuf>| {
        (!files.is_empty()).then(|| format!("{what} in {files:?}"))
    };
    let leaks = line("text of a transcript", leaks);
    leaks.into_iter().chain(line("a panic", panics)).collect()
}
