//! How long to wait before the next attempt to connect.

use std::time::Duration;

/// The first wait for an established pairing.
const FIRST: Duration = Duration::from_millis(200);
/// The longest wait for an established pairing: a gateway that comes back is found soon.
const LONGEST: Duration = Duration::from_secs(5);
/// The wait after a refusal: it needs a person, so there is no hurry.
const AFTER_REFUSAL: Duration = Duration::from_secs(30);

/// How long the first attempt may take: a gateway that restarts is met within a second.
const FIRST_ATTEMPT: Duration = Duration::from_secs(1);
/// How long a later attempt may take: a slow, lossy path needs several round trips.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(6);

/// How the last attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// No connection, or one that broke.
    Lost,
    /// The gateway turned this node away.
    Refused,
}

/// The wait after `failures` attempts in a row that ended so. `jitter` is 0 to 255: it takes
/// away up to half, so that many nodes do not come back in one moment.
pub fn wait(ending: Ending, failures: u32, jitter: u8) -> Duration {
    let longest = match ending {
        Ending::Refused => AFTER_REFUSAL,
        Ending::Lost => {
            let doubled = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(10));
            doubled.min(LONGEST)
        }
    };
    longest.saturating_sub(longest * u32::from(jitter) / 510)
}

/// How long the next attempt on one address may take after `failures` in a row.
pub fn attempt_deadline(failures: u32) -> Duration {
    FIRST_ATTEMPT
        .saturating_mul(1 << failures.min(10))
        .min(LONGEST_ATTEMPT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_get_longer_but_stay_bounded() {
        let seconds = |failures| attempt_deadline(failures).as_secs();
        assert_eq!([0, 1, 2, 3, u32::MAX].map(seconds), [1, 2, 4, 6, 6]);
    }

    #[test]
    fn waits_grow_to_five_seconds_and_a_refusal_waits_thirty() {
        for (ending, failures, jitter, millis) in [
            (Ending::Lost, 1, 0, 200),
            (Ending::Lost, 2, 0, 400),
            (Ending::Lost, 6, 0, 5_000),
            (Ending::Lost, u32::MAX, 0, 5_000),
            (Ending::Lost, 1, 255, 100),
            (Ending::Refused, 1, 0, 30_000),
            (Ending::Refused, 9, 255, 15_000),
        ] {
            assert_eq!(
                wait(ending, failures, jitter),
                Duration::from_millis(millis),
                "{ending:?} {failures} {jitter}"
            );
        }
    }
}
