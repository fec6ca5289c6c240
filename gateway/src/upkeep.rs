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
