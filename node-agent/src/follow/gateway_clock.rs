//! What the gateway's clock shows, as this machine sees it: times that the gateway stamped
//! are compared with times that a program on this machine wrote.

use std::time::Duration;

use tidings_protocol::EpochMs;
use tidings_protocol::report::Echo;

use crate::clock::Clock;

/// What both clocks of this machine show at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock.
    pub wall: EpochMs,
    /// The clock that never goes back.
    pub monotonic: Duration,
}

impl Moment {
    /// What `clock` shows.
    pub fn of(clock: &dyn Clock) -> Self {
        Self {
            wall: clock.now(),
            monotonic: clock.monotonic(),
        }
    }
}

/// The gateway's clock, as one answer showed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayClock {
    /// What it showed.
    pub showed: EpochMs,
    /// When it was asked. It was read a little later, so a delivery seems older here than it is,
    /// by no more than the answer took, and never younger: its echo is never taken for a
    /// human's words.
    pub asked: Moment,
}

impl GatewayClock {
    /// How far the gateway's clock is ahead of this machine's, in milliseconds. If this
    /// machine's clock was set back since, it is further ahead now; what a standstill of this
    /// machine takes from the monotonic clock is not counted.
    #[must_use]
    pub fn ahead_ms(&self, now: Moment) -> i64 {
        let then = self.showed.saturating_sub(self.asked.wall);
        let passed = now.monotonic.saturating_sub(self.asked.monotonic);
        let passed = i64::try_from(passed.as_millis()).unwrap_or(i64::MAX);
        let shows = self.showed.saturating_add(passed);
        then.max(shows.saturating_sub(now.wall))
    }

    /// Deliveries with the times that this machine's clock showed.
    pub(super) fn in_node_time(&self, mut echo: Echo, now: Moment) -> Echo {
        let ahead = self.ahead_ms(now);
        for delivery in &mut echo.deliveries {
            delivery.at = delivery.at.saturating_sub(ahead);
        }
        echo
    }
}

#[cfg(test)]
mod tests {
    use tidings_protocol::report::Delivery;

    use super::*;

    const SECOND: EpochMs = 1_000;
    const HOUR: EpochMs = 3_600 * SECOND;
    const START: EpochMs = 1_796_040_000_000;

    fn moment(wall: EpochMs, seconds: u64) -> Moment {
        Moment {
            wall,
            monotonic: Duration::from_secs(seconds),
        }
    }

    /// A gateway whose clock is ahead by this much, asked at the start.
    fn ahead(ms: i64) -> GatewayClock {
        GatewayClock {
            showed: START + ms,
            asked: moment(START, 5),
        }
    }

    fn delivered(gateway: &GatewayClock, at: EpochMs, now: Moment) -> EpochMs {
        let echo = Echo {
            key: Vec::new(),
            deliveries: vec![Delivery {
                id: 1,
                digest: [0; 16],
                at,
            }],
        };
        gateway.in_node_time(echo, now).deliveries[0].at
    }

    #[test]
    fn a_delivery_is_told_in_the_time_of_a_machine_behind_or_ahead() {
        let later = moment(START + 10 * SECOND, 15);
        for skew in [HOUR, 0, -HOUR] {
            let at = START + 8 * SECOND + skew;
            assert_eq!(delivered(&ahead(skew), at, later), START + 8 * SECOND);
        }
    }

    #[test]
    fn an_answer_that_took_long_makes_no_delivery_younger() {
        // Asked at the start, read there three seconds later, heard of seven seconds later.
        let gateway = GatewayClock {
            showed: START + HOUR + 3 * SECOND,
            asked: moment(START, 5),
        };
        let at = START + HOUR + 4 * SECOND;
        let told = delivered(&gateway, at, moment(START + 7 * SECOND, 12));
        assert!((START + SECOND..=START + 4 * SECOND).contains(&told));
    }

    #[test]
    fn a_clock_that_is_set_back_during_a_connection_makes_no_delivery_younger() {
        let gateway = ahead(0);
        let set_back = moment(START - HOUR + 10 * SECOND, 15);
        let at = START + 9 * SECOND;
        let told = delivered(&gateway, at, set_back);
        assert_eq!(told, START - HOUR + 9 * SECOND);
    }

    #[test]
    fn a_machine_that_stood_still_for_a_while_makes_no_delivery_younger() {
        // Ten seconds of sleep that the monotonic clock has not seen.
        let awake = moment(START + 15 * SECOND, 10);
        let at = START + 14 * SECOND;
        assert_eq!(delivered(&ahead(0), at, awake), at);
    }

    #[test]
    fn an_absurd_time_of_the_gateway_breaks_nothing() {
        for showed in [EpochMs::MIN, EpochMs::MAX] {
            let asked = moment(START, 0);
            let gateway = GatewayClock { showed, asked };
            for at in [EpochMs::MIN, 0, EpochMs::MAX] {
                let _ = delivered(&gateway, at, moment(START, 1));
            }
        }
    }
}
