//! What one appended line costs as everything around it grows: files, links, watchers, signals
//! and nodes, each by ten and by a hundred, the rest staying as it is.

use std::time::{Duration, Instant};

use tidings_protocol::session_api::{Reply, Request, SignalsQuery, SignalsRecord, WatchPair};
use tidings_protocol::{SessionKey, SignalKind};
use tidings_tests::transcripts::{Claude, Transcript};
use tidings_tests::{DoorClient, Gateway, Node, Scratch, cpu_ticks};

use crate::restart::adopt_on;
use crate::table::{Figures, percentiles};

/// Milliseconds in a tick of the kernel's clock.
const MS_PER_TICK: f64 = 10.0;

/// As many nodes as one address may join in a row: what thousands cost is measured by
/// `reconnect`, whose nodes have addresses of their own.
const NODES_OF_ONE_ADDRESS: usize = 50;

/// How far things grow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// How many times as much there is.
    factors: &'static [usize],
    /// Lines appended for each.
    lines: usize,
}

impl Extent {
    /// By ten and by a hundred.
    pub(crate) const WHOLE: Self = Self {
        factors: &[1, 10, 100],
        lines: 500,
    };
    /// By ten, to see that it works.
    pub(crate) const SMALL: Self = Self {
        factors: &[1, 10],
        lines: 50,
    };
}

/// How much of everything there is.
#[derive(Debug, Clone, Copy)]
struct World {
    /// Transcripts on the node that nobody follows.
    files: usize,
    /// Threads that are followed.
    links: usize,
    /// Watchers of the thread that grows.
    watchers: usize,
    /// Signals in the log before.
    signals: usize,
    /// Nodes that are connected.
    nodes: usize,
}

const START: World = World {
    files: 100,
    links: 10,
    watchers: 10,
    signals: 500,
    nodes: 1,
};

/// What makes a world larger in one way; what it is then.
type Grow = fn(usize) -> (World, String);

const WAYS: [Grow; 5] = [
    |by| {
        let files = START.files * by;
        (World { files, ..START }, format!("{files} files beside it"))
    },
    |by| {
        let links = START.links * by;
        (World { links, ..START }, format!("{links} links"))
    },
    |by| {
        let watchers = START.watchers * by;
        let world = World { watchers, ..START };
        (world, format!("{watchers} watchers of it"))
    },
    |by| {
        let signals = START.signals * by;
        let world = World { signals, ..START };
        (world, format!("{signals} signals in the log"))
    },
    |by| {
        let nodes = (START.nodes * by).min(NODES_OF_ONE_ADDRESS);
        (World { nodes, ..START }, format!("{nodes} nodes"))
    },
];

pub(crate) fn growth(extent: Extent, figures: &mut Figures) {
    for grow in WAYS {
        for factor in extent.factors {
            let (world, name) = grow(*factor);
            let (times, cpu) = measure(world, extent.lines);
            let value = format!("{}, {cpu:.2} ms on a processor", percentiles(&times));
            figures.add(&format!("an appended line, {name}"), value, "-");
        }
    }
}

/// From each appended line to its signal; and what one costs gateway and agent together on a
/// processor, in milliseconds.
fn measure(world: World, lines: usize) -> (Vec<Duration>, f64) {
    let scratch = Scratch::new();
    let gateway = Gateway::start_alone_to_measure(&scratch);
    let nodes: Vec<Node> = (0..world.nodes).map(|at| connected(&gateway, at)).collect();
    let node = &nodes[0];
    let mut door = DoorClient::connect(gateway.state_dir());
    for _ in 0..world.files {
        Claude::create(&node.claude());
    }
    for _ in 0..world.links {
        adopt_on(&mut door, node.name(), &Claude::create(&node.claude()));
    }
    let mut transcript = Claude::create(&node.claude());
    adopt_on(&mut door, node.name(), &transcript);
    watch(&mut door, &transcript, node.name(), world.watchers);
    fill(&mut door, world.signals);

    let mut follow = DoorClient::connect(gateway.state_dir());
    follow.send(&Request::SignalsFollow(SignalsQuery::default()));
    let mut one = || append(&mut transcript, &mut follow);
    one();
    let used = || cpu_ticks(gateway.id()) + cpu_ticks(node.id());
    let before = used();
    let times: Vec<Duration> = (0..lines).map(|_| one()).collect();
    let count = f64::from(u32::try_from(lines).expect("a small number"));
    (times, (used() - before) * MS_PER_TICK / count)
}

fn append(transcript: &mut Claude, follow: &mut DoorClient) -> Duration {
    let began = Instant::now();
    transcript.human("And the next column?");
    match follow.next() {
        Some(Reply::Signals(page)) => assert_eq!(page.signals.len(), 1, "{page:?}"),
        other => panic!("no signal: {other:?}"),
    }
    began.elapsed()
}

fn connected(gateway: &Gateway, at: usize) -> Node {
    let mut node = Node::join(gateway, &format!("node-{at}"));
    node.run_to_measure();
    node
}

fn watch(door: &mut DoorClient, transcript: &Claude, host: &str, watchers: usize) {
    let target = format!("agent:main:adopted:claude:{host}:{}", transcript.thread());
    for number in 0..watchers {
        door.ask(&Request::WatchAdd(WatchPair {
            watcher: Some(key(&format!("agent:growth:watcher-{number}"))),
            target: key(&target),
            target_agent: None,
        }));
    }
}

/// Signals of another session.
fn fill(door: &mut DoorClient, signals: usize) {
    for _ in 0..signals {
        door.ask(&Request::SignalsRecord(SignalsRecord {
            session: key("agent:growth:other"),
            kind: SignalKind::GoalChanged,
            actor: "human".to_owned(),
            parent: None,
            channel: None,
            outcome: None,
            run_id: None,
            summary: None,
            dedupe_key: None,
        }));
    }
}

fn key(text: &str) -> SessionKey {
    SessionKey::parse(text).expect("a key")
}
