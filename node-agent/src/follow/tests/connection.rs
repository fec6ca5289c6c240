//! Connections that break, block and come back.

use tidings_protocol::report::Delivery;

use super::*;

#[tokio::test]
async fn an_answer_that_was_lost_costs_nothing_and_counts_nothing_twice() {
    for recorded in [true, false] {
        let mut bench = Bench::start(EVENTS_ONLY).await;
        let file = bench.old_file("claude/p/s1.jsonl");
        bench.connect(8);
        let link = bench.adopt(&file).await;
        let first = append(&file, &human("a"));
        let report = bench.report().await;
        if recorded {
            bench.gateway.record(&report);
        }
        bench.follower.disconnected();
        let second = append(&file, &human("b"));
        bench.connect(8);
        bench.apply_until(link, 2).await;
        bench.until_idle(link).await;
        assert_eq!(bench.gateway.turns(link), [first, second], "{recorded}");
    }
}

#[tokio::test]
async fn a_closed_channel_is_a_broken_connection() {
    let mut bench = Bench::start(EVENTS_ONLY).await;
    let file = bench.old_file("claude/p/s1.jsonl");
    bench.connect(8);
    let link = bench.adopt(&file).await;
    bench.gateway.reports = None;
    let at = append(&file, &human("a"));
    while bench.follower.presence().await.pending != [link] {}
    bench.connect(8);
    bench.apply_until(link, 1).await;
    assert_eq!(bench.gateway.turns(link), [at]);
}

#[tokio::test]
async fn a_connection_that_takes_nothing_blocks_nobody() {
    let mut bench = Bench::start(EVENTS_ONLY).await;
    bench.connect(1);
    let mut links = Vec::new();
    for n in 0..50 {
        let file = bench.old_file(&format!("claude/p/s{n}.jsonl"));
        links.push((bench.adopt(&file).await, file));
    }
    for (_, file) in &links {
        append(file, &human("a"));
    }
    // All of them are read; one report is in the channel, the others wait in their links.
    let reporting = |follower: &Follower| {
        let links = follower.links();
        links
            .iter()
            .filter(|link| link.state == "reporting")
            .count()
    };
    while reporting(&bench.follower) == 0 {
        bench.follower.presence().await;
    }
    let page = CatalogPage {
        limit: 100,
        ..CatalogPage::default()
    };
    assert_eq!(bench.follower.catalog_page(page).await.threads.len(), 50);
    assert_eq!(reporting(&bench.follower), 1);
    // Taking one makes room for the next, answered or not.
    let mut reports = Vec::new();
    for _ in 0..50 {
        reports.push(bench.report().await);
    }
    for report in &reports {
        bench.apply(report);
    }
    for (link, _) in links {
        bench.until_idle(link).await;
        assert_eq!(bench.gateway.turns(link).len(), 1);
    }
}

#[tokio::test]
async fn what_a_new_connection_does_not_name_is_followed_no_more() {
    let mut bench = Bench::start(EVENTS_ONLY).await;
    let files = [
        bench.old_file("claude/p/s1.jsonl"),
        bench.old_file("claude/p/s2.jsonl"),
    ];
    bench.connect(8);
    let gone = bench.adopt(&files[0]).await;
    let kept = bench.adopt(&files[1]).await;
    bench.gateway.links.remove(&gone);
    bench.connect(8);
    let followed: Vec<LinkId> = bench.follower.links().iter().map(|l| l.link).collect();
    assert_eq!(followed, [kept]);
    for file in &files {
        append(file, &human("a"));
    }
    let report = bench.report().await;
    assert_eq!(report.link, kept);
    bench.apply(&report);
    bench.until_idle(kept).await;
    assert_eq!(bench.report_so_far(), None);
}

#[tokio::test]
async fn a_removed_link_ends_whatever_it_was_doing() {
    let mut bench = Bench::start(EVENTS_ONLY).await;
    let file = bench.old_file("claude/p/s1.jsonl");
    bench.connect(8);
    let link = bench.adopt(&file).await;
    append(&file, &human("a"));
    let report = bench.report().await;
    bench.follower.link_removed(link);
    bench.follower.answer(ReportAnswer {
        link: report.link,
        verdict: ReportVerdict::Applied { revision: 2 },
    });
    append(&file, &human("b"));
    assert!(bench.follower.presence().await.pending.is_empty());
    assert!(bench.follower.links().is_empty());
    assert_eq!(bench.report_so_far(), None);
}

#[tokio::test]
async fn two_links_on_one_thread_are_reported_each() {
    let mut bench = Bench::start(EVENTS_ONLY).await;
    let file = bench.old_file("claude/p/s1.jsonl");
    bench.connect(8);
    let (one, two) = (bench.adopt(&file).await, bench.adopt(&file).await);
    let at = append(&file, &human("a"));
    bench.apply_until(one, 1).await;
    bench.apply_until(two, 1).await;
    assert_eq!(bench.gateway.turns(one), [at]);
    assert_eq!(bench.gateway.turns(two), [at]);
}

/// The words of [`human`], delivered at that time of the gateway.
fn delivered_at(at: i64) -> Echo {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"key");
    let digest = ring::hmac::sign(&key, b"human words");
    let delivery = Delivery {
        id: 42,
        digest: digest.as_ref()[..16].try_into().expect("long enough"),
        at,
    };
    Echo {
        key: b"key".to_vec(),
        deliveries: vec![delivery],
        told_at: None,
    }
}

/// When the line of [`human`] was written.
const WRITTEN_AT: i64 = 1_767_323_045_000;
const HOUR_MS: i64 = 60 * 60 * 1_000;

#[tokio::test]
async fn a_delivery_by_a_clock_ahead_or_behind_suppresses_what_was_written_after_it() {
    for ahead_ms in [HOUR_MS, -HOUR_MS] {
        let mut bench = Bench::start(EVENTS_ONLY).await;
        let file = bench.old_file("claude/p/s1.jsonl");
        bench.gateway.ahead_ms = ahead_ms;
        bench.connect(8);
        let link = bench.adopt(&file).await;
        let changed = bench.gateway.links.get_mut(&link).expect("the link");
        // A second before the line, and told in the gateway's time.
        changed.echo = delivered_at(WRITTEN_AT - 1_000 + ahead_ms);
        bench.follower.link(changed.clone());
        echoed_once(&mut bench, link, &file).await;
    }
}

#[tokio::test]
async fn a_delivery_that_only_a_stale_report_tells_of_is_told_in_the_same_time() {
    let mut bench = Bench::start(EVENTS_ONLY).await;
    let file = bench.old_file("claude/p/s1.jsonl");
    bench.gateway.ahead_ms = HOUR_MS;
    bench.connect(8);
    let link = bench.adopt(&file).await;
    let changed = bench.gateway.links.get_mut(&link).expect("the link");
    changed.revision += 1;
    changed.echo = delivered_at(WRITTEN_AT - 1_000 + HOUR_MS);
    echoed_once(&mut bench, link, &file).await;
}

#[tokio::test]
async fn a_delivery_suppresses_nothing_older_than_it_whatever_the_clocks_show() {
    for ahead_ms in [HOUR_MS, -HOUR_MS] {
        let mut bench = Bench::start(EVENTS_ONLY).await;
        let file = bench.old_file("claude/p/s1.jsonl");
        bench.gateway.ahead_ms = ahead_ms;
        bench.connect(8);
        let link = bench.adopt(&file).await;
        let changed = bench.gateway.links.get_mut(&link).expect("the link");
        changed.echo = delivered_at(WRITTEN_AT + 60_000 + ahead_ms);
        bench.follower.link(changed.clone());
        let at = append(&file, &human("a"));
        bench.apply_until(link, 1).await;
        assert_eq!(bench.gateway.turns(link), [at], "{ahead_ms} ms");
    }
}

#[tokio::test]
async fn what_the_gateway_delivered_is_no_humans_turn() {
    let mut bench = Bench::start(EVENTS_ONLY).await;
    let file = bench.old_file("claude/p/s1.jsonl");
    bench.connect(8);
    let link = bench.adopt(&file).await;
    let changed = bench.gateway.links.get_mut(&link).expect("the link");
    changed.echo = delivered_at(0);
    bench.follower.link(changed.clone());
    echoed_once(&mut bench, link, &file).await;
}

/// Two lines follow whose text was delivered once: the second counts.
async fn echoed_once(bench: &mut Bench, link: LinkId, file: &Path) {
    append(file, &human("a"));
    let at = append(file, &human("b"));
    let mut echoed = Vec::new();
    while bench.gateway.turns(link).is_empty() || echoed.is_empty() {
        let report = bench.report().await;
        if let Outcome::Activity(activity) = &report.outcome {
            echoed.extend(&activity.echoed);
        }
        bench.apply(&report);
    }
    bench.until_idle(link).await;
    assert_eq!((bench.gateway.turns(link), echoed), (vec![at], vec![42]));
}

#[tokio::test]
async fn a_link_moved_on_elsewhere_goes_on_from_there() {
    let mut bench = Bench::start(EVENTS_ONLY).await;
    let file = bench.old_file("claude/p/s1.jsonl");
    bench.connect(8);
    let link = bench.adopt(&file).await;
    let first = append(&file, &human("a"));
    let report = bench.report().await;
    // The same report reached the gateway on another way before.
    bench.gateway.record(&report);
    bench.apply(&report);
    let second = append(&file, &human("b"));
    bench.apply_until(link, 2).await;
    bench.until_idle(link).await;
    assert_eq!(bench.gateway.turns(link), [first, second]);
}

#[tokio::test]
async fn an_end_without_a_connection_does_not_wait() {
    let bench = Bench::start(EVENTS_ONLY).await;
    let ended = tokio::time::timeout(END_LIMIT, bench.follower.finish());
    assert!(ended.await.is_ok());
}

#[tokio::test]
async fn a_thread_that_is_not_there_cannot_be_opened() {
    let bench = Bench::start(EVENTS_ONLY).await;
    let wanted = OpenThread {
        catalog: Catalog::Claude,
        thread_id: ThreadId::parse("nobody").expect("a thread"),
    };
    let error = bench
        .follower
        .open_thread(wanted)
        .await
        .expect_err("nothing");
    assert_eq!(error.error_type, ErrorType::NotFound);
}
