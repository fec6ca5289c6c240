//! What happens to the fleet while everybody works, as dice decide; each thing that is done
//! is undone after a while.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fleet::{End, Fleet, NODES, State};
use super::pace::Pace;
use super::tally::Tally;
use super::watching::Watched;
use crate::dice::Dice;
use crate::weather::Weather;

/// How long nothing happens, at the most.
const REST_MS: u64 = 400;
/// How far clocks are set, at the most: the certificates of a fleet are valid from a day
/// before they were issued, and a gateway may be behind while a node is ahead.
const CLOCK_MS: u64 = 6 * 60 * 60 * 1_000;
/// How much time passes at once for a machine that slept.
const SLEEP_MS: u64 = 90_000;

/// Whoever does all that.
pub(super) struct Upheaval {
    fleet: Fleet,
    dice: Dice,
    undo: Vec<(Instant, Undo)>,
    watched: Arc<Watched>,
    tally: Arc<Tally>,
    /// The gateway is ended only before: its last process must show that it stays small.
    gateway_spared_after: Instant,
    wrong: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
enum Undo {
    StartNode(usize),
    StartGateway,
    ResumeNode(usize),
    ResumeGateway,
    ClearUp(usize),
}

impl Upheaval {
    pub(super) fn new(
        fleet: Fleet,
        dice: Dice,
        (watched, tally): (&Arc<Watched>, &Arc<Tally>),
        gateway_spared_after: Instant,
    ) -> Self {
        Self {
            fleet,
            dice,
            undo: Vec::new(),
            watched: Arc::clone(watched),
            tally: Arc::clone(tally),
            gateway_spared_after,
            wrong: Vec::new(),
        }
    }

    /// Goes on until it is enough, or a process has ended by itself. The fleet, as it is
    /// then, and what is wrong, one line each.
    pub(super) fn work(mut self, pace: &Pace) -> (Fleet, Vec<String>) {
        let mut next = Instant::now();
        loop {
            let now = Instant::now();
            self.undo_what_is_due(now);
            if now >= next {
                self.happens();
                next = Instant::now() + Duration::from_millis(self.dice.below(REST_MS));
            }
            self.fleet.look();
            self.wrong.extend(self.fleet.ended_by_themselves());
            let due = self.undo.iter().map(|(due, _)| *due).chain([next]).min();
            let until = due.map_or(Duration::ZERO, |due| due.duration_since(Instant::now()));
            if !pace.rest(until) || !self.wrong.is_empty() {
                return (self.fleet, self.wrong);
            }
        }
    }

    fn undo_what_is_due(&mut self, now: Instant) {
        let (due, later) = self.undo.iter().partition(|(at, _)| *at <= now);
        self.undo = later;
        let due: Vec<(Instant, Undo)> = due;
        for (_, undo) in due {
            match undo {
                Undo::StartNode(at) => self.fleet.start_node(at),
                Undo::StartGateway => self.fleet.start_gateway(),
                Undo::ResumeNode(at) => self.fleet.resume_node(at),
                Undo::ResumeGateway => self.fleet.resume_gateway(),
                Undo::ClearUp(at) => self.fleet.hosts[at].proxy.set(Weather::FAIR),
            }
        }
    }

    fn undo_within(&mut self, ms: u64, undo: Undo) {
        let time = Duration::from_millis(self.dice.below(ms));
        self.undo.push((Instant::now() + time, undo));
    }

    fn happens(&mut self) {
        let count = u64::try_from(NODES).expect("a small number");
        let at = usize::try_from(self.dice.below(count)).expect("a small number");
        let is_up = self.fleet.hosts[at].state == State::Up;
        match self.dice.below(20) {
            0..=4 if is_up && !Fleet::is_spared(at) => self.node_ends(at),
            5..=6 if is_up => self.node_is_suspended(at),
            7..=9 => self.network_is_cut(at),
            10..=12 => self.weather_turns(at),
            13..=14 => {
                self.fleet.hosts[at].proxy.rebind();
                self.tally.did("addresses changed");
            }
            15..=16 => self.gateway_is_disturbed(),
            17..=18 => self.clock_of_node_is_set(at),
            19 if self.fleet.gateway_state == State::Up => self.clock_of_gateway_is_set(),
            _ => {}
        }
    }

    fn node_ends(&mut self, at: usize) {
        let end = match End::pick(&mut self.dice) {
            // It would wait for the gateway's last answers, and everything with it.
            End::Stopped if self.fleet.gateway_state != State::Up => End::Killed,
            end => end,
        };
        self.wrong.extend(self.fleet.end_node(at, end));
        self.undo_within(2_000, Undo::StartNode(at));
        self.tally.did(match end {
            End::Stopped => "node agents stopped and started",
            End::Killed => "node agents killed and started",
        });
    }

    fn node_is_suspended(&mut self, at: usize) {
        self.fleet.hosts[at].node.suspend();
        self.fleet.hosts[at].state = State::Suspended;
        self.undo_within(3_000, Undo::ResumeNode(at));
        self.tally.did("node agents suspended");
    }

    fn network_is_cut(&mut self, at: usize) {
        self.fleet.hosts[at].proxy.set(Weather::CUT);
        self.undo_within(8_000, Undo::ClearUp(at));
        self.tally.did("networks cut");
    }

    fn weather_turns(&mut self, at: usize) {
        self.fleet.hosts[at].proxy.set(Weather {
            loss_percent: self.dice.below(30),
            delay: Duration::from_millis(self.dice.below(60)),
            jitter: Duration::from_millis(self.dice.below(60)),
            ..Weather::FAIR
        });
        self.undo_within(8_000, Undo::ClearUp(at));
        self.tally.did("networks with bad weather");
    }

    fn gateway_is_disturbed(&mut self) {
        if self.fleet.gateway_state != State::Up {
            return;
        }
        if Instant::now() >= self.gateway_spared_after || self.dice.once_in(3) {
            self.fleet.gateway.suspend();
            self.fleet.gateway_state = State::Suspended;
            self.undo_within(1_000, Undo::ResumeGateway);
            self.tally.did("times the gateway was suspended");
            return;
        }
        let end = End::pick(&mut self.dice);
        self.wrong.extend(self.fleet.end_gateway(end));
        if self.dice.once_in(3) {
            self.fleet.gateway.begin_restart();
            let moment = Duration::from_micros(self.dice.below(150_000));
            self.fleet.gateway.runs_on(moment);
            self.fleet.gateway.kill();
            self.tally.did("starts of the gateway killed");
        }
        self.undo_within(800, Undo::StartGateway);
        self.tally.did(match end {
            End::Stopped => "times the gateway was stopped and started",
            End::Killed => "times the gateway was killed and started",
        });
    }

    /// Ahead and back, or a machine that slept: never behind, since that a record is from
    /// before what is recorded must be seen by its time where it has no id.
    fn clock_of_node_is_set(&mut self, at: usize) {
        let Some(clocks) = &mut self.fleet.hosts[at].clocks else {
            return;
        };
        let ms = |ms| i64::try_from(ms).expect("a small number");
        match self.dice.below(3) {
            0 => clocks.set_wall_ahead(ms(self.dice.below(CLOCK_MS)) - clocks.wall_ahead()),
            1 => clocks.set_wall_ahead(-clocks.wall_ahead()),
            _ => clocks.pass(Duration::from_millis(self.dice.below(SLEEP_MS))),
        }
        self.tally.did("clocks of nodes set");
    }

    /// Behind, ahead, and back.
    fn clock_of_gateway_is_set(&mut self) {
        let away = i64::try_from(self.dice.below(CLOCK_MS)).expect("a small number");
        let ahead = match self.dice.below(4) {
            0 => away,
            1 => -away,
            _ => 0,
        };
        self.fleet.set_gateway_ahead(ahead, &self.watched);
        self.tally.did("times the gateway's clock was set");
    }
}
