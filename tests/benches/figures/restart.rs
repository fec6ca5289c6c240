//! How soon a gateway is there again.

use std::path::Path;
use std::time::{Duration, Instant};

use tidings_protocol::session_api::{Adopt, Request};
use tidings_protocol::{Catalog, SessionKey, ThreadId};
use tidings_tests::transcripts::{Claude, Transcript};
use tidings_tests::{DEADLINE, DoorClient, Gateway, WATCHER, binaries, run};

use crate::spec::{Comparison, Figure};
use crate::table::{Figures, median_ms, percentile, percentiles};

/// Links that a gateway starts with.
const LINKS: usize = 1_000;
/// Starts measured.
const STARTS: usize = 10;
/// Kills measured.
const KILLS: usize = 20;

/// Adopts a thousand threads.
pub(crate) fn adopt_many(gateway: &Gateway, claude: &Path) {
    let mut door = DoorClient::connect(gateway.state_dir());
    for _ in 0..LINKS {
        adopt(&mut door, &Claude::create(claude));
    }
}

/// Adopts a thread of the gateway's own machine, watched.
pub(crate) fn adopt(door: &mut DoorClient, transcript: &Claude) {
    adopt_on(door, "local", transcript);
}

/// Adopts a thread of this machine, watched.
pub(crate) fn adopt_on(door: &mut DoorClient, host: &str, transcript: &Claude) {
    door.ask(&Request::Adopt(Adopt {
        catalog: Catalog::Claude,
        host: host.to_owned(),
        thread_id: ThreadId::parse(transcript.thread()).expect("a thread id"),
        agent: None,
        watch_by: Some(SessionKey::parse(WATCHER).expect("a key")),
    }));
}

/// From the start of the process to its ready line.
pub(crate) fn start(gateway: &mut Gateway, figures: &mut Figures) {
    let mut one = || {
        gateway.stop();
        let began = Instant::now();
        gateway.restart();
        began.elapsed()
    };
    let times: Vec<Duration> = (0..STARTS).map(|_| one()).collect();
    figures.add(
        "gateway start to ready, 50 000 signals, 1 000 links",
        percentiles(&times),
        "<= 150 ms",
    );
    let nothing: Vec<Duration> = (0..STARTS).map(|_| only_the_version(gateway)).collect();
    figures.result(
        Figure::Start,
        median_ms(&times),
        Comparison::with_median("tidings --version, whole process", &nothing),
    );
}

/// A process of the same program that does next to nothing.
fn only_the_version(gateway: &Gateway) -> Duration {
    let began = Instant::now();
    run(gateway
        .scratch()
        .command(&binaries().tidings)
        .arg("--version"));
    began.elapsed()
}

/// From the ready line of a gateway that was killed to a line appended then being recorded.
pub(crate) fn killed(gateway: &mut Gateway, claude: &Path, figures: &mut Figures) {
    let mut transcript = Claude::create(claude);
    adopt(&mut DoorClient::connect(gateway.state_dir()), &transcript);
    let mut one = |at: usize| {
        gateway.kill();
        gateway.restart();
        recorded(gateway, &mut transcript, at)
    };
    let times: Vec<Duration> = (0..KILLS).map(&mut one).collect();
    figures.add(
        "gateway killed and restarted: ready to a line recorded",
        percentiles(&times),
        "p99 <= 2 s",
    );
    let slow = percentile(&times, 99).as_secs_f64();
    let usual: Vec<Duration> = (0..KILLS)
        .map(|at| recorded(gateway, &mut transcript, at))
        .collect();
    figures.result(
        Figure::Killed,
        slow,
        Comparison::with_slow_end("the same with a gateway that was not killed", &usual),
    );
}

/// From a line appended to its signal at a follower.
fn recorded(gateway: &Gateway, transcript: &mut Claude, at: usize) -> Duration {
    let mut follow = gateway.follow(head(gateway));
    let began = Instant::now();
    transcript.human(&format!("line {at}"));
    let signal = follow.signal_within(DEADLINE);
    assert!(signal.is_some(), "nothing was recorded");
    began.elapsed()
}

fn head(gateway: &Gateway) -> u64 {
    gateway.ask(&["status"])["counts"]["head"]
        .as_u64()
        .expect("a head")
}
