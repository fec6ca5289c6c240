//! The rules of a link's life, one by one. Each test is a script: events go in, and what
//! the link wants and reports comes out.

mod answers;
mod findings;

use tidings_protocol::report::{Activity, Evidence, Outcome};
use tidings_protocol::{Catalog, ThreadId};

use super::*;
use crate::tail::Page;

const ZERO: Duration = Duration::ZERO;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn marker(offset: u64) -> Marker {
    Marker {
        offset,
        ..Marker::at_start(0)
    }
}

fn link(revision: u64, offset: u64) -> Link {
    Link {
        link: LinkId(7),
        revision,
        catalog: Catalog::Claude,
        thread_id: ThreadId::parse("t").expect("a thread"),
        path: "/t.jsonl".to_owned(),
        marker: marker(offset),
        echo: tidings_protocol::report::Echo::default(),
        last_look: Look::Good,
    }
}

fn page(offset: u64) -> Page {
    Page {
        marker: marker(offset),
        path: "/t.jsonl".into(),
        size: offset,
        turns: Vec::new(),
        echoed: Vec::new(),
        unclassified: 0,
        more: false,
        look_again: None,
    }
}

fn quiet(offset: u64) -> Reading {
    Reading::Page(page(offset))
}

fn spoken(offset: u64) -> Reading {
    let turn = Evidence {
        byte_start: offset - 1,
        byte_end: offset,
        record_id: None,
        rule: "typed-prompt".to_owned(),
        at: 0,
    };
    Reading::Page(Page {
        turns: vec![turn],
        ..page(offset)
    })
}

fn inconclusive(reason: Inconclusive) -> Reading {
    Reading::Inconclusive(reason)
}

fn applied(revision: u64) -> ReportVerdict {
    ReportVerdict::Applied { revision }
}

fn stale(link: Link) -> ReportVerdict {
    ReportVerdict::Stale {
        current: Some(Box::new(link)),
    }
}

fn rejected() -> ReportVerdict {
    ReportVerdict::Rejected {
        reason: "no".to_owned(),
    }
}

/// Lets the link read, which it must want to.
#[track_caller]
fn read(life: &mut LinkLife, reading: Reading, now: Duration) -> Option<Rewind> {
    assert_eq!(life.wants(now), Want::Read);
    let rewind = life.begin_reading(now);
    life.read(reading, now);
    rewind
}

/// Lets the link report, which it must want to.
#[track_caller]
fn report(life: &mut LinkLife, now: Duration) -> Report {
    assert_eq!(life.wants(now), Want::Report);
    life.take_report().expect("a report")
}

/// A link at revision 1, offset 10, that has looked at its file and found nothing new.
fn idle() -> LinkLife {
    let mut life = LinkLife::new(link(1, 10));
    read(&mut life, quiet(10), ZERO);
    assert_eq!(life.wants(ZERO), Want::Wait(None));
    life
}

/// The same, told a human's turn up to offset 20 that is in flight.
fn reporting() -> LinkLife {
    let mut life = idle();
    life.dirtied();
    read(&mut life, spoken(20), ZERO);
    report(&mut life, ZERO);
    life
}
