//! One link's life: when its file is read, when what was found is reported, and what the
//! gateway's answer means. Pure: no file, no clock, no connection.
//!
//! The file is the queue and the gateway's marker the acknowledgement. Whatever is not
//! certain to be recorded is read again from there, so nothing is lost; and a report
//! counts only at the revision it was read from, so nothing is recorded twice.

mod answer;
mod findings;
#[cfg(test)]
mod model;
mod reading;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use tidings_protocol::Marker;
use tidings_protocol::report::{Inconclusive, Link, LinkId, Look, Report, ReportVerdict};

use self::findings::Findings;
use crate::tail::Reading;

pub use findings::{QUIET_BYTES, QUIET_INTERVAL};

/// How long after a miss the next one is looked for. The gateway counts one per 45 s of
/// its own time; the rest is for clocks that do not run alike.
pub const MISSING_INTERVAL: Duration = Duration::from_secs(46);
/// How long a rejected link waits at first; each further rejection doubles it.
pub const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// How long it waits at most.
pub const LONGEST_BACKOFF: Duration = Duration::from_mins(5);

/// The life of one followed link.
#[derive(Debug)]
pub struct LinkLife {
    link: LinkId,
    revision: u64,
    /// Up to here the gateway has recorded.
    acknowledged: Marker,
    /// Where the gateway knows the file to be.
    path: String,
    contact: Contact,
    work: Work,
    /// The file may have changed since it was last read.
    dirty: bool,
    findings: Option<Findings>,
    /// The tailer must go on from what is acknowledged before it reads.
    rewind: bool,
    /// What the gateway was last told of the file, as far as it has answered.
    said: Look,
    /// A reading that did not come back in time; the link goes on without it. Its file is
    /// not read again before.
    overdue: Option<ReadResult>,
    /// How many reports in a row were rejected.
    rejections: u32,
    look_again_at: Option<Duration>,
    missing_again_at: Option<Duration>,
}

/// Whether the gateway can be reported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contact {
    /// Not connected, or the gateway has not named the link since.
    Away,
    /// Connected.
    InTouch,
    /// Connected, but about to stop: what is known is reported, nothing more is read.
    Ending,
}

#[derive(Debug)]
enum Work {
    Rest,
    Reading { result: ReadResult },
    Reporting(Box<Sent>),
    Blocked { until: Duration },
}

/// What becomes of a reading that is not back yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadResult {
    Counts,
    /// It began from a state that no longer holds.
    Discarded,
}

/// What a report in flight says, for when it is applied.
#[derive(Debug)]
struct Sent {
    marker: Marker,
    path: String,
    said: Look,
}

/// What a link needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// Its file is to be read: [`LinkLife::begin_reading`].
    Read,
    /// A report is to be sent: [`LinkLife::take_report`].
    Report,
    /// Nothing until then, or until an event where there is no time.
    Wait(Option<Duration>),
}

/// Whether a link goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is still followed.
    Followed,
    /// The gateway has no such link any more.
    Gone,
}

/// From where a tailer must go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewind {
    /// The gateway's marker.
    pub marker: Marker,
    /// Where it knows the file to be.
    pub path: PathBuf,
}

impl LinkLife {
    /// A link that the gateway has just named, for the first time.
    #[must_use]
    pub fn new(link: Link) -> Self {
        Self {
            link: link.link,
            revision: link.revision,
            acknowledged: link.marker,
            path: link.path,
            contact: Contact::InTouch,
            work: Work::Rest,
            dirty: true,
            findings: None,
            rewind: false,
            said: link.last_look,
            overdue: None,
            rejections: 0,
            look_again_at: None,
            missing_again_at: None,
        }
    }

    /// What the link needs now.
    pub fn wants(&self, now: Duration) -> Want {
        if self.contact == Contact::Away {
            return Want::Wait(None);
        }
        match self.work {
            Work::Reading { .. } | Work::Reporting(_) => return Want::Wait(None),
            Work::Blocked { until } if now < until => return Want::Wait(Some(until)),
            Work::Blocked { .. } | Work::Rest => {}
        }
        let due_at = self.findings.as_ref().map(|findings| match self.contact {
            Contact::Ending => Duration::ZERO,
            _ => findings.due_at(self.acknowledged.offset),
        });
        if due_at.is_some_and(|at| at <= now) {
            return Want::Report;
        }
        if self.contact == Contact::Ending {
            return Want::Wait(None);
        }
        if self.overdue.is_some() {
            return Want::Wait(due_at);
        }
        let again_at = [self.look_again_at, self.missing_again_at];
        if self.dirty || again_at.into_iter().flatten().any(|at| at <= now) {
            return Want::Read;
        }
        Want::Wait(again_at.into_iter().chain([due_at]).flatten().min())
    }

    /// The file may have changed.
    pub fn dirtied(&mut self) {
        self.dirty = true;
    }

    /// The file is being read from now on, by a tailer that first goes where this says.
    pub fn begin_reading(&mut self, now: Duration) -> Option<Rewind> {
        self.work = Work::Reading {
            result: ReadResult::Counts,
        };
        self.dirty = false;
        self.look_again_at = None;
        self.missing_again_at = self.missing_again_at.filter(|at| *at > now);
        std::mem::take(&mut self.rewind).then(|| Rewind {
            marker: self.acknowledged.clone(),
            path: PathBuf::from(&self.path),
        })
    }

    /// The file has been read.
    pub fn read(&mut self, reading: Reading, now: Duration) {
        let Some(result) = self.came_back() else {
            return;
        };
        if result == ReadResult::Discarded {
            self.start_over();
            return;
        }
        match reading {
            Reading::Page(page) => self.read_page(page, now),
            Reading::Missing => self.missed(now),
            Reading::Inconclusive(reason) => self.learnt_nothing(reason, now),
        }
    }

    /// Reading ended without a result, and the tailer with it: a new one is needed.
    pub fn reading_failed(&mut self, now: Duration) {
        let Some(result) = self.came_back() else {
            return;
        };
        self.start_over();
        if result == ReadResult::Counts {
            // Not at once: what failed now would only fail again.
            self.dirty = false;
            self.learnt_nothing(Inconclusive::ReadFailed, now);
        }
    }

    /// The reading has not come back in time: the gateway is told, and should it come back
    /// after all, it counts like any other.
    pub fn reading_is_overdue(&mut self, now: Duration) {
        if let Work::Reading { result } = self.work {
            self.work = Work::Rest;
            self.overdue = Some(result);
            self.learnt_nothing(Inconclusive::TimedOut, now);
        }
    }

    /// The report that is due; it is in flight from now on.
    pub fn take_report(&mut self) -> Option<Report> {
        let findings = self.findings.take()?;
        self.work = Work::Reporting(Box::new(Sent {
            marker: findings.marker.clone(),
            path: findings.path.clone(),
            said: Look::by(&findings.outcome),
        }));
        Some(Report {
            link: self.link,
            revision: self.revision,
            marker: findings.marker,
            path: findings.path,
            size: findings.size,
            unclassified: findings.unclassified,
            outcome: findings.outcome,
        })
    }

    /// The gateway has answered the report in flight.
    pub fn answered(&mut self, verdict: ReportVerdict, now: Duration) -> Fate {
        match verdict {
            ReportVerdict::Applied { revision } => self.applied(revision, now),
            ReportVerdict::Unlinked | ReportVerdict::Stale { current: None } => {
                return Fate::Gone;
            }
            ReportVerdict::Stale {
                current: Some(current),
            } => {
                // To be stale at the stored revision contradicts itself: not at once again.
                let contradicts = current.revision == self.revision;
                if matches!(self.work, Work::Reporting(_)) {
                    self.work = Work::Rest;
                    self.go_on_from(*current);
                    if contradicts {
                        self.block(now);
                    }
                } else {
                    self.updated(*current);
                }
            }
            ReportVerdict::Rejected { .. } => {
                if matches!(self.work, Work::Reporting(_)) {
                    self.start_over();
                    self.block(now);
                }
            }
        }
        Fate::Followed
    }

    /// A new connection: the gateway names the link for the first time on it, and what it
    /// says is the truth. Quiet progress in memory, and a reading that is not back yet,
    /// stay where they follow from that; everything else is found again.
    pub fn welcomed(&mut self, link: Link) {
        let follows = !self.rewind
            && link.revision == self.revision
            && link.marker == self.acknowledged
            && !self.has_urgent_findings();
        if !follows {
            self.go_on_from(link);
        }
        self.contact = Contact::InTouch;
        self.rejections = 0;
        self.dirty = true;
    }

    /// The gateway has changed the link on the same connection. Such a change may be older
    /// than an answer, so only a newer revision means that the link moved without us; and
    /// while a report is in flight, its answer decides.
    pub fn updated(&mut self, link: Link) {
        if link.revision > self.revision && !matches!(self.work, Work::Reporting(_)) {
            if matches!(self.work, Work::Blocked { .. }) {
                self.work = Work::Rest;
            }
            self.go_on_from(link);
        }
    }

    /// Something was delivered to the thread: what was read before and is not recorded may
    /// have taken it for a human's words.
    pub fn echo_changed(&mut self) {
        if let Work::Reading { result } = &mut self.work {
            *result = ReadResult::Discarded;
        } else if let Some(result) = &mut self.overdue {
            *result = ReadResult::Discarded;
        } else if self.has_urgent_findings() {
            self.start_over();
        }
    }

    /// The connection is gone, and nobody knows whether what was in flight is recorded.
    pub fn disconnected(&mut self) {
        self.contact = Contact::Away;
        match self.work {
            Work::Reporting(_) => {
                self.work = Work::Rest;
                self.rewind = true;
            }
            Work::Blocked { .. } => self.work = Work::Rest,
            Work::Reading { .. } | Work::Rest => {}
        }
    }

    /// The node agent is about to stop: quiet progress is to be reported now.
    pub fn end(&mut self) {
        if self.contact == Contact::InTouch {
            self.contact = Contact::Ending;
        }
    }

    /// The link.
    pub fn id(&self) -> LinkId {
        self.link
    }

    /// How far the gateway has recorded.
    pub fn acknowledged(&self) -> &Marker {
        &self.acknowledged
    }

    /// True while something may be in the file that the gateway does not know of.
    pub fn is_pending(&self) -> bool {
        let at_rest = matches!(self.work, Work::Rest);
        self.contact == Contact::Away
            || !at_rest
            || self.overdue.is_some()
            || self.dirty
            || self.look_again_at.is_some()
            || self.said != Look::Good
            || self.has_urgent_findings()
    }

    /// `idle`, `reading`, `reporting` or `blocked`.
    pub fn state(&self) -> &'static str {
        match self.work {
            Work::Rest if self.overdue.is_some() => "reading",
            Work::Rest => "idle",
            Work::Reading { .. } => "reading",
            Work::Reporting(_) => "reporting",
            Work::Blocked { .. } => "blocked",
        }
    }

    /// The reading that is back, in time or not.
    fn came_back(&mut self) -> Option<ReadResult> {
        if let Work::Reading { result } = self.work {
            self.work = Work::Rest;
            return Some(result);
        }
        self.overdue.take()
    }
}
