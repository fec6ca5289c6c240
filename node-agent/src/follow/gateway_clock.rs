//! What the gateway's clock shows, as this machine sees it: times that the gateway stamped
//! are compared with times that a program on this machine wrote.

use std::time::Duration;

use tidings_protocol::EpochMs;
use tidings_protocol::report::Echo;

use crate::clock::Clock;

/// How long what the gateway tells may have been under way, in milliseconds.
const UNDER_WAY_MS: i64 = 60 * 1_000;

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

    /// Deliveries with the times that this machine's clock showed. What the gateway's clock
    /// showed when it told of them says if that clock was set ahead since it was asked; they
    /// may then seem older than they are. One that seems to be still to come was made before a clock was set back: nobody knows how
    /// old it is, and it counts as older than everything.
    pub(super) fn in_node_time(&self, mut echo: Echo, now: Moment) -> Echo {
        let showed_ahead = self.ahead_ms(now);
        let tells_ahead = echo.told_at.take().map(|at| at.saturating_sub(now.wall));
        let ahead = tells_ahead
            .filter(|tells| *tells > showed_ahead)
            .map_or(showed_ahead, |tells| tells.saturating_add(UNDER_WAY_MS));
        for delivery in &mut echo.deliveries {
            let at = delivery.at.saturating_sub(ahead);
            delivery.at = if at > now.wall { EpochMs::MIN } else { at };
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
        gateway.in_node_time(delivery(at), now).deliveries[0].at
    }

    fn delivery(at: EpochMs) -> Echo {
        let delivery = Delivery {
            id: 1,
            digest: [0; 16],
            at,
        };
        Echo {
            deliveries: vec![delivery],
            ..Echo::default()
        }
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
    fn a_gateway_whose_clock_is_set_ahead_after_it_was_asked_makes_no_delivery_younger() {
        let behind = ahead(-5 * HOUR);
        let now = moment(START + 10 * SECOND, 15);
        // It was put right, delivered, and told of that two seconds later.
        let told = delivery(START + 8 * SECOND).told_at(START + 10 * SECOND);
        let told = behind.in_node_time(told, now);
        assert_eq!(told, delivery(START + 8 * SECOND - UNDER_WAY_MS));
        // What is under way for two seconds makes it no younger, where nothing was set.
        let late = delivery(START + 7 * SECOND).told_at(START + 8 * SECOND);
        let late = ahead(0).in_node_time(late, now);
        assert_eq!(late, delivery(START + 7 * SECOND));
    }

    #[test]
    fn a_delivery_from_before_a_clock_was_set_back_is_older_than_everything() {
        let set_back = ahead(-5 * HOUR);
        let now = moment(START + 10 * SECOND, 15);
        let told = delivery(START - SECOND).told_at(START - 5 * HOUR + 10 * SECOND);
        let told = set_back.in_node_time(told, now);
        assert_eq!(told, delivery(EpochMs::MIN));
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
