//! How long a model is waited for, and how often it is asked again.

use std::time::Duration;

use super::ModelError;

/// A provider that wants to be left alone for longer is not asked again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long a model is waited for, and how often it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How long a connection may take.
    pub connect: Duration,
    /// How long the first piece of an answer may take: a long prompt is read first.
    pub first_piece: Duration,
    /// How long any later piece may take.
    pub next_piece: Duration,
    /// How long a whole answer may take, however it comes.
    pub whole: Duration,
    /// How often one request is sent, at most.
    pub attempts: u32,
    /// The pause before the second time; each later one is twice as long.
    pub first_pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_piece: Duration::from_mins(5),
            next_piece: Duration::from_mins(2),
            // Longer than any answer of so many tokens takes, shorter than a turn's lease.
            whole: Duration::from_mins(20),
            attempts: 4,
            first_pause: Duration::from_millis(500),
        }
    }
}

/// How much of an answer somebody has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// Nothing.
    Nothing,
    /// Some of it: said again it would be seen twice.
    Something,
}

impl Patience {
    /// The pause before a request is sent again that failed for the `failures`th time; `None`
    /// where it is not. `jitter` is one of 256 parts of up to a half more.
    pub(super) fn pause_after(
        &self,
        error: &ModelError,
        failures: u32,
        shown: Shown,
        jitter: u8,
    ) -> Option<Duration> {
        if failures >= self.attempts || shown == Shown::Something || !error.is_passing() {
            return None;
        }
        let usual = self.first_pause * 2_u32.saturating_pow(failures.saturating_sub(1).min(8));
        let usual = usual + usual / 2 * u32::from(jitter) / 256;
        let wished = error.refusal().and_then(|refusal| refusal.retry_after);
        let pause = usual.max(wished.unwrap_or_default());
        (pause <= LONGEST_PAUSE).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns::models::Refusal;

    #[test]
    fn pauses_grow_and_end_and_what_stays_or_was_seen_is_not_asked_again() {
        let refused = |status, seconds: Option<u64>| {
            ModelError::Refused(Refusal {
                retry_after: seconds.map(Duration::from_secs),
                ..Refusal::of(Some(status), String::new())
            })
        };
        let ms = |ms| Some(Duration::from_millis(ms));
        for (error, failures, shown, jitter, pause) in [
            (refused(429, None), 1, Shown::Nothing, 0, ms(500)),
            (refused(429, None), 2, Shown::Nothing, 0, ms(1_000)),
            (refused(503, None), 3, Shown::Nothing, 128, ms(2_500)),
            (refused(503, None), 4, Shown::Nothing, 0, None),
            (refused(429, Some(7)), 1, Shown::Nothing, 0, ms(7_000)),
            (refused(429, Some(0)), 1, Shown::Nothing, 0, ms(500)),
            (refused(429, Some(31)), 1, Shown::Nothing, 0, None),
            (refused(400, None), 1, Shown::Nothing, 0, None),
            (ModelError::Cut, 1, Shown::Nothing, 0, ms(500)),
            (ModelError::Cut, 1, Shown::Something, 0, None),
            (
                ModelError::Endless(Duration::from_secs(1)),
                1,
                Shown::Nothing,
                0,
                None,
            ),
        ] {
            let found = Patience::default().pause_after(&error, failures, shown, jitter);
            assert_eq!(found, pause, "{error} {failures} {shown:?}");
        }
    }
}
