//! What has been found on a link and not been reported yet.

use std::path::Path;
use std::time::Duration;

use tidings_protocol::Marker;
use tidings_protocol::report::{Activity, Outcome};

use crate::tail::Page;

/// How long quiet progress stays in memory before it is reported alone.
pub const QUIET_INTERVAL: Duration = Duration::from_secs(30);
/// How much quiet progress stays in memory before it is reported alone.
pub const QUIET_BYTES: u64 = 8 * 1024 * 1024;

/// Progress that the gateway does not know of.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) marker: Marker,
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) unclassified: u32,
    pub(super) outcome: Outcome,
    /// When the oldest of it was found.
    pub(super) since: Duration,
    pub(super) urgency: Urgency,
}

/// Whether findings wait for others to ride with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// They are reported as soon as a report can go.
    AtOnce,
    /// They ride on the next report.
    CanWait,
}

impl Findings {
    /// The page as findings, on top of quiet progress from before.
    pub(super) fn of_page(page: Page, path: String, since: Duration) -> Self {
        let outcome = if page.turns.is_empty() && page.echoed.is_empty() {
            Outcome::Quiet
        } else {
            Outcome::Activity(Activity {
                turns: page.turns,
                echoed: page.echoed,
            })
        };
        let urgency = match outcome {
            Outcome::Quiet => Urgency::CanWait,
            _ => Urgency::AtOnce,
        };
        Self {
            marker: page.marker,
            path,
            size: page.size,
            unclassified: page.unclassified,
            outcome,
            since,
            urgency,
        }
    }

    /// These findings with quiet progress found earlier.
    pub(super) fn after(mut self, earlier: Option<Self>) -> Self {
        if let Some(earlier) = earlier {
            self.unclassified = self.unclassified.saturating_add(earlier.unclassified);
            self.since = earlier.since;
        }
        self
    }

    /// From when on they are to be reported, with nothing recorded beyond `recorded`.
    pub(super) fn due_at(&self, recorded: u64) -> Duration {
        let bytes = self.marker.offset.saturating_sub(recorded);
        if self.urgency == Urgency::AtOnce || bytes >= QUIET_BYTES {
            Duration::ZERO
        } else {
            self.since + QUIET_INTERVAL
        }
    }
}

/// The path as it travels. Discovery accepts only such as can; should one not, the place
/// that is known stays.
pub(super) fn travelling(path: &Path, known: &str) -> String {
    path.to_str().unwrap_or(known).to_owned()
}
