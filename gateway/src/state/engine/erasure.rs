//! When the log is to be cut because text that was erased can still be read in it.

use std::time::Duration;

use super::checkpoint::Cut;

/// How long nobody asks for anything before the log is cut. One that was cut grows anew, which
/// costs commits: so it is not cut after each erasure.
const WHEN_IDLE: Duration = Duration::from_secs(1);
/// After how long it is cut although there is always another request, and after how long a cut
/// that a reader prevented is tried again then.
const AT_LAST: Duration = Duration::from_secs(30);

/// Whether the log may hold erased text, and since when.
#[derive(Debug, Default)]
pub(crate) struct Erasure {
    since: Option<Duration>,
}

impl Erasure {
    /// Text was erased.
    pub(crate) fn note(&mut self, now: Duration) {
        self.since.get_or_insert(now);
    }

    /// How long to wait for a request before the log is cut; no time where there is nothing to
    /// erase.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.since.map(|_| WHEN_IDLE)
    }

    /// True when the log is to be cut, however much there is to do.
    pub(crate) fn is_overdue(&self, now: Duration) -> bool {
        self.since.is_some_and(|since| now >= since + AT_LAST)
    }

    /// A cut was tried.
    pub(crate) fn tried(&mut self, cut: Cut, now: Duration) {
        self.since = match cut {
            Cut::Done => None,
            Cut::InUse => Some(now),
        };
    }
}

#[test]
fn the_log_is_cut_when_nobody_asks_and_at_last_in_any_case() {
    let seconds = Duration::from_secs;
    let mut erasure = Erasure::default();
    assert_eq!(erasure.patience(), None);
    assert!(!erasure.is_overdue(seconds(1_000)));
    erasure.note(seconds(100));
    erasure.note(seconds(129));
    assert_eq!(erasure.patience(), Some(seconds(1)));
    assert!(!erasure.is_overdue(seconds(129)));
    assert!(erasure.is_overdue(seconds(130)));
    // A reader was in the way.
    erasure.tried(Cut::InUse, seconds(130));
    assert_eq!(erasure.patience(), Some(seconds(1)));
    assert!(!erasure.is_overdue(seconds(159)));
    assert!(erasure.is_overdue(seconds(160)));
    erasure.tried(Cut::Done, seconds(160));
    assert_eq!(erasure.patience(), None);
}
