//! Whether the gateway is still heard. QUIC itself waits for three times as long as an answer
//! might take, and after a standstill of many seconds it takes that for what answers take.

use std::time::Duration;

use quinn::Connection;
use tokio::time::MissedTickBehavior;

/// How often somebody listens: as often as the gateway keeps a connection alive.
const LISTEN_EVERY: Duration = Duration::from_secs(5);
/// How often nothing may have come since the last time: the transport's own idle time, and once
/// more, because a standstill of this machine counts as one.
const SILENT_TIMES: u32 = 5;

/// What was heard.
#[derive(Debug, Default)]
struct Silence {
    datagrams: u64,
    times: u32,
}

impl Silence {
    /// So many datagrams have come by now; true once none came for too long.
    fn lasts(&mut self, datagrams: u64) -> bool {
        self.times = if datagrams == self.datagrams {
            self.times + 1
        } else {
            0
        };
        self.datagrams = datagrams;
        self.times >= SILENT_TIMES
    }
}

/// Returns when nothing has come over this connection for too long.
pub(super) async fn until_silent(connection: &Connection) {
    let mut rounds = tokio::time::interval(LISTEN_EVERY);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut silence = Silence::default();
    loop {
        rounds.tick().await;
        if silence.lasts(connection.stats().udp_rx.datagrams) {
            return;
        }
    }
}

#[test]
fn silence_is_nothing_new_five_times_in_a_row() {
    let mut silence = Silence::default();
    for heard in [1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3] {
        assert!(!silence.lasts(heard), "{heard}");
    }
    assert!(silence.lasts(3));
}
