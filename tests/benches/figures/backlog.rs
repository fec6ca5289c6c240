//! How fast what was appended at once is worked off: much work of an agent, from its first byte
//! to the signal of the human line behind it.

use std::path::Path;
use std::time::{Duration, Instant};

use tidings_protocol::session_api::{Reply, Request, SignalsQuery};
use tidings_tests::transcripts::{Claude, Transcript};
use tidings_tests::{DoorClient, Gateway};

use crate::restart::adopt;
use crate::scan::work_of_an_agent;
use crate::table::{Figures, percentile};
use crate::tail::tail_of_much;

/// What is appended at once.
const BYTES: usize = 128 * 1024 * 1024;
/// How often, for each in turn.
const RUNS: usize = 5;

pub(crate) fn backlog(gateway: &Gateway, claude: &Path, figures: &mut Figures) {
    let work = work_of_an_agent(BYTES);
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        ours.push(recorded(gateway, claude, &work));
        plain.push(tail_of_much(Claude::create(claude).path(), &work));
    }
    let rate = |times: &[Duration]| {
        #[expect(clippy::cast_precision_loss, reason = "a rate with three digits")]
        let megabytes = work.len() as f64 / 1e6;
        format!(
            "{:.0} MB/s",
            megabytes / percentile(times, 50).as_secs_f64()
        )
    };
    figures.add(
        "128 MB appended at once, until the line behind is a signal",
        rate(&ours),
        "-",
    );
    figures.add("the same until tail -F has printed all", rate(&plain), "-");
}

/// Until the human line behind the work is a signal.
fn recorded(gateway: &Gateway, claude: &Path, work: &[u8]) -> Duration {
    let mut transcript = Claude::create(claude);
    adopt(&mut DoorClient::connect(gateway.state_dir()), &transcript);
    let mut follow = DoorClient::connect(gateway.state_dir());
    follow.send(&Request::SignalsFollow(SignalsQuery::default()));
    let began = Instant::now();
    transcript.append_bytes(work);
    transcript.human("And the last column?");
    match follow.next() {
        Some(Reply::Signals(page)) => assert_eq!(page.signals.len(), 1, "{page:?}"),
        other => panic!("no signal: {other:?}"),
    }
    began.elapsed()
}
