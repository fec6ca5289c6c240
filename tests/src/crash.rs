//! Crash rounds: a gateway under load is killed at some moment and started again, and what
//! it had answered must be there, whole, and nothing else by half. In every other state
//! directory the machine loses its power with it: of what was not synced, anything may be
//! gone.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::dice::Dice;
use crate::disk::Disk;
use crate::gateway::{Gateway, Setup};
use crate::load::Load;
use crate::scratch::Scratch;

/// How many rounds one state directory goes through before the next one begins with none:
/// enough to grow old data, few enough that a look at all of it stays quick.
const ROUNDS_PER_DIRECTORY: u32 = 5;
/// A kill comes within this time, or after so many answers: from the very first request to
/// well after the first checkpoint.
const KILL_WITHIN: Duration = Duration::from_millis(400);
const KILL_AFTER_ANSWERS: u64 = 3_000;
/// A start takes about so long; one that is killed is killed somewhere within.
const START_US: u64 = 150_000;
/// How many times a start is killed in a row, at most.
const KILLED_STARTS: u64 = 3;

/// What some rounds did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rounds.
    pub rounds: u32,
    /// Requests that were answered.
    pub answers: u64,
    /// Starts that were killed as well.
    pub killed_starts: u64,
    /// Writes that a power cut took back, in whole or in part.
    pub lost_writes: u64,
    /// The highest sequence of every state directory, summed.
    pub signals: u64,
}

/// Rounds that did not hold: what was wrong, one line each.
#[derive(Debug)]
pub struct Broken {
    round: u32,
    state_dir: String,
    wrong: Vec<String>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            round,
            state_dir,
            wrong,
        } = self;
        write!(f, "round {round} did not hold, see {state_dir}:")?;
        wrong.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

/// Runs `rounds` rounds as `seed` decides, and tells `each` of every one that held.
pub fn crash(seed: u64, rounds: u32, mut each: impl FnMut(&Tally)) -> Result<Tally, Broken> {
    let mut dice = Dice::new(seed);
    let mut tally = Tally::default();
    let mut directories = 0;
    while tally.rounds < rounds {
        directories += 1;
        let mut patient = Patient::admit(&mut dice, directories % 2 == 0, &mut tally);
        let left = rounds - tally.rounds;
        for _ in 0..left.min(ROUNDS_PER_DIRECTORY) {
            tally.rounds += 1;
            let wrong = patient.round(&mut tally);
            if !wrong.is_empty() {
                return Err(patient.broken(tally.rounds, wrong));
            }
            each(&tally);
        }
        tally.signals += patient.load.head();
    }
    Ok(tally)
}

/// One gateway with its state directory, and the load on it.
struct Patient {
    gateway: Gateway,
    /// Where the power goes too.
    disk: Option<Disk>,
    load: Load,
    dice: Dice,
    scratch: Scratch,
}

impl Patient {
    fn admit(dice: &mut Dice, power_cuts: bool, tally: &mut Tally) -> Self {
        let scratch = Scratch::new();
        let (claude, codex) = (scratch.folder("claude"), scratch.folder("codex"));
        let mut setup = Setup::with_local_node(&claude, &codex).quiet();
        let disk = power_cuts.then(|| Disk::new(&scratch));
        if let Some(disk) = &disk {
            setup = disk.under(setup);
            disk.keep_for_power_cuts();
        }
        let mut patient = Self {
            gateway: Gateway::stopped(&scratch, setup),
            disk,
            load: Load::of_callers_and_people(dice, &claude),
            dice: dice.split(),
            scratch,
        };
        // The very first start may be the one that is killed.
        if patient.dice.once_in(2) {
            patient.kill_starts(tally);
        }
        patient.gateway.restart();
        patient
    }

    /// Works, kills, starts again, compares. What is wrong, one line each.
    fn round(&mut self, tally: &mut Tally) -> Vec<String> {
        let running = std::mem::take(&mut self.load).start(&self.gateway);
        let within = KILL_WITHIN.as_micros().try_into().expect("a small number");
        let within = Duration::from_micros(self.dice.below(within));
        running.work(self.dice.below(KILL_AFTER_ANSWERS), within);
        self.kill(tally);
        tally.answers += running.answers();
        self.load = running.stop();
        if self.dice.once_in(2) {
            self.load.type_some();
        }
        if self.dice.once_in(4) {
            self.kill_starts(tally);
        }
        self.gateway.restart();
        // First what the crash has left, with whatever the node has sent again since; then
        // what must have become of it.
        let mut wrong = self.load.compare(self.gateway.state_dir());
        if wrong.is_empty() {
            wrong = self.load.compare_when_recorded(self.gateway.state_dir());
        }
        wrong
    }

    /// Kills starts at some moment: recovery must be able to begin anew.
    fn kill_starts(&mut self, tally: &mut Tally) {
        for _ in 0..=self.dice.below(KILLED_STARTS) {
            self.gateway.begin_restart();
            let moment = Duration::from_micros(self.dice.below(START_US));
            self.gateway.runs_on(moment);
            self.kill(tally);
            tally.killed_starts += 1;
        }
    }

    fn kill(&mut self, tally: &mut Tally) {
        self.gateway.kill();
        if let Some(disk) = &self.disk {
            let cut = disk.cut_power(self.gateway.state_dir(), &mut self.dice);
            tally.lost_writes += cut.lost + cut.torn;
        }
    }

    fn state_dir(&self) -> &Path {
        self.gateway.state_dir()
    }

    /// What is left of it stays for whoever looks.
    fn broken(mut self, round: u32, wrong: Vec<String>) -> Broken {
        self.gateway.kill();
        self.scratch.keep();
        Broken {
            round,
            state_dir: self.state_dir().display().to_string(),
            wrong,
        }
    }
}
