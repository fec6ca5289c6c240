//! What answers, updates and broken connections do.

use super::*;

#[test]
fn a_rejected_link_waits_longer_each_time_and_reads_again_from_the_gateways_marker() {
    let mut life = reporting();
    let mut now = ZERO;
    for backoff in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        life.answered(rejected(), now);
        assert_eq!(life.state(), "blocked");
        life.dirtied();
        let until = now + seconds(backoff);
        assert_eq!(life.wants(now), Want::Wait(Some(until)));
        now = until;
        let rewind = read(&mut life, spoken(20), now).expect("from the marker");
        assert_eq!(rewind.marker.offset, 10);
        assert_eq!(report(&mut life, now).revision, 1);
    }
    life.answered(applied(2), now);
    life.dirtied();
    read(&mut life, spoken(30), now);
    report(&mut life, now);
    life.answered(rejected(), now);
    assert_eq!(life.wants(now), Want::Wait(Some(now + FIRST_BACKOFF)));
}

#[test]
fn a_stale_link_goes_on_from_the_gateways() {
    let mut life = reporting();
    assert_eq!(life.answered(stale(link(5, 15)), ZERO), Fate::Followed);
    let rewind = read(&mut life, spoken(20), ZERO).expect("from the marker");
    assert_eq!(rewind.marker.offset, 15);
    assert_eq!(report(&mut life, ZERO).revision, 5);
    let nothing = ReportVerdict::Stale { current: None };
    assert_eq!(life.answered(nothing, ZERO), Fate::Gone);
}

#[test]
fn stale_at_the_stored_revision_does_not_loop() {
    let mut life = reporting();
    life.answered(stale(link(1, 10)), ZERO);
    assert_eq!(life.wants(ZERO), Want::Wait(Some(FIRST_BACKOFF)));
}

#[test]
fn a_late_answer_is_not_taken_for_the_one_awaited() {
    let mut life = reporting();
    life.answered(applied(1), ZERO);
    assert_eq!(life.state(), "reporting");
    life.answered(applied(2), ZERO);
    life.answered(applied(3), ZERO);
    life.answered(rejected(), ZERO);
    assert_eq!((life.state(), life.acknowledged().offset), ("idle", 20));
}

#[test]
fn nothing_is_read_or_sent_while_nobody_listens() {
    let mut life = idle();
    life.disconnected();
    life.dirtied();
    assert_eq!(life.wants(seconds(600)), Want::Wait(None));
    assert!(life.is_pending());
}

#[test]
fn an_answer_lost_with_its_connection_is_read_again_unless_it_was_recorded() {
    for (named, from) in [(link(1, 10), 10), (link(2, 20), 20)] {
        let mut life = reporting();
        life.disconnected();
        life.welcomed(named.clone());
        let rewind = read(&mut life, spoken(30), ZERO).expect("from the marker");
        assert_eq!(rewind.marker.offset, from);
        assert_eq!(report(&mut life, ZERO).revision, named.revision);
    }
}

#[test]
fn a_turn_that_was_found_and_not_sent_is_found_again() {
    let mut life = idle();
    life.dirtied();
    read(&mut life, spoken(20), ZERO);
    life.disconnected();
    life.welcomed(link(1, 10));
    let rewind = read(&mut life, spoken(20), ZERO).expect("from the marker");
    assert_eq!(rewind.marker.offset, 10);
    report(&mut life, ZERO);
}

#[test]
fn quiet_progress_survives_a_reconnect_at_the_same_revision() {
    let mut life = idle();
    life.dirtied();
    read(&mut life, quiet(20), ZERO);
    life.disconnected();
    life.welcomed(link(1, 10));
    assert_eq!(read(&mut life, quiet(20), seconds(1)), None);
    assert_eq!(report(&mut life, seconds(30)).marker.offset, 20);
}

#[test]
fn what_the_gateway_says_on_a_new_connection_is_the_truth() {
    for named in [link(3, 15), link(0, 0), link(1, 5)] {
        let mut life = idle();
        life.dirtied();
        read(&mut life, quiet(20), ZERO);
        life.disconnected();
        life.welcomed(named.clone());
        let rewind = read(&mut life, spoken(30), ZERO).expect("from the marker");
        assert_eq!(rewind.marker, named.marker);
        assert_eq!(report(&mut life, ZERO).revision, named.revision);
    }
}

#[test]
fn a_reading_that_outlives_its_connection_counts_only_where_the_link_has_not_moved() {
    for (named, counts) in [(link(1, 10), true), (link(2, 15), false)] {
        let mut life = idle();
        life.dirtied();
        life.begin_reading(ZERO);
        life.disconnected();
        life.welcomed(named.clone());
        assert_eq!(life.wants(ZERO), Want::Wait(None), "it is still away");
        life.read(spoken(20), ZERO);
        if !counts {
            let rewind = read(&mut life, spoken(20), ZERO).expect("from the marker");
            assert_eq!(rewind.marker, named.marker);
        }
        assert_eq!(report(&mut life, ZERO).revision, named.revision);
    }
}

#[test]
fn a_miss_found_before_a_connection_broke_is_looked_for_again() {
    let mut life = idle();
    life.dirtied();
    read(&mut life, Reading::Missing, ZERO);
    life.disconnected();
    life.welcomed(link(1, 10));
    read(&mut life, quiet(10), seconds(3600));
    assert_eq!(life.wants(seconds(3600)), Want::Wait(None));
}

#[test]
fn what_was_judged_without_knowing_a_delivery_is_judged_again() {
    let mut life = idle();
    life.dirtied();
    life.begin_reading(ZERO);
    life.echo_changed();
    life.read(spoken(20), ZERO);
    let rewind = read(&mut life, spoken(20), ZERO).expect("from the marker");
    assert_eq!(rewind.marker.offset, 10);
    life.echo_changed();
    let rewind = read(&mut life, quiet(20), ZERO).expect("from the marker");
    assert_eq!(rewind.marker.offset, 10);
    // Nobody speaks in quiet progress, and a report in flight is the gateway's to judge.
    life.echo_changed();
    assert_eq!(life.wants(ZERO), Want::Wait(Some(QUIET_INTERVAL)));
    let mut life = reporting();
    life.echo_changed();
    assert_eq!(life.state(), "reporting");
}

#[test]
fn an_update_on_the_same_connection_counts_only_if_it_is_newer() {
    let mut life = idle();
    life.updated(link(1, 0));
    life.updated(link(0, 0));
    assert_eq!(life.wants(ZERO), Want::Wait(None));
    life.updated(link(2, 15));
    let rewind = read(&mut life, quiet(15), ZERO).expect("from the marker");
    assert_eq!(rewind.marker.offset, 15);

    let mut life = reporting();
    life.updated(link(2, 20));
    assert_eq!(life.state(), "reporting", "the answer decides");
    life.answered(applied(2), ZERO);
    assert_eq!(life.wants(ZERO), Want::Wait(None));
}

#[test]
fn an_update_ends_a_back_off() {
    let mut life = reporting();
    life.answered(rejected(), ZERO);
    life.updated(link(2, 15));
    read(&mut life, spoken(20), ZERO);
    assert_eq!(report(&mut life, ZERO).revision, 2);
}

#[test]
fn a_reading_that_failed_is_told_and_begins_again_at_the_marker() {
    let mut life = idle();
    life.dirtied();
    life.begin_reading(ZERO);
    life.reading_failed(ZERO);
    let sent = report(&mut life, ZERO);
    let expected = Outcome::Inconclusive(Inconclusive::ReadFailed);
    assert_eq!((sent.outcome, sent.marker.offset), (expected, 10));
    life.answered(applied(2), ZERO);
    assert_eq!(life.wants(ZERO), Want::Wait(None));
    life.dirtied();
    let rewind = read(&mut life, spoken(20), ZERO).expect("from the marker");
    assert_eq!(rewind.marker.offset, 10);
}
