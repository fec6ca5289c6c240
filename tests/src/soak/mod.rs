//! The soak: a gateway and twenty nodes as real processes, people and programs who write
//! transcripts of every catalog, files that are replaced, moved, archived, compressed and cut,
//! watchers who drain, take turns, confirm and release, and meanwhile kills, restarts,
//! suspensions, cut and bad networks and clocks that jump. In the end everything is put right,
//! and the log is compared with what those who wrote know.

mod expected;
mod fleet;
mod follower;
mod keeper;
mod memory;
mod pace;
mod tally;
mod thread;
mod upheaval;
mod verdict;
mod watching;
mod writer;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::fleet::{Fleet, NODES};
use self::follower::Follower;
use self::pace::Pace;
use self::upheaval::Upheaval;
use self::verdict::Remains;
use self::watching::{Watched, Watching};
use self::writer::Writer;
use crate::dice::Dice;
use crate::scratch::Scratch;

pub use tally::Tally;

/// How many write at the same time, each on its own machines.
const WRITERS: usize = 4;
/// How many programs watch.
const WATCHING: usize = 3;
/// How often it is said how far everything is.
const SAY_EVERY: Duration = Duration::from_secs(10);
/// A process that has run for so long is warm: its caches have seen every kind of work.
const WARM_AFTER: Duration = Duration::from_secs(20);

/// What a soak did, and what did not hold: one line each.
#[derive(Debug)]
pub struct Soaked {
    /// Counts of everything that was done.
    pub tally: Arc<Tally>,
    /// What did not hold; nothing where all held.
    pub wrong: Vec<String>,
    /// What the gateway held in KiB when it was warm and in the end, where it ran for long
    /// enough.
    pub gateway_kib: Option<(f64, f64)>,
    /// Where everything was; it is kept where something did not hold.
    pub folder: PathBuf,
}

impl fmt::Display for Soaked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.tally)?;
        if let Some((warm, end)) = self.gateway_kib {
            let (warm, end) = (warm / 1024.0, end / 1024.0);
            writeln!(
                f,
                "  the gateway held {warm:.1} MB warm and {end:.1} MB in the end"
            )?;
        }
        for line in &self.wrong {
            writeln!(f, "did not hold: {line}")?;
        }
        Ok(())
    }
}

/// Runs for this time as `seed` decides, and tells `say` every ten seconds how far it is.
pub fn soak(seed: u64, time: Duration, say: impl Fn(Duration, &Tally)) -> Soaked {
    let scratch = Scratch::new();
    let mut dice = Dice::new(seed);
    let (fleet, machines) = Fleet::start(&scratch, &mut dice, WARM_AFTER.min(time / 4));
    let state_dir = fleet.gateway.state_dir().to_owned();
    let (watched, tally) = (Arc::new(Watched::default()), Arc::new(Tally::default()));
    let shared = (&watched, &tally);

    let mut machines = machines.into_iter();
    let writers: Vec<Writer> = (0..WRITERS)
        .map(|_| {
            let own = machines.by_ref().take(NODES / WRITERS).collect();
            Writer::begin(own, dice.split(), &state_dir, shared)
        })
        .collect();
    let pace = Arc::new(Pace::default());
    let spared_after = Instant::now() + time / 2;
    let upheaval = Upheaval::new(fleet, dice.split(), shared, spared_after);
    let upheaval = at_work(&pace, move |pace| upheaval.work(pace));
    let writers: Vec<_> = writers
        .into_iter()
        .map(|writer| at_work(&pace, move |pace| writer.work(pace)))
        .collect();
    let watching: Vec<_> = (0..WATCHING)
        .map(|number| Watching::new(number, &mut dice, &watched))
        .map(|watching| {
            let (state_dir, tally) = (state_dir.clone(), Arc::clone(&tally));
            at_work(&pace, move |pace| watching.work(&state_dir, pace, &tally))
        })
        .collect();
    let follower = Follower::of(&state_dir);
    let last_told = follower.last();
    let following = Arc::new(Pace::default());
    let follower = at_work(&following, move |pace| follower.follow(pace));

    let began = Instant::now();
    while began.elapsed() < time && !upheaval.is_finished() {
        let left = time.saturating_sub(began.elapsed());
        pace.rest(left.min(SAY_EVERY));
        say(began.elapsed(), &tally);
    }
    pace.end();
    let (mut fleet, wrong) = joined(upheaval);
    // Whoever waits for an answer may get one only now.
    fleet.heal(&watched);
    let remains = Remains {
        fleet,
        writers: writers.into_iter().map(joined).collect(),
        watching: watching.into_iter().map(joined).collect(),
        follower,
        last_told,
        following,
        tally: Arc::clone(&tally),
        scratch: scratch.clone(),
    };
    let (gateway_kib, wrong) = remains.judge(wrong);
    if !wrong.is_empty() {
        scratch.keep();
    }
    Soaked {
        tally,
        wrong,
        gateway_kib,
        folder: scratch.path().to_owned(),
    }
}

/// Somebody works until it is enough.
fn at_work<T: Send + 'static>(
    pace: &Arc<Pace>,
    work: impl FnOnce(&Pace) -> T + Send + 'static,
) -> JoinHandle<T> {
    let pace = Arc::clone(pace);
    std::thread::spawn(move || work(&pace))
}

#[track_caller]
fn joined<T>(worker: JoinHandle<T>) -> T {
    worker.join().expect("a worker that did not panic")
}
