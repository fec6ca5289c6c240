//! What a reading found, and whether it is told.

use std::time::Duration;

use tidings_protocol::Marker;
use tidings_protocol::report::{Inconclusive, Look, Outcome};

use super::findings::{Findings, Urgency, travelling};
use super::{LinkLife, MISSING_INTERVAL, Work};
use crate::tail::Page;

impl LinkLife {
    pub(super) fn read_page(&mut self, page: Page, now: Duration) {
        self.missing_again_at = None;
        self.look_again_at = page.look_again.map(|after| now + after);
        self.dirty |= page.more;
        let (tip, known_path) = self.tip();
        let path = travelling(&page.path, known_path);
        let moved_on = page.marker != *tip || path != known_path || page.unclassified > 0;
        let mut found = Findings::of_page(page, path, now);
        if found.urgency == Urgency::CanWait {
            if self.told() != Look::Good {
                found.urgency = Urgency::AtOnce;
            } else if !moved_on {
                return;
            }
        }
        self.findings = Some(found.after(self.findings.take()));
    }

    pub(super) fn missed(&mut self, now: Duration) {
        // Told already, and not to be told again before the time comes.
        if self.missing_again_at.is_none() {
            self.missing_again_at = Some(now + MISSING_INTERVAL);
            self.found_no_file(Outcome::Missing, now);
        }
    }

    pub(super) fn learnt_nothing(&mut self, reason: Inconclusive, now: Duration) {
        if self.told() != Look::Inconclusive(reason) {
            self.found_no_file(Outcome::Inconclusive(reason), now);
        }
    }

    pub(super) fn found_no_file(&mut self, outcome: Outcome, now: Duration) {
        let (marker, path) = self.tip();
        let found = Findings {
            marker: marker.clone(),
            path: path.to_owned(),
            size: self.findings.as_ref().map_or(0, |findings| findings.size),
            unclassified: 0,
            outcome,
            since: now,
            urgency: Urgency::AtOnce,
        };
        self.findings = Some(found.after(self.findings.take()));
    }

    /// What the gateway knows of the file once everything is told that was found.
    pub(super) fn told(&self) -> Look {
        let found = self.findings.as_ref().map(|found| Look::by(&found.outcome));
        match (found.filter(|look| *look != Look::Good), &self.work) {
            (Some(look), _) => look,
            (None, Work::Reporting(sent)) => sent.said,
            (None, _) => self.said,
        }
    }

    pub(super) fn has_urgent_findings(&self) -> bool {
        let urgent = |findings: &Findings| findings.urgency == Urgency::AtOnce;
        self.findings.as_ref().is_some_and(urgent)
    }

    /// How far the file is classified, and where it was.
    pub(super) fn tip(&self) -> (&Marker, &str) {
        match &self.findings {
            Some(findings) => (&findings.marker, &findings.path),
            None => (&self.acknowledged, &self.path),
        }
    }
}
