//! What a node agent costs while nothing happens.

use std::time::Duration;

use tidings_tests::transcripts::Claude;
use tidings_tests::{DoorClient, Gateway, Node, Scratch, cpu_ticks, resident_kib};

use crate::restart::adopt_on;
use crate::table::Figures;

/// Transcripts on the node.
const TRANSCRIPTS: usize = 10_000;
/// Those that are followed.
const FOLLOWED: usize = 1_000;
/// How long nothing happens: a sweep is in it.
const IDLE: Duration = Duration::from_secs(70);
/// The kernel's clock ticks per second, as in every `/proc/<pid>/stat` of Linux.
const TICKS_PER_SECOND: f64 = 100.0;

pub(crate) fn idle(figures: &mut Figures) {
    let gateway = Gateway::start_alone_to_measure(&Scratch::new());
    let mut node = Node::join(&gateway, "laptop");
    let transcripts: Vec<Claude> = (0..TRANSCRIPTS)
        .map(|_| Claude::create(&node.claude()))
        .collect();
    node.run_to_measure();
    let mut door = DoorClient::connect(gateway.state_dir());
    for transcript in &transcripts[..FOLLOWED] {
        adopt_on(&mut door, node.name(), transcript);
    }
    let head = gateway.ask(&["status"])["counts"]["head"]
        .as_u64()
        .expect("a head");
    let mut follow = gateway.follow(head);
    let (cpu, bytes) = (cpu_ticks(node.id()), gateway.wal_bytes());
    assert_eq!(
        follow.signal_within(IDLE),
        None,
        "a signal while nothing happened"
    );
    let cpu = cpu_ticks(node.id()) - cpu;
    figures.add(
        "node agent, 10 000 transcripts, 1 000 followed: memory",
        format!("{:.1} MB", resident_kib(node.id()) / 1024.0),
        "<= 40 MB",
    );
    figures.add(
        "the same, idle: part of a core",
        format!(
            "{:.2} %",
            cpu / TICKS_PER_SECOND / IDLE.as_secs_f64() * 100.0
        ),
        "<= 0.5 %",
    );
    figures.add(
        "the same, idle: bytes written to the gateway's database",
        format!("{}", gateway.wal_bytes().saturating_sub(bytes)),
        "0",
    );
}
