//! Counts of everything that was done.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often what was done. Everybody at work has a share in it.
#[derive(Debug, Default)]
pub struct Tally(Mutex<BTreeMap<&'static str, u64>>);

impl Tally {
    /// This was done once more.
    pub(super) fn did(&self, what: &'static str) {
        self.did_times(what, 1);
    }

    /// This was done so many more times.
    pub(super) fn did_times(&self, what: &'static str, times: u64) {
        *self.lock().entry(what).or_default() += times;
    }

    /// Every count with its name, in the order of the names.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = self.lock();
        counts.iter().map(|(what, times)| (*what, *times)).collect()
    }

    /// How often this was done.
    pub fn of(&self, what: &str) -> u64 {
        self.lock().get(what).copied().unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, times) in self.counts() {
            writeln!(f, "  {times:>9}  {what}")?;
        }
        Ok(())
    }
}
