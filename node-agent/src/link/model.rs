//! A link's life against a model gateway, under any order of appends, answers, losses and
//! reconnects: no turn is lost, none is recorded twice, and no miss stands for ever.

use std::collections::VecDeque;

use proptest::prelude::*;
use tidings_protocol::report::{Echo, Evidence, Outcome, ReportAnswer};
use tidings_protocol::{Catalog, ThreadId};

use super::*;
use crate::tail::Page;

/// How many lines one page of the model covers.
const PAGE_LINES: usize = 3;

#[derive(Debug, Clone)]
enum Step {
    /// Lines are appended; true is a human's.
    Append(Vec<bool>),
    /// An event, a nudge or a sweep.
    Dirty,
    /// The file is read, if the link wants it.
    BeginReading,
    /// It takes longer than anybody waits.
    Overdue,
    /// The reading comes back.
    EndReading(Seen),
    /// The report goes out, if the link wants it.
    Send,
    /// The gateway takes the report.
    Take(Taking),
    /// Its answer arrives.
    Answer,
    /// The connection breaks; what was on the way is lost.
    Disconnect,
    /// A new one names the link.
    Reconnect,
    /// The gateway hands out a text, and sends the link as it is now.
    Deliver,
    /// That arrives.
    Update,
    /// The link was moved on behind our back.
    Elsewhere,
    Pass(u64),
}

#[derive(Debug, Clone)]
enum Seen {
    Page,
    Missing,
    Inconclusive(Inconclusive),
    Failed,
}

#[derive(Debug, Clone)]
enum Taking {
    Apply,
    Reject,
}

/// Why the gateway sends a link again.
enum Why {
    Delivery,
    Moved,
}

struct Gateway {
    revision: u64,
    offset: usize,
    recorded: Vec<usize>,
    last_look: Look,
}

struct World {
    now: Duration,
    lines: Vec<bool>,
    /// Where the tailer is; `None` while it is away reading.
    tailer: Option<usize>,
    away: usize,
    life: LinkLife,
    connected: bool,
    gateway: Gateway,
    report: Option<Report>,
    answer: Option<ReportAnswer>,
    updates: VecDeque<(Why, Link)>,
}

impl World {
    fn new() -> Self {
        let gateway = Gateway {
            revision: 1,
            offset: 0,
            recorded: Vec::new(),
            last_look: Look::Good,
        };
        Self {
            now: Duration::ZERO,
            lines: Vec::new(),
            tailer: Some(0),
            away: 0,
            life: LinkLife::new(gateway.link()),
            connected: true,
            gateway,
            report: None,
            answer: None,
            updates: VecDeque::new(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Append(lines) => self.lines.extend(lines),
            Step::Dirty => self.life.dirtied(),
            Step::BeginReading => self.begin_reading(),
            Step::Overdue => self.life.reading_is_overdue(self.now),
            Step::EndReading(seen) => self.end_reading(&seen),
            Step::Send => self.send(),
            Step::Take(taking) => self.take(&taking),
            Step::Answer => {
                if let Some(answer) = self.answer.take() {
                    let fate = self.life.answered(answer.verdict, self.now);
                    assert_eq!(fate, Fate::Followed);
                }
            }
            Step::Disconnect => {
                self.connected = false;
                self.report = None;
                self.answer = None;
                self.updates.clear();
                self.life.disconnected();
            }
            Step::Reconnect => {
                if !self.connected {
                    self.connected = true;
                    self.life.welcomed(self.gateway.link());
                }
            }
            Step::Deliver => {
                // What was judged without knowing of it is not recorded.
                self.gateway.revision += 1;
                if self.connected {
                    self.updates.push_back((Why::Delivery, self.gateway.link()));
                }
            }
            Step::Update => {
                if let Some((why, link)) = self.updates.pop_front() {
                    if matches!(why, Why::Delivery) {
                        self.life.echo_changed();
                    }
                    self.life.updated(link);
                }
            }
            Step::Elsewhere => {
                let end = (self.gateway.offset + 2).min(self.lines.len());
                self.gateway.record(&self.lines, end);
                if self.connected {
                    self.updates.push_back((Why::Moved, self.gateway.link()));
                }
            }
            Step::Pass(seconds) => self.now += Duration::from_secs(seconds),
        }
    }

    fn begin_reading(&mut self) {
        if self.life.wants(self.now) == Want::Read {
            let at = self.tailer.take().expect("one reading at a time");
            let rewind = self.life.begin_reading(self.now);
            self.away = rewind.map_or(at, |rewind| offset_of(&rewind.marker));
        }
    }

    fn end_reading(&mut self, seen: &Seen) {
        if self.tailer.is_some() {
            return;
        }
        let (from, now) = (self.away, self.now);
        self.tailer = Some(from);
        match seen {
            Seen::Page => {
                let end = (from + PAGE_LINES).min(self.lines.len());
                self.tailer = Some(end);
                let page = page(&self.lines, from, end);
                self.life.read(Reading::Page(page), now);
            }
            Seen::Missing => self.life.read(Reading::Missing, now),
            Seen::Inconclusive(reason) => self.life.read(Reading::Inconclusive(*reason), now),
            Seen::Failed => {
                // The new tailer begins somewhere else altogether.
                self.tailer = Some(0);
                self.life.reading_failed(now);
            }
        }
    }

    fn send(&mut self) {
        if self.life.wants(self.now) == Want::Report {
            assert!(
                self.report.is_none() && self.answer.is_none(),
                "two in flight"
            );
            self.report = self.life.take_report();
        }
    }

    fn take(&mut self, taking: &Taking) {
        let Some(report) = self.report.take() else {
            return;
        };
        let verdict = if report.revision != self.gateway.revision {
            ReportVerdict::Stale {
                current: Some(Box::new(self.gateway.link())),
            }
        } else if matches!(taking, Taking::Reject) {
            ReportVerdict::Rejected {
                reason: "no".to_owned(),
            }
        } else {
            let turns = match &report.outcome {
                Outcome::Activity(activity) => activity.turns.as_slice(),
                _ => &[],
            };
            let told: Vec<usize> = turns
                .iter()
                .map(|turn| usize::try_from(turn.byte_start).expect("small"))
                .collect();
            let end = offset_of(&report.marker);
            let expected = humans(&self.lines, self.gateway.offset, end);
            assert_eq!(told, expected, "what a report tells is what it covers");
            self.gateway.record(&self.lines, end);
            self.gateway.last_look = Look::by(&report.outcome);
            ReportVerdict::Applied {
                revision: self.gateway.revision,
            }
        };
        self.answer = Some(ReportAnswer {
            link: report.link,
            verdict,
        });
    }

    /// From here on everything works; true when the link has nothing left to do.
    fn settle(&mut self) {
        self.step(Step::Reconnect);
        self.step(Step::Dirty);
        // Long enough for every back-off and every page.
        for _ in 0..200 {
            while !self.updates.is_empty() {
                self.step(Step::Update);
            }
            self.begin_reading();
            self.end_reading(&Seen::Page);
            self.send();
            self.take(&Taking::Apply);
            self.step(Step::Answer);
            match self.life.wants(self.now) {
                Want::Wait(Some(until)) => self.now = until,
                Want::Wait(None) if self.tailer.is_some() => return,
                _ => {}
            }
        }
        panic!("it never comes to rest: {:?}", self.life);
    }
}

impl Gateway {
    fn link(&self) -> Link {
        Link {
            link: LinkId(1),
            revision: self.revision,
            catalog: Catalog::Claude,
            thread_id: ThreadId::parse("t").expect("a thread"),
            path: "/t.jsonl".to_owned(),
            marker: marker(self.offset),
            echo: Echo::default(),
            last_look: self.last_look,
        }
    }

    fn record(&mut self, lines: &[bool], end: usize) {
        self.recorded.extend(humans(lines, self.offset, end));
        self.offset = end;
        self.revision += 1;
    }
}

fn marker(offset: usize) -> Marker {
    Marker {
        offset: offset as u64,
        ..Marker::at_start(0)
    }
}

fn offset_of(marker: &Marker) -> usize {
    usize::try_from(marker.offset).expect("small")
}

fn humans(lines: &[bool], from: usize, end: usize) -> Vec<usize> {
    (from..end).filter(|line| lines[*line]).collect()
}

fn page(lines: &[bool], from: usize, end: usize) -> Page {
    let turn = |line: usize| Evidence {
        byte_start: line as u64,
        byte_end: line as u64 + 1,
        record_id: None,
        rule: "typed-prompt".to_owned(),
        at: 0,
    };
    Page {
        marker: marker(end),
        path: "/t.jsonl".into(),
        size: lines.len() as u64,
        turns: humans(lines, from, end).into_iter().map(turn).collect(),
        echoed: Vec::new(),
        unclassified: 0,
        more: end < lines.len(),
        look_again: (end.is_multiple_of(5) && from < end).then_some(Duration::from_secs(2)),
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    let seen = prop_oneof![
        8 => Just(Seen::Page),
        1 => Just(Seen::Missing),
        1 => Just(Seen::Inconclusive(Inconclusive::RootUnavailable)),
        1 => Just(Seen::Inconclusive(Inconclusive::PermissionDenied)),
        1 => Just(Seen::Failed),
    ];
    let taking = prop_oneof![5 => Just(Taking::Apply), 1 => Just(Taking::Reject)];
    prop_oneof![
        4 => prop::collection::vec(any::<bool>(), 0..8).prop_map(Step::Append),
        3 => Just(Step::Dirty),
        8 => Just(Step::BeginReading),
        1 => Just(Step::Overdue),
        8 => seen.prop_map(Step::EndReading),
        8 => Just(Step::Send),
        8 => taking.prop_map(Step::Take),
        8 => Just(Step::Answer),
        2 => Just(Step::Disconnect),
        4 => Just(Step::Reconnect),
        1 => Just(Step::Deliver),
        2 => Just(Step::Update),
        1 => Just(Step::Elsewhere),
        2 => (0u64..60).prop_map(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn no_turn_is_lost_and_none_is_recorded_twice(
        steps in prop::collection::vec(any_step(), 0..120),
    ) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
        world.settle();
        let everything = humans(&world.lines, 0, world.lines.len());
        prop_assert_eq!(&world.gateway.recorded, &everything);
        prop_assert_eq!(world.gateway.offset, world.lines.len(), "quiet progress too");
        prop_assert_eq!(world.gateway.last_look, Look::Good);
        prop_assert!(!world.life.is_pending());
        // And then there is silence.
        let revision = world.gateway.revision;
        for _ in 0..3 {
            world.settle();
        }
        prop_assert_eq!(world.gateway.revision, revision);
    }
}
