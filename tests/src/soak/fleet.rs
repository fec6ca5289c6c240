//! The gateway, its nodes, the network between them and the clocks they go by; what happens
//! to them, and how it is put right again.

use std::time::Duration;

use super::memory::Memory;
use super::tally::Tally;
use super::watching::Watched;
use super::writer::Machine;
use crate::clocks::Clocks;
use crate::dice::Dice;
use crate::gateway::{Gateway, Setup};
use crate::node::Node;
use crate::scratch::Scratch;
use crate::weather::{Proxy, Weather};

/// How many nodes there are.
pub(super) const NODES: usize = 20;
/// Every so many nodes one is spared: its agent runs from the beginning to the end, so that
/// its memory tells of all of it.
const SPARED: usize = 5;
/// Every so many nodes one goes by clocks of its own.
const WITH_CLOCKS: usize = 4;
/// Every so many nodes one says everything that it does, every report included.
const TALKATIVE: usize = 5;
/// The signal that asks a process to end.
const TERM: i32 = 15;

/// Whether a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It does.
    Up,
    /// It was told to do nothing.
    Suspended,
    /// It was ended.
    Down,
}

/// How a process is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// SIGKILL.
    Killed,
    /// SIGTERM: as it is meant to be.
    Stopped,
}

impl End {
    /// One of both.
    pub(super) fn pick(dice: &mut Dice) -> Self {
        if dice.once_in(3) {
            Self::Stopped
        } else {
            Self::Killed
        }
    }
}

/// A node, and what is between it and the gateway.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) node: Node,
    pub(super) proxy: Proxy,
    pub(super) clocks: Option<Clocks>,
    pub(super) state: State,
}

/// All processes.
#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) gateway: Gateway,
    pub(super) gateway_state: State,
    pub(super) clocks: Clocks,
    pub(super) hosts: Vec<Host>,
    pub(super) memory: Memory,
}

impl Fleet {
    /// All of them, up and joined, and the machines as the programs on them see them.
    pub(super) fn start(
        scratch: &Scratch,
        dice: &mut Dice,
        warm: Duration,
    ) -> (Self, Vec<Machine>) {
        let clocks = Clocks::new(scratch);
        let setup = clocks
            .under(Setup::without_local_node())
            // What a long run records must not be too much for the log.
            .with_variable("TIDINGS__SIGNALS__MAXROWS", "100000000");
        let gateway = Gateway::start_as(scratch, setup);
        let mut fleet = Self {
            gateway,
            gateway_state: State::Up,
            clocks,
            hosts: Vec::new(),
            memory: Memory::warm_after(warm),
        };
        fleet.memory.begins(fleet.gateway.id(), "gateway");
        let machines = (0..NODES).map(|number| fleet.join(number, dice)).collect();
        (fleet, machines)
    }

    fn join(&mut self, number: usize, dice: &mut Dice) -> Machine {
        let name = format!("node-{number}");
        let proxy = Proxy::by(self.gateway.address(), dice.split());
        let mut node = Node::join_at(&self.gateway, &name, &proxy.address());
        let mut machine = Machine::of(&mut node);
        if !number.is_multiple_of(TALKATIVE) {
            node.set_quiet();
        }
        let clocks = (number % WITH_CLOCKS == 1).then(|| self.clocks.others(&name));
        if let Some(clocks) = &clocks {
            clocks.govern(&mut node);
            machine = machine.with_two_times();
        }
        node.run();
        self.memory.begins(node.id(), &name);
        self.hosts.push(Host {
            node,
            proxy,
            clocks,
            state: State::Up,
        });
        machine
    }

    /// True where the agent of this node runs from the beginning to the end.
    pub(super) fn is_spared(at: usize) -> bool {
        at.is_multiple_of(SPARED)
    }

    /// Ends the agent of a node. What is wrong.
    pub(super) fn end_node(&mut self, at: usize, end: End) -> Option<String> {
        let host = &mut self.hosts[at];
        self.memory.ends(host.node.id());
        host.state = State::Down;
        if end == End::Killed {
            host.node.kill();
            return None;
        }
        // One that has only just been started may not listen to the signal yet.
        let code = host.node.stop();
        let is_well = [0, -TERM].contains(&code);
        (!is_well).then(|| format!("{} ended with exit code {code}", host.node.name()))
    }

    /// Starts the agent of a node that is down, without waiting for anything.
    pub(super) fn start_node(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        host.node.start_unwelcomed();
        host.state = State::Up;
        self.memory.begins(host.node.id(), host.node.name());
    }

    /// Ends the gateway. What is wrong.
    pub(super) fn end_gateway(&mut self, end: End) -> Option<String> {
        self.memory.ends(self.gateway.id());
        self.gateway_state = State::Down;
        if end == End::Killed {
            self.gateway.kill();
            return None;
        }
        let code = self.gateway.stop();
        (code != 0).then(|| format!("the gateway ended with exit code {code}"))
    }

    /// Starts the gateway, and waits until it is ready.
    pub(super) fn start_gateway(&mut self) {
        self.gateway.restart();
        self.gateway_state = State::Up;
        self.memory.begins(self.gateway.id(), "gateway");
    }

    /// The agent of a node goes on.
    pub(super) fn resume_node(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        if host.state == State::Suspended {
            host.node.resume();
            host.state = State::Up;
        }
    }

    /// The gateway goes on.
    pub(super) fn resume_gateway(&mut self) {
        if self.gateway_state == State::Suspended {
            self.gateway.resume();
            self.gateway_state = State::Up;
        }
    }

    /// Sets the wall clock of the gateway so far ahead, while no watcher asks for anything.
    pub(super) fn set_gateway_ahead(&mut self, ms: i64, watched: &Watched) {
        let mut changes = watched
            .clock_changes
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *changes += 1;
        self.clocks.set_wall_ahead(ms - self.clocks.wall_ahead());
    }

    /// Which of those that should be running are not, one line each.
    pub(super) fn ended_by_themselves(&self) -> Vec<String> {
        let mut ended = Vec::new();
        if self.gateway_state == State::Up && !self.gateway.runs_on(Duration::ZERO) {
            ended.push("the gateway has ended by itself".to_owned());
        }
        for host in &self.hosts {
            if host.state == State::Up && !host.node.runs_on(Duration::ZERO) {
                ended.push(format!("{} has ended by itself", host.node.name()));
            }
        }
        ended
    }

    /// Puts everything right: all run, the weather is fair, the clocks show the time.
    pub(super) fn heal(&mut self, watched: &Watched) {
        self.resume_gateway();
        self.set_gateway_ahead(0, watched);
        if self.gateway_state == State::Down {
            self.start_gateway();
        }
        for at in 0..self.hosts.len() {
            self.hosts[at].proxy.set(Weather::FAIR);
            self.resume_node(at);
            if self.hosts[at].state == State::Down {
                self.start_node(at);
            }
            if let Some(clocks) = &mut self.hosts[at].clocks {
                clocks.set_wall_ahead(-clocks.wall_ahead());
            }
        }
    }

    /// Ends everything as it is meant to be. What is wrong, one line each.
    pub(super) fn end(&mut self) -> Vec<String> {
        let mut wrong = Vec::new();
        for at in 0..self.hosts.len() {
            wrong.extend(self.end_node(at, End::Stopped));
        }
        wrong.extend(self.end_gateway(End::Stopped));
        wrong
    }

    /// How many datagrams were lost and how many got through.
    pub(super) fn datagrams(&self) -> (u64, u64) {
        let counts = self.hosts.iter().map(|host| host.proxy.counts());
        counts.fold((0, 0), |(lost, passed), one| (lost + one.0, passed + one.1))
    }

    /// Counts the datagrams of the whole run.
    pub(super) fn count_datagrams(&self, tally: &Tally) {
        let (lost, passed) = self.datagrams();
        tally.did_times("datagrams lost", lost);
        tally.did_times("datagrams passed on", passed);
    }

    /// Notes what processes hold that have become warm.
    pub(super) fn look(&mut self) {
        self.memory.look();
    }
}
