//! Sessions that watch the threads: they add and end watches, drain, take turns, confirm and
//! release, look at what changed, and record signals by hand. Each compares what it is told.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tidings_protocol::SessionKey;

use super::pace::Pace;
use super::tally::Tally;
use crate::dice::Dice;
use crate::door::DoorClient;
use crate::load::Caller;

/// How long a watcher rests between two requests, at the most.
const REST_US: u64 = 60_000;

/// What everybody who watches knows of the others.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// The sessions there are to watch.
    sessions: Mutex<Vec<SessionKey>>,
    /// How often the gateway's clock was set. Nobody asks while it is.
    pub(super) clock_changes: RwLock<u64>,
}

impl Watched {
    /// One more session.
    pub(super) fn add(&self, session: SessionKey) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.push(session);
    }

    /// The sessions behind the first `known`.
    fn further(&self, known: usize) -> Vec<SessionKey> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions[known..].to_vec()
    }
}

/// One program of some watching sessions.
#[derive(Debug)]
pub(super) struct Watching {
    caller: Caller,
    dice: Dice,
    known: usize,
    clock_changes: u64,
    watched: Arc<Watched>,
}

impl Watching {
    /// The program of this number.
    pub(super) fn new(number: usize, dice: &mut Dice, watched: &Arc<Watched>) -> Self {
        let sessions = watched.further(0);
        Self {
            known: sessions.len(),
            caller: Caller::new(number, dice.split(), sessions),
            dice: dice.split(),
            clock_changes: 0,
            watched: Arc::clone(watched),
        }
    }

    /// Asks until it is enough, over every end of the gateway.
    pub(super) fn work(mut self, state_dir: &Path, pace: &Pace, tally: &Tally) -> Self {
        let mut door = None;
        while pace.rest(Duration::from_micros(self.dice.below(REST_US))) {
            for session in self.watched.further(self.known) {
                self.caller.hears_of(session);
                self.known += 1;
            }
            door = door.or_else(|| DoorClient::try_connect(state_dir));
            let Some(open) = &mut door else {
                continue;
            };
            if self.ask_once(open) {
                tally.did("requests of watchers answered");
            } else {
                tally.did("requests of watchers without an answer");
                door = None;
            }
        }
        self
    }

    fn ask_once(&mut self, door: &mut DoorClient) -> bool {
        let watched = Arc::clone(&self.watched);
        let changes = watched.clock_changes.read();
        let changes = changes.unwrap_or_else(PoisonError::into_inner);
        if *changes != self.clock_changes {
            self.clock_changes = *changes;
            self.caller.doubt_leases();
        }
        self.caller.ask_once(door)
    }

    /// Its caller, for comparing.
    pub(super) fn caller(&mut self) -> &mut Caller {
        &mut self.caller
    }
}
