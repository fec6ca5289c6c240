//! From a line appended to a transcript to the signal at somebody who follows the log.

use std::path::Path;
use std::time::{Duration, Instant};

use tidings_protocol::session_api::{Reply, Request, SignalsQuery};
use tidings_tests::transcripts::{Claude, Transcript};
use tidings_tests::{DoorClient, Gateway};

use crate::restart::adopt;
use crate::spec::{Comparison, Figure};
use crate::table::{Figures, median_ms, millis, percentile, percentiles};
use crate::tail::tail;

/// Files that are followed meanwhile.
const FOLLOWED: usize = 1_000;
/// Lines appended.
const LINES: usize = 1_000;

pub(crate) fn latency(gateway: &Gateway, claude: &Path, figures: &mut Figures) {
    let mut door = DoorClient::connect(gateway.state_dir());
    let mut transcripts: Vec<Claude> = (0..FOLLOWED).map(|_| Claude::create(claude)).collect();
    for transcript in &transcripts {
        adopt(&mut door, transcript);
    }
    let mut follow = DoorClient::connect(gateway.state_dir());
    follow.send(&Request::SignalsFollow(SignalsQuery::default()));
    let mut one = |at: usize| {
        // Another file each time, far from the last.
        let transcript = &mut transcripts[at * 617 % FOLLOWED];
        let began = Instant::now();
        transcript.human("And the next column?");
        match follow.next() {
            Some(Reply::Signals(page)) => assert_eq!(page.signals.len(), 1, "{page:?}"),
            other => panic!("no signal: {other:?}"),
        }
        began.elapsed()
    };
    let times: Vec<Duration> = (0..LINES).map(&mut one).collect();
    figures.add(
        "appended human line to durable signal, 1 000 followed files",
        percentiles(&times),
        "p50 <= 1.5, p99 <= 10 ms",
    );
    let plain = tail(Claude::create(claude).path(), LINES);
    figures.add(
        "the same to a line printed by tail -F of one file",
        percentiles(&plain),
        "-",
    );
    let what = "an appended line to tail -F of one file";
    figures.result(
        Figure::AppendMedian,
        median_ms(&times),
        Comparison::with_median(what, &plain),
    );
    figures.result(
        Figure::AppendSlow,
        millis(percentile(&times, 99)),
        Comparison::with_slow_end(what, &plain),
    );
}
