//! What a running gateway does by the clock: retention, expiry of watches and of leases.

use std::sync::Arc;
use std::time::Duration;

use tidings_node::clock::Clock;
use tidings_protocol::EpochMs;
use tokio::sync::watch;

use crate::awareness::retention::{AgeDeletion, ClockReading, age_deletion};
use crate::config::Config;
use crate::state::{Retention, State};

/// Row limits, age and watches are looked after this often.
const ROUND: Duration = Duration::from_hours(1);
/// Leases are looked after at least this often: one may have been opened since.
const LEASE_ROUND: Duration = Duration::from_mins(1);

/// Looks after the log and the watches, now and then every hour, for ever.
pub(crate) async fn keep_log(
    state: State,
    clock: Arc<dyn Clock>,
    config: watch::Receiver<Arc<Config>>,
) {
    let start = read(&*clock);
    let mut rounds = tokio::time::interval(ROUND);
    loop {
        rounds.tick().await;
        let signals = config.borrow().signals.clone();
        let deletion = age_deletion(start, read(&*clock));
        if deletion == AgeDeletion::ClocksDisagree {
            tracing::warn!("wall clock and monotonic clock disagree: nothing is deleted by age");
        }
        let oldest = clock.now().saturating_sub(millis(signals.max_age.0));
        let retention = Retention {
            max_rows: signals.max_rows,
            recorded_since: (deletion == AgeDeletion::Allowed).then_some(oldest),
        };
        match state.prune(retention).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(rows, "signals beyond the retention were deleted"),
            Err(error) => tracing::warn!(%error, "retention failed"),
        }
        if deletion != AgeDeletion::Allowed {
            continue;
        }
        match state.expire_watches(signals.max_age.0).await {
            Ok(0) => {}
            Ok(watches) => tracing::info!(watches, "watches that nobody moved were ended"),
            Err(error) => tracing::warn!(%error, "watches could not be expired"),
        }
    }
}

/// Makes available again what expired leases hold, when they expire.
pub(crate) async fn keep_leases(state: State, clock: Arc<dyn Clock>) {
    loop {
        let wait = match state.expire_leases().await {
            Ok(Some(next)) => until(next, clock.now()).min(LEASE_ROUND),
            Ok(None) => LEASE_ROUND,
            Err(error) => {
                tracing::warn!(%error, "leases could not be expired");
                LEASE_ROUND
            }
        };
        tokio::time::sleep(wait).await;
    }
}

fn read(clock: &dyn Clock) -> ClockReading {
    ClockReading {
        wall: clock.now(),
        monotonic: clock.monotonic(),
    }
}

fn millis(duration: Duration) -> EpochMs {
    EpochMs::try_from(duration.as_millis()).unwrap_or(EpochMs::MAX)
}

/// At least a moment: a deadline that has passed must not make a busy loop of it.
fn until(deadline: EpochMs, now: EpochMs) -> Duration {
    let left = u64::try_from(deadline.saturating_sub(now)).unwrap_or(0);
    Duration::from_millis(left.max(100))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tidings_protocol::session_api::WatchFilter;
    use tidings_protocol::{Actor, SessionKey, SignalKind};

    use super::*;
    use crate::state::{AgentId, NewSignal, SessionAddress, StateOptions};

    const START: EpochMs = 1_800_000_000_000;
    const MINUTE: EpochMs = 60_000;
    const YEAR: EpochMs = 365 * 24 * 60 * MINUTE;
    /// How many signals there are, and how many the row limit leaves.
    const ROWS: (u64, u64) = (20, 15);

    /// A clock that shows the start once, and from then on what became of it.
    #[derive(Debug)]
    struct JumpingClock {
        later: ClockReading,
        shown: Mutex<(bool, bool)>,
    }

    impl JumpingClock {
        fn first(shown: &mut bool) -> bool {
            !std::mem::replace(shown, true)
        }
    }

    impl Clock for JumpingClock {
        fn now(&self) -> EpochMs {
            let mut shown = self.shown.lock().expect("clock");
            if Self::first(&mut shown.0) {
                START
            } else {
                self.later.wall
            }
        }

        fn monotonic(&self) -> Duration {
            let mut shown = self.shown.lock().expect("clock");
            if Self::first(&mut shown.1) {
                Duration::ZERO
            } else {
                self.later.monotonic
            }
        }
    }

    /// A clock that shows what it was set to.
    #[derive(Debug)]
    struct SetClock(Mutex<ClockReading>);

    impl Clock for SetClock {
        fn now(&self) -> EpochMs {
            self.0.lock().expect("clock").wall
        }

        fn monotonic(&self) -> Duration {
            self.0.lock().expect("clock").monotonic
        }
    }

    /// A state with signals that were recorded at the start, and a watch.
    async fn filled(dir: &std::path::Path, clock: Arc<SetClock>) -> State {
        let options = StateOptions {
            directory: dir.to_owned(),
            clock,
        };
        let state = State::open(&options).expect("open");
        let key = |text| SessionKey::parse(text).expect("a key");
        let agent = AgentId::parse("a").expect("an agent");
        let target = SessionAddress::resolve(key("agent:a:target"), &agent).expect("address");
        for _ in 0..ROWS.0 {
            let signal = NewSignal::new(target.clone(), SignalKind::GoalChanged, Actor::Human);
            state.record(signal).await.expect("recorded");
        }
        let added = state.watch_add(key("agent:a:watcher"), target).await;
        assert!(added.expect("an answer").watched);
        state
    }

    #[tokio::test]
    async fn a_clock_that_jumps_deletes_nothing_by_age_and_the_row_limit_holds_all_the_same() {
        for (wall, monotonic, kept) in [
            // A year has passed, as both clocks say.
            (YEAR, YEAR, (0, 0)),
            // The wall clock was set, or was wrong and is right now.
            (YEAR, 61 * MINUTE, (ROWS.1, 1)),
            (-YEAR, 61 * MINUTE, (ROWS.1, 1)),
            // It has only just started: perhaps the clock is about to be set.
            (YEAR, 59 * MINUTE, (ROWS.1, 1)),
            (30 * MINUTE, 30 * MINUTE, (ROWS.1, 1)),
        ] {
            let dir = tempfile::tempdir().expect("directory");
            let start = ClockReading {
                wall: START,
                monotonic: Duration::ZERO,
            };
            let clock = Arc::new(SetClock(Mutex::new(start)));
            let state = filled(dir.path(), Arc::clone(&clock)).await;
            let later = ClockReading {
                wall: START + wall,
                monotonic: Duration::from_millis(monotonic.unsigned_abs()),
            };
            *clock.0.lock().expect("clock") = later;
            let clock = JumpingClock {
                later,
                shown: Mutex::default(),
            };
            let mut config = Config::default();
            config.signals.max_rows = ROWS.1;
            let (_reload, config) = watch::channel(Arc::new(config));
            let kept_now = async {
                loop {
                    let counts = state.counts().await.expect("counts");
                    let watches = state.watches(WatchFilter::default()).await;
                    let watches = watches.expect("watches").watches.len() as u64;
                    // The row limit and the age are applied together, and watches after them.
                    if counts.signals < ROWS.0 && (counts.signals, watches) == kept {
                        return;
                    }
                }
            };
            let round = keep_log(state.clone(), Arc::new(clock), config);
            let done = async {
                tokio::select! {
                    () = round => {}
                    () = kept_now => {}
                }
            };
            let done = tokio::time::timeout(Duration::from_secs(30), done).await;
            assert!(done.is_ok(), "{wall} {monotonic}: not {kept:?}");
        }
    }
}
