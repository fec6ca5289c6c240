//! What is reported, and when.

use super::*;

#[test]
fn a_new_link_is_read_and_an_unchanged_file_reports_nothing() {
    let mut life = idle();
    for _ in 0..3 {
        life.dirtied();
        read(&mut life, quiet(10), seconds(60));
        assert_eq!(life.wants(seconds(600)), Want::Wait(None));
    }
    assert!(!life.is_pending());
}

#[test]
fn a_human_is_reported_at_once_from_the_revision_that_was_read() {
    let mut life = idle();
    life.dirtied();
    read(&mut life, spoken(20), ZERO);
    let report = report(&mut life, ZERO);
    assert_eq!((report.link, report.revision), (LinkId(7), 1));
    assert_eq!(report.marker.offset, 20);
    assert!(
        matches!(report.outcome, Outcome::Activity(Activity { turns, .. }) if turns.len() == 1)
    );
    assert_eq!(life.wants(seconds(600)), Want::Wait(None));
}

#[test]
fn one_report_is_in_flight_and_the_next_goes_on_from_its_revision() {
    let mut life = reporting();
    life.dirtied();
    assert_eq!(life.wants(seconds(1)), Want::Wait(None));
    assert_eq!(life.answered(applied(2), seconds(1)), Fate::Followed);
    assert_eq!(life.acknowledged().offset, 20);
    assert_eq!(read(&mut life, spoken(30), seconds(1)), None);
    assert_eq!(report(&mut life, seconds(1)).revision, 2);
}

#[test]
fn an_echo_alone_is_reported_at_once() {
    let mut life = idle();
    life.dirtied();
    let echoed = Page {
        echoed: vec![3],
        ..page(20)
    };
    read(&mut life, Reading::Page(echoed), ZERO);
    let Outcome::Activity(activity) = report(&mut life, ZERO).outcome else {
        panic!("no activity");
    };
    assert_eq!((activity.turns.len(), activity.echoed), (0, vec![3]));
}

#[test]
fn quiet_progress_waits_for_its_time_or_size() {
    let mut life = idle();
    life.dirtied();
    read(&mut life, quiet(20), seconds(5));
    assert_eq!(life.wants(seconds(5)), Want::Wait(Some(seconds(35))));
    assert!(!life.is_pending());
    // Further progress does not push the time away.
    life.dirtied();
    read(&mut life, quiet(30), seconds(30));
    assert_eq!(life.wants(seconds(34)), Want::Wait(Some(seconds(35))));
    let sent = report(&mut life, seconds(35));
    assert_eq!((sent.outcome, sent.marker.offset), (Outcome::Quiet, 30));
    life.answered(applied(2), seconds(35));

    life.dirtied();
    read(&mut life, quiet(30 + QUIET_BYTES - 1), seconds(40));
    assert_eq!(life.wants(seconds(40)), Want::Wait(Some(seconds(70))));
    life.dirtied();
    read(&mut life, quiet(30 + QUIET_BYTES), seconds(40));
    assert_eq!(report(&mut life, seconds(40)).outcome, Outcome::Quiet);
}

#[test]
fn quiet_progress_rides_on_the_next_report_with_its_count() {
    let mut life = idle();
    for (offset, unclassified) in [(20, 2), (30, 3)] {
        life.dirtied();
        let page = Page {
            unclassified,
            ..page(offset)
        };
        read(&mut life, Reading::Page(page), ZERO);
    }
    life.dirtied();
    read(&mut life, spoken(40), seconds(1));
    let report = report(&mut life, seconds(1));
    assert_eq!((report.marker.offset, report.unclassified), (40, 5));
}

#[test]
fn an_end_reports_quiet_progress_and_reads_no_more() {
    let mut life = idle();
    life.dirtied();
    read(&mut life, quiet(20), ZERO);
    life.dirtied();
    life.end();
    assert_eq!(report(&mut life, ZERO).marker.offset, 20);
    life.answered(applied(2), ZERO);
    assert_eq!(life.wants(seconds(600)), Want::Wait(None));
}

#[test]
fn a_page_with_more_behind_it_is_read_on_after_its_report() {
    let mut life = idle();
    life.dirtied();
    let Reading::Page(first) = spoken(20) else {
        unreachable!()
    };
    let first = Page {
        more: true,
        ..first
    };
    read(&mut life, Reading::Page(first), ZERO);
    report(&mut life, ZERO);
    life.answered(applied(2), ZERO);
    read(&mut life, quiet(30), ZERO);
}

#[test]
fn an_open_end_is_looked_at_again_when_it_may_be_settled() {
    let mut life = idle();
    life.dirtied();
    let open = Page {
        look_again: Some(seconds(2)),
        ..page(10)
    };
    read(&mut life, Reading::Page(open), ZERO);
    assert!(life.is_pending());
    assert_eq!(life.wants(ZERO), Want::Wait(Some(seconds(2))));
    read(&mut life, spoken(20), seconds(2));
    report(&mut life, seconds(2));
}

#[test]
fn misses_are_reported_one_at_a_time() {
    let mut life = idle();
    life.dirtied();
    read(&mut life, Reading::Missing, ZERO);
    assert_eq!(report(&mut life, seconds(3)).outcome, Outcome::Missing);
    life.answered(applied(2), seconds(4));
    let again_at = seconds(4) + MISSING_INTERVAL;
    // An event in between looks again, and tells nothing again.
    life.dirtied();
    read(&mut life, Reading::Missing, seconds(10));
    assert_eq!(life.wants(seconds(10)), Want::Wait(Some(again_at)));
    read(&mut life, Reading::Missing, again_at);
    let second = report(&mut life, again_at);
    assert_eq!((second.outcome, second.revision), (Outcome::Missing, 2));
    assert!(life.is_pending());
    let fate = life.answered(ReportVerdict::Unlinked, again_at);
    assert_eq!(fate, Fate::Gone);
}

#[test]
fn a_miss_that_never_arrived_is_not_told_again_before_its_time() {
    let mut life = idle();
    life.dirtied();
    read(&mut life, Reading::Missing, ZERO);
    report(&mut life, ZERO);
    life.disconnected();
    life.welcomed(link(1, 10));
    read(&mut life, Reading::Missing, seconds(1));
    assert_eq!(life.wants(seconds(1)), Want::Wait(Some(MISSING_INTERVAL)));
    read(&mut life, Reading::Missing, MISSING_INTERVAL);
    report(&mut life, MISSING_INTERVAL);
}

#[test]
fn the_first_good_look_after_a_miss_is_reported_at_once() {
    for bad in [Reading::Missing, inconclusive(Inconclusive::NeverSeen)] {
        let mut life = idle();
        life.dirtied();
        read(&mut life, bad, ZERO);
        report(&mut life, ZERO);
        life.answered(applied(2), ZERO);
        life.dirtied();
        read(&mut life, quiet(10), seconds(1));
        assert_eq!(report(&mut life, seconds(1)).outcome, Outcome::Quiet);
        life.answered(applied(3), seconds(1));
        assert_eq!(life.wants(seconds(600)), Want::Wait(None));
        assert!(!life.is_pending());
    }
}

#[test]
fn a_node_started_anew_reports_its_first_good_look_where_its_predecessor_told_of_another() {
    let unreadable = Inconclusive::PermissionDenied;
    for last_look in [Look::Missing, Look::Inconclusive(unreadable)] {
        let link = Link {
            last_look,
            ..link(4, 10)
        };
        let mut life = LinkLife::new(link.clone());
        assert!(life.is_pending());
        read(&mut life, quiet(10), ZERO);
        assert_eq!(report(&mut life, ZERO).outcome, Outcome::Quiet);
        // The answer is lost; what the gateway has recorded, it says.
        life.disconnected();
        life.welcomed(Link {
            revision: 5,
            last_look: Look::Good,
            ..link
        });
        read(&mut life, quiet(10), ZERO);
        assert_eq!(life.wants(seconds(600)), Want::Wait(None));
    }
    let mut life = LinkLife::new(Link {
        last_look: Look::Inconclusive(unreadable),
        ..link(4, 10)
    });
    read(&mut life, inconclusive(unreadable), ZERO);
    assert_eq!(life.wants(ZERO), Want::Wait(None), "that is known");
}

#[test]
fn a_reading_that_takes_too_long_is_told_and_counts_when_it_comes_back() {
    for answered in [true, false] {
        let mut life = idle();
        life.dirtied();
        life.begin_reading(ZERO);
        life.reading_is_overdue(seconds(45));
        life.dirtied();
        let sent = report(&mut life, seconds(45));
        assert_eq!(
            (sent.outcome, sent.marker.offset),
            (Outcome::Inconclusive(Inconclusive::TimedOut), 10)
        );
        if answered {
            life.answered(applied(2), seconds(45));
        }
        assert_eq!(life.wants(seconds(600)), Want::Wait(None), "one at a time");
        assert!(life.is_pending());
        life.read(spoken(20), seconds(700));
        if !answered {
            life.answered(applied(2), seconds(700));
        }
        let sent = report(&mut life, seconds(700));
        assert_eq!((sent.revision, sent.marker.offset), (2, 20));
    }
}

#[test]
fn a_good_look_behind_one_that_took_too_long_is_told_wherever_its_report_is() {
    for place in ["found", "in flight", "applied"] {
        let mut life = idle();
        life.dirtied();
        life.begin_reading(ZERO);
        life.reading_is_overdue(seconds(45));
        if place != "found" {
            report(&mut life, seconds(45));
        }
        if place == "applied" {
            life.answered(applied(2), seconds(45));
        }
        life.read(quiet(10), seconds(50));
        if place == "in flight" {
            life.answered(applied(2), seconds(50));
        }
        let outcome = report(&mut life, seconds(50)).outcome;
        assert_eq!(outcome, Outcome::Quiet, "{place}");
    }
}

#[test]
fn what_comes_back_too_late_from_a_state_that_no_longer_holds_is_read_again() {
    let mut life = idle();
    life.dirtied();
    life.begin_reading(ZERO);
    life.reading_is_overdue(seconds(45));
    life.updated(link(5, 15));
    assert_eq!(life.wants(seconds(46)), Want::Wait(None));
    life.read(spoken(20), seconds(50));
    let rewind = read(&mut life, spoken(20), seconds(50)).expect("from the marker");
    assert_eq!(rewind.marker.offset, 15);
    assert_eq!(report(&mut life, seconds(50)).revision, 5);
}

#[test]
fn nothing_known_is_reported_once_per_reason() {
    let mut life = idle();
    let mut revision = 1;
    for (reason, told) in [
        (Inconclusive::RootUnavailable, true),
        (Inconclusive::RootUnavailable, false),
        (Inconclusive::PermissionDenied, true),
        (Inconclusive::RootUnavailable, true),
    ] {
        life.dirtied();
        read(&mut life, inconclusive(reason), ZERO);
        if told {
            let sent = report(&mut life, ZERO);
            assert_eq!(sent.outcome, Outcome::Inconclusive(reason));
            assert_eq!(sent.marker.offset, 10);
            revision += 1;
            life.answered(applied(revision), ZERO);
        }
        assert_eq!(life.wants(seconds(600)), Want::Wait(None));
        assert!(life.is_pending());
    }
}

#[test]
fn quiet_progress_rides_on_a_miss() {
    let mut life = idle();
    life.dirtied();
    read(&mut life, quiet(20), ZERO);
    life.dirtied();
    read(&mut life, Reading::Missing, ZERO);
    let sent = report(&mut life, ZERO);
    assert_eq!((sent.outcome, sent.marker.offset), (Outcome::Missing, 20));
}
