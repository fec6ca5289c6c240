//! What a node agent costs while nothing happens.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tidings_tests::audit;
use tidings_tests::transcripts::{Claude, Transcript};
use tidings_tests::{DoorClient, Gateway, Node, Scratch, cpu_ticks, resident_kib};

use crate::restart::adopt_on;
use crate::spec::{Comparison, Figure};
use crate::table::Figures;
use crate::tail;

/// Transcripts on the node.
const TRANSCRIPTS: usize = 10_000;
/// Those that are followed.
const FOLLOWED: usize = 1_000;
/// How long nothing happens, in seconds: a sweep is in it.
const IDLE: u32 = 70;
/// For how many seconds nothing is written before it counts as idle.
const SETTLED: u32 = 10;
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
    let followed: Vec<&Path> = transcripts[..FOLLOWED].iter().map(Claude::path).collect();
    let mut plain = tail::start("0", &followed, Stdio::null());
    let database = audit::open(gateway.state_dir());
    let mut version = audit::data_version(&database);
    // What follows from adopting is still written for a while.
    let mut quiet_for = 0;
    while quiet_for < SETTLED {
        assert_eq!(follow.signal_within(Duration::from_secs(1)), None);
        let before = std::mem::replace(&mut version, audit::data_version(&database));
        quiet_for = if version == before { quiet_for + 1 } else { 0 };
    }
    let (cpu, plain_cpu) = (cpu_ticks(node.id()), cpu_ticks(plain.id()));
    let mut commits = 0;
    for _ in 0..IDLE {
        let signal = follow.signal_within(Duration::from_secs(1));
        assert_eq!(signal, None, "a signal while nothing happened");
        let before = std::mem::replace(&mut version, audit::data_version(&database));
        commits += u32::from(version != before);
    }
    let part = |ticks: f64| ticks / TICKS_PER_SECOND / f64::from(IDLE) * 100.0;
    let (cpu, plain_cpu) = (
        part(cpu_ticks(node.id()) - cpu),
        part(cpu_ticks(plain.id()) - plain_cpu),
    );
    let megabytes = |process| resident_kib(process) / 1024.0;
    let (memory, plain_memory) = (megabytes(node.id()), megabytes(plain.id()));
    plain.kill().expect("tail ends");
    plain.wait().expect("tail has ended");
    let per_minute = f64::from(commits) * 60.0 / f64::from(IDLE);
    let what = "tail -F of the 1 000 files";
    figures.result(
        Figure::IdleMemory,
        memory,
        Comparison::with(what, plain_memory, "MB"),
    );
    figures.result(Figure::IdleCpu, cpu, Comparison::with(what, plain_cpu, "%"));
    figures.result(
        Figure::IdleCommits,
        per_minute,
        Comparison::with(
            "sweeps of the 1 000 files meanwhile, at least",
            1.0,
            "sweeps",
        ),
    );
    figures.add(
        "node agent, 10 000 transcripts, 1 000 followed: memory",
        format!("{memory:.1} MB"),
        "<= 40 MB",
    );
    figures.add(
        "the same, idle: part of a core",
        format!("{cpu:.2} %"),
        "<= 0.5 %",
    );
    figures.add(
        "the same, idle: commits at the gateway in a minute",
        format!("{per_minute:.1}"),
        "0",
    );
}
