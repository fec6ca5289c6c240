//! The engine alone: who is read next, and who is left alone.

use tidings_protocol::Marker;
use tidings_protocol::report::Inconclusive;

use super::super::engine::{Engine, ReadOrder};
use super::super::slots::SLOW_AFTER;
use super::*;
use crate::tail::{Page, Reading};
use crate::watch::Answer;

const NOW: Duration = Duration::from_secs(100);

/// Both clocks of a machine that counts from 1970.
fn moment(monotonic: Duration) -> Moment {
    Moment {
        wall: i64::try_from(monotonic.as_millis()).expect("a time"),
        monotonic,
    }
}

/// An engine with two roots, connected, with one reader.
fn engine(readers: usize) -> (Engine, mpsc::Receiver<Report>) {
    let given = ["claude=/one", "claude=/two"].map(|root| root.parse().expect("a root"));
    let roots = RootSet::new(&Surroundings::default(), &given).expect("roots");
    let mut engine = Engine::new(Arc::new(roots), readers, HANG_LIMIT);
    let (sender, receiver) = mpsc::channel(8);
    engine.connected(sender, gateway_clock(0));
    (engine, receiver)
}

fn link(id: u64, path: &str) -> Link {
    Link {
        link: LinkId(id),
        revision: 1,
        catalog: Catalog::Claude,
        thread_id: ThreadId::parse(&format!("s{id}")).expect("a thread"),
        path: path.to_owned(),
        marker: Marker::at_start(0),
        echo: Echo::default(),
        last_look: Look::Good,
    }
}

/// The files that are to be read now.
fn out(orders: &[ReadOrder]) -> Vec<&str> {
    let path = |order: &ReadOrder| order.tailer.path().to_owned();
    let paths: Vec<PathBuf> = orders.iter().map(path).collect();
    let known = ["/one/p/s1.jsonl", "/one/p/s2.jsonl", "/two/p/s3.jsonl"];
    let index = |path: &PathBuf| known.iter().position(|known| Path::new(known) == path);
    paths
        .iter()
        .map(|path| known[index(path).expect("known")])
        .collect()
}

/// All of the tailers come back with nothing new.
fn come_back(engine: &mut Engine, orders: Vec<ReadOrder>) {
    for ReadOrder { read, tailer } in orders {
        let page = Page {
            marker: tailer.marker().clone(),
            path: tailer.path().to_owned(),
            size: 0,
            turns: Vec::new(),
            echoed: Vec::new(),
            unclassified: 0,
            more: false,
            look_again: None,
        };
        engine.read(read, tailer, Reading::Page(page), NOW);
    }
}

fn three_links(engine: &mut Engine) {
    for (id, path) in [
        (1, "/one/p/s1.jsonl"),
        (2, "/one/p/s2.jsonl"),
        (3, "/two/p/s3.jsonl"),
    ] {
        engine.link(link(id, path), moment(NOW));
    }
    engine.links_end();
}

fn answering(one: Answer, two: Answer) -> impl Iterator<Item = Answer> {
    [one, two].into_iter()
}

#[test]
fn what_something_happened_to_is_read_before_what_is_only_swept() {
    let (mut engine, _reports) = engine(1);
    three_links(&mut engine);
    for _ in 0..3 {
        let orders = engine.next_reads(NOW);
        come_back(&mut engine, orders);
    }
    engine.sweep(NOW);
    let first = engine.next_reads(NOW);
    let waiting: Vec<&str> = ["/one/p/s1.jsonl", "/one/p/s2.jsonl", "/two/p/s3.jsonl"]
        .into_iter()
        .filter(|path| *path != out(&first)[0])
        .collect();
    engine.changed(Path::new(waiting[1]), NOW);
    come_back(&mut engine, first);
    let second = engine.next_reads(NOW);
    assert_eq!(out(&second), [waiting[1]]);
    come_back(&mut engine, second);
    assert_eq!(engine.sweeps, 0);
    let third = engine.next_reads(NOW);
    assert_eq!(out(&third), [waiting[0]]);
    come_back(&mut engine, third);
    assert!(engine.next_reads(NOW).is_empty(), "each once");
    assert_eq!(engine.sweeps, 1);
}

#[test]
fn a_root_that_does_not_answer_is_skipped_until_it_does() {
    let (mut engine, _reports) = engine(4);
    engine.roots_answer(answering(Answer::Hung, Answer::Timely));
    three_links(&mut engine);
    let orders = engine.next_reads(NOW);
    assert_eq!(out(&orders), ["/two/p/s3.jsonl"]);
    come_back(&mut engine, orders);
    engine.changed(Path::new("/one/p/s1.jsonl"), NOW);
    assert!(engine.next_reads(NOW).is_empty());
    engine.roots_answer(answering(Answer::Timely, Answer::Timely));
    let orders = engine.next_reads(NOW);
    assert_eq!(out(&orders), ["/one/p/s1.jsonl", "/one/p/s2.jsonl"]);
}

#[test]
fn a_root_with_too_many_slow_files_waits_until_one_comes_back() {
    let (mut engine, _reports) = engine(4);
    let mut now = NOW;
    let mut slow = Vec::new();
    for id in 1..=10 {
        engine.link(link(id, &format!("/one/p/s{id}.jsonl")), moment(now));
        slow.extend(engine.next_reads(now));
        now += SLOW_AFTER;
    }
    assert_eq!(slow.len(), 8);
    engine.link(link(11, "/two/p/s11.jsonl"), moment(now));
    let other_root = engine.next_reads(now);
    assert_eq!(other_root[0].tailer.path(), Path::new("/two/p/s11.jsonl"));
    assert_eq!(other_root.len(), 1);
    come_back(&mut engine, slow.drain(..1).collect());
    let next = engine.next_reads(now);
    let files: Vec<&Path> = next.iter().map(|order| order.tailer.path()).collect();
    assert_eq!(
        files,
        [Path::new("/one/p/s9.jsonl"), Path::new("/one/p/s10.jsonl")]
    );
}

#[test]
fn nothing_is_read_without_a_connection() {
    let (mut engine, _reports) = engine(4);
    three_links(&mut engine);
    engine.disconnected();
    engine.sweep(NOW);
    engine.changed(Path::new("/one/p/s1.jsonl"), NOW);
    assert!(engine.next_reads(NOW).is_empty());
    engine.link(link(1, "/one/p/s1.jsonl"), moment(NOW));
    assert!(engine.next_reads(NOW).is_empty());
    assert_eq!(engine.wake_at(NOW), None);
}

#[test]
fn a_reading_that_does_not_come_back_in_time_is_told_once_and_not_repeated() {
    let (mut engine, _reports) = engine(4);
    engine.link(link(1, "/one/p/s1.jsonl"), moment(NOW));
    let out = engine.next_reads(NOW);
    let overdue_at = NOW + HANG_LIMIT + Duration::from_millis(1);
    for now in [NOW, NOW + SLOW_AFTER] {
        let wake_at = engine.wake_at(now).expect("somebody is out");
        assert!(now < wake_at && wake_at <= overdue_at);
    }
    engine.wake(overdue_at);
    let session = engine.outlet().expect("a report waits");
    let report = engine.next_report(session.number, overdue_at);
    let report = report.expect("a report");
    let timed_out = Outcome::Inconclusive(Inconclusive::TimedOut);
    assert_eq!(report.outcome, timed_out);
    let verdict = ReportVerdict::Applied { revision: 2 };
    let link = report.link;
    engine.answer(ReportAnswer { link, verdict }, moment(overdue_at));
    engine.sweep(overdue_at);
    engine.wake(overdue_at * 2);
    assert!(engine.next_reads(overdue_at * 2).is_empty());
    assert!(engine.outlet().is_none());
    come_back(&mut engine, out);
    let report = engine.next_report(session.number, NOW).expect("a report");
    assert_eq!((report.outcome, report.revision), (Outcome::Quiet, 2));
}

#[test]
fn a_lost_tailer_is_replaced_and_its_failure_reported() {
    let (mut engine, _reports) = engine(1);
    engine.link(link(1, "/one/p/s1.jsonl"), moment(NOW));
    let ReadOrder { read, .. } = engine.next_reads(NOW).remove(0);
    engine.read_failed(read, NOW);
    let session = engine.outlet().expect("a report waits");
    let report = engine.next_report(session.number, NOW).expect("a report");
    assert_eq!(report.outcome.as_str(), "inconclusive");
    let answer = ReportAnswer {
        link: report.link,
        verdict: ReportVerdict::Applied { revision: 2 },
    };
    engine.answer(answer, moment(NOW));
    engine.changed(Path::new("/one/p/s1.jsonl"), NOW);
    assert_eq!(engine.next_reads(NOW).len(), 1);
}

#[test]
fn a_report_goes_only_to_the_connection_it_was_made_for() {
    let (mut engine, _reports) = engine(1);
    engine.link(link(1, "/one/p/s1.jsonl"), moment(NOW));
    let ReadOrder { read, .. } = engine.next_reads(NOW).remove(0);
    engine.read_failed(read, NOW);
    let old = engine.outlet().expect("a report waits");
    let (sender, _receiver) = mpsc::channel(8);
    engine.connected(sender, gateway_clock(0));
    assert_eq!(engine.next_report(old.number, NOW), None);
    // That the old one has closed says nothing about the new one.
    engine.closed(old.number);
    engine.link(link(1, "/one/p/s1.jsonl"), moment(NOW));
    assert_eq!(engine.next_reads(NOW).len(), 1);
}
