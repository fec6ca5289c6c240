//! All followed links: which of them is read and which reports next. Pure but for the
//! tailers it holds: it opens no file and waits for nothing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tidings_protocol::report::{Link, LinkId, Report, ReportAnswer, ReportVerdict};
use tidings_protocol::{Catalog, ThreadId};
use tokio::sync::mpsc::Sender;

use super::followed::Followed;
use super::gateway_clock::{GatewayClock, Moment};
use super::index::Index;
use super::queues::{Alarms, Line};
use super::slots::{ReadId, RootIndex, Slots};
use crate::discover::RootSet;
use crate::link::{Fate, Want};
use crate::tail::{Reading, Tailer};
use crate::watch::{Answer, Changes};

/// How many links one node follows, at most: a hundred times what is measured. A link more
/// is not followed, and that is logged.
pub(super) const MAX_LINKS: usize = 100_000;

/// The state of everything that is followed.
#[derive(Debug)]
pub(super) struct Engine {
    roots: Arc<RootSet>,
    answers: Vec<Answer>,
    pub(super) links: HashMap<LinkId, Followed>,
    index: Index,
    session: Option<Session>,
    /// How many connections there have been.
    sessions: u64,
    pub(super) slots: Slots,
    /// After how long a reading is given up for now.
    hang_limit: Duration,
    /// Links to be read: what something happened to goes first.
    urgent: Line,
    swept: Line,
    /// Links whose root has no room.
    parked: HashMap<RootIndex, Line>,
    /// Links with a report to send.
    reports: Line,
    alarms: Alarms,
    pub(super) sweeps: u64,
    sweep: Sweep,
    course: Course,
}

/// The connection that takes reports.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) reports: Sender<Report>,
    gateway: GatewayClock,
}

/// A tailer to be sent out.
#[derive(Debug)]
pub(super) struct ReadOrder {
    pub(super) read: ReadId,
    pub(super) tailer: Box<Tailer>,
}

/// How soon a link is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Urgency {
    Now,
    AfterOthers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sweep {
    Done,
    UnderWay,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    Following,
    Ending,
}

impl Engine {
    pub(super) fn new(roots: Arc<RootSet>, readers: usize, hang_limit: Duration) -> Self {
        Self {
            answers: vec![Answer::Timely; roots.all().len()],
            roots,
            links: HashMap::new(),
            index: Index::default(),
            session: None,
            sessions: 0,
            slots: Slots::new(readers),
            hang_limit,
            urgent: Line::default(),
            swept: Line::default(),
            parked: HashMap::new(),
            reports: Line::default(),
            alarms: Alarms::default(),
            sweeps: 0,
            sweep: Sweep::Done,
            course: Course::Following,
        }
    }

    /// A new connection: the gateway names its links on it, one by one.
    pub(super) fn connected(&mut self, reports: Sender<Report>, gateway: GatewayClock) {
        self.disconnected();
        self.sessions += 1;
        self.session = Some(Session {
            number: self.sessions,
            reports,
            gateway,
        });
    }

    /// The connection is gone: nothing is read until there is another.
    pub(super) fn disconnected(&mut self) {
        if self.session.take().is_none() {
            return;
        }
        for followed in self.links.values_mut() {
            followed.life.disconnected();
        }
        self.urgent.clear();
        self.swept.clear();
        self.reports.clear();
        self.parked.clear();
        self.alarms.clear();
    }

    /// That connection takes no reports any more.
    pub(super) fn closed(&mut self, session: u64) {
        if self.session.as_ref().map(|session| session.number) == Some(session) {
            self.disconnected();
        }
    }

    /// A link, new or changed.
    pub(super) fn link(&mut self, mut link: Link, now: Moment) {
        let Some(session) = &self.session else {
            return;
        };
        link.echo = session.gateway.in_node_time(link.echo, now);
        let id = link.link;
        let thread = (link.catalog, link.thread_id.clone());
        let known = self.links.get(&id).map(|known| known.thread == thread);
        match known {
            Some(true) => self.change(link),
            Some(false) => {
                self.forget(id);
                self.follow(link, thread);
            }
            None if self.links.len() >= MAX_LINKS => {
                tracing::error!(limit = MAX_LINKS, "more links than a node follows");
                return;
            }
            None => self.follow(link, thread),
        }
        if self.course == Course::Ending
            && let Some(followed) = self.links.get_mut(&id)
        {
            followed.life.end();
        }
        self.settle(id, Urgency::Now, now.monotonic);
    }

    /// All links have been named: what was followed before and was not named is over.
    pub(super) fn links_end(&mut self) {
        let unnamed: Vec<LinkId> = self
            .links
            .iter()
            .filter(|(_, followed)| followed.session != self.sessions)
            .map(|(link, _)| *link)
            .collect();
        for link in unnamed {
            self.forget(link);
        }
    }

    /// The link is gone.
    pub(super) fn forget(&mut self, link: LinkId) {
        if let Some(followed) = self.links.remove(&link) {
            self.index.remove(link, &followed.thread, &followed.path);
            self.alarms.set(link, None);
        }
    }

    /// The gateway has answered a report.
    pub(super) fn answer(&mut self, mut answer: ReportAnswer, now: Moment) {
        let Some(followed) = self.links.get_mut(&answer.link) else {
            return;
        };
        let Some(session) = &self.session else {
            return;
        };
        if followed.session != self.sessions {
            return;
        }
        match &mut answer.verdict {
            ReportVerdict::Rejected { reason } => {
                tracing::warn!(
                    link = answer.link.0,
                    reason,
                    "the gateway rejected a report"
                );
            }
            ReportVerdict::Stale {
                current: Some(current),
            } => {
                let echo = std::mem::take(&mut current.echo);
                followed.hear_echo(session.gateway.in_node_time(echo, now));
            }
            _ => {}
        }
        match followed.life.answered(answer.verdict, now.monotonic) {
            Fate::Gone => self.forget(answer.link),
            Fate::Followed => self.settle(answer.link, Urgency::Now, now.monotonic),
        }
    }

    /// Files have changed.
    pub(super) fn hear(&mut self, changes: &Changes, now: Duration) {
        for file in &changes.files {
            self.changed(file, now);
        }
        if changes.everything {
            self.all_changed(now);
        }
    }

    /// One file has changed, or somebody says so.
    pub(super) fn changed(&mut self, path: &Path, now: Duration) {
        for link in self.index.at(path) {
            self.dirty(link, Urgency::Now, now);
        }
    }

    /// A hook speaks of this thread.
    pub(super) fn nudged(&mut self, thread: &(Catalog, ThreadId), now: Duration) {
        for link in self.index.of(thread) {
            self.dirty(link, Urgency::Now, now);
        }
    }

    /// Has every link looked at, for what no event told.
    pub(super) fn sweep(&mut self, now: Duration) {
        self.sweep = Sweep::UnderWay;
        self.all_changed(now);
    }

    /// Which roots answer. The links of one that does again are read.
    pub(super) fn roots_answer(&mut self, answers: impl Iterator<Item = Answer>) {
        for (root, answer) in answers.enumerate() {
            let before = std::mem::replace(&mut self.answers[root], answer);
            if before == Answer::Hung && answer == Answer::Timely {
                self.unpark(Some(root));
            }
        }
    }

    /// Lines up the links whose alarm has gone off, and those whose reading is overdue.
    pub(super) fn wake(&mut self, now: Duration) {
        for (read, reading) in self.slots.overdue(now, self.hang_limit) {
            if let Some(followed) = self.links.get_mut(&reading.link)
                && followed.reading == Some(read)
            {
                followed.life.reading_is_overdue(now);
                self.settle(reading.link, Urgency::Now, now);
            }
        }
        while let Some(link) = self.alarms.pop(now) {
            self.settle(link, Urgency::Now, now);
        }
    }

    /// The tailers that are to read now.
    pub(super) fn next_reads(&mut self, now: Duration) -> Vec<ReadOrder> {
        let mut orders = Vec::new();
        while self.slots.have_room(now) {
            let Some(link) = self.urgent.pop().or_else(|| self.swept.pop()) else {
                break;
            };
            orders.extend(self.begin_reading(link, now));
        }
        if self.sweep == Sweep::UnderWay && self.swept.is_empty() {
            self.sweep = Sweep::Done;
            self.sweeps += 1;
        }
        orders
    }

    /// A tailer is back.
    pub(super) fn read(
        &mut self,
        read: ReadId,
        tailer: Box<Tailer>,
        reading: Reading,
        now: Duration,
    ) {
        let Some((link, followed)) = self.end_reading(read) else {
            // The link is gone, or has another tailer.
            return;
        };
        followed.tailer = Some(tailer);
        followed.life.read(reading, now);
        self.place(link);
        self.settle(link, Urgency::Now, now);
    }

    /// A tailer is lost.
    pub(super) fn read_failed(&mut self, read: ReadId, now: Duration) {
        let Some((link, followed)) = self.end_reading(read) else {
            return;
        };
        tracing::error!(link = link.0, path = %followed.path.display(), "reading failed for a fault of ours");
        followed.renew_tailer();
        followed.life.reading_failed(now);
        self.settle(link, Urgency::Now, now);
    }

    /// The connection, while there are reports for it.
    pub(super) fn outlet(&self) -> Option<Session> {
        self.session.clone().filter(|_| !self.reports.is_empty())
    }

    /// The next report for that connection.
    pub(super) fn next_report(&mut self, session: u64, now: Duration) -> Option<Report> {
        if self.session.as_ref()?.number != session {
            return None;
        }
        while let Some(link) = self.reports.pop() {
            if let Some(followed) = self.links.get_mut(&link)
                && followed.life.wants(now) == Want::Report
            {
                return followed.life.take_report();
            }
        }
        None
    }

    /// When there is something to do though nothing happens.
    pub(super) fn wake_at(&self, now: Duration) -> Option<Duration> {
        let reads_wait = !self.urgent.is_empty() || !self.swept.is_empty();
        let room_at = self.slots.next_slow_at(now).filter(|_| reads_wait);
        let overdue_at = self.slots.next_overdue_at(now, self.hang_limit);
        let at = [self.alarms.next_at(), room_at, overdue_at];
        at.into_iter().flatten().min()
    }

    /// The node agent is about to stop: what is known is reported, nothing more is read.
    pub(super) fn end(&mut self, now: Duration) {
        self.course = Course::Ending;
        let links: Vec<LinkId> = self.links.keys().copied().collect();
        for link in links {
            if let Some(followed) = self.links.get_mut(&link) {
                followed.life.end();
            }
            self.settle(link, Urgency::Now, now);
        }
    }

    /// True once [`Engine::end`] was called and nothing is left to report.
    pub(super) fn has_ended(&self, now: Duration) -> bool {
        let busy = |followed: &Followed| {
            followed.life.state() == "reporting" || followed.life.wants(now) == Want::Report
        };
        self.course == Course::Ending && (self.session.is_none() || !self.links.values().any(busy))
    }

    fn follow(&mut self, link: Link, thread: (Catalog, ThreadId)) {
        let id = link.link;
        let path = PathBuf::from(&link.path);
        self.index.add(id, thread.clone(), path.clone());
        let root = self.roots.holding(thread.0, &path);
        let followed = Followed::new(link, thread, path, root, self.sessions);
        self.links.insert(id, followed);
    }

    fn change(&mut self, mut link: Link) {
        let Some(followed) = self.links.get_mut(&link.link) else {
            return;
        };
        followed.hear_echo(std::mem::take(&mut link.echo));
        if followed.session == self.sessions {
            followed.life.updated(link);
        } else {
            followed.session = self.sessions;
            followed.life.welcomed(link);
        }
    }

    fn all_changed(&mut self, now: Duration) {
        let links: Vec<LinkId> = self.links.keys().copied().collect();
        for link in links {
            self.dirty(link, Urgency::AfterOthers, now);
        }
    }

    fn dirty(&mut self, link: LinkId, urgency: Urgency, now: Duration) {
        if let Some(followed) = self.links.get_mut(&link) {
            followed.life.dirtied();
            self.settle(link, urgency, now);
        }
    }

    /// Lines a link up for what it wants.
    fn settle(&mut self, link: LinkId, urgency: Urgency, now: Duration) {
        let Some(followed) = self.links.get(&link) else {
            return;
        };
        let mut alarm = None;
        match followed.life.wants(now) {
            Want::Read if urgency == Urgency::Now => self.urgent.push(link),
            Want::Read => self.swept.push(link),
            Want::Report => self.reports.push(link),
            Want::Wait(at) => alarm = at,
        }
        self.alarms.set(link, alarm);
    }

    fn begin_reading(&mut self, link: LinkId, now: Duration) -> Option<ReadOrder> {
        let followed = self.links.get_mut(&link)?;
        if followed.life.wants(now) != Want::Read {
            return None;
        }
        let root = followed.root;
        let hung = root.is_some_and(|root| self.answers[root] == Answer::Hung);
        if hung || !self.slots.root_has_room(root, now) {
            self.parked.entry(root).or_default().push(link);
            return None;
        }
        let mut tailer = followed.send_out()?;
        if let Some(rewind) = followed.life.begin_reading(now) {
            tailer.rewind(rewind.marker, rewind.path);
        }
        let read = self.slots.begin(link, root, now);
        followed.reading = Some(read);
        Some(ReadOrder { read, tailer })
    }

    /// Gives the slot back; the link, if the reading is still its own.
    fn end_reading(&mut self, read: ReadId) -> Option<(LinkId, &mut Followed)> {
        let ended = self.slots.end(read)?;
        self.unpark(ended.root);
        let followed = self.links.get_mut(&ended.link)?;
        if followed.reading != Some(read) {
            return None;
        }
        followed.reading = None;
        Some((ended.link, followed))
    }

    /// Notes where the link's file is now.
    fn place(&mut self, link: LinkId) {
        let Some(followed) = self.links.get_mut(&link) else {
            return;
        };
        let Some(tailer) = &followed.tailer else {
            return;
        };
        if tailer.path() != followed.path {
            let path = tailer.path().to_owned();
            self.index.moved(link, &followed.path, path.clone());
            followed.root = self.roots.holding(followed.thread.0, &path);
            followed.path = path;
        }
    }

    fn unpark(&mut self, root: RootIndex) {
        if let Some(mut parked) = self.parked.remove(&root) {
            while let Some(link) = parked.pop() {
                self.urgent.push(link);
            }
        }
    }
}
