//! What the gateway's answer means for a link.

use std::time::Duration;

use tidings_protocol::report::{Link, Look};

use super::{FIRST_BACKOFF, LONGEST_BACKOFF, LinkLife, MISSING_INTERVAL, ReadResult, Work};

impl LinkLife {
    pub(super) fn applied(&mut self, revision: u64, now: Duration) {
        // A late answer to what another connection carried says nothing about this report.
        let is_ours = revision > self.revision && matches!(self.work, Work::Reporting(_));
        if !is_ours {
            return;
        }
        if let Work::Reporting(sent) = std::mem::replace(&mut self.work, Work::Rest) {
            let sent = *sent;
            self.revision = revision;
            self.acknowledged = sent.marker;
            self.path = sent.path;
            self.said = sent.said;
            self.rejections = 0;
            if sent.said == Look::Missing {
                // However long the report was on its way: the gateway counts from here.
                self.missing_again_at = Some(now + MISSING_INTERVAL);
            }
        }
    }

    pub(super) fn block(&mut self, now: Duration) {
        let backoff = FIRST_BACKOFF
            .saturating_mul(1 << self.rejections.min(16))
            .min(LONGEST_BACKOFF);
        self.rejections = self.rejections.saturating_add(1);
        self.work = Work::Blocked {
            until: now + backoff,
        };
    }

    /// The gateway's link is where to go on from.
    pub(super) fn go_on_from(&mut self, link: Link) {
        self.revision = link.revision;
        self.acknowledged = link.marker;
        self.path = link.path;
        self.said = link.last_look;
        if let Work::Reading { result } = &mut self.work {
            *result = ReadResult::Discarded;
        }
        self.start_over();
    }

    /// Everything behind what is acknowledged is to be read again.
    pub(super) fn start_over(&mut self) {
        self.findings = None;
        self.rewind = true;
        self.dirty = true;
        self.look_again_at = None;
        if let Some(result) = &mut self.overdue {
            *result = ReadResult::Discarded;
        }
    }
}
