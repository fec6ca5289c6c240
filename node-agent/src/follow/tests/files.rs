//! What happens to files: appended, moved, removed, replaced.

use tidings_protocol::report::Inconclusive;

use super::*;

const UUID: &str = "0199a213-81c0-7800-8aa1-bbab2a035a53";

#[tokio::test]
async fn an_appended_human_line_is_reported_exactly_once() {
    let mut bench = Bench::start(EVENTS_ONLY).await;
    let file = bench.old_file("claude/p/s1.jsonl");
    bench.connect(8);
    let link = bench.adopt(&file).await;
    let at = append(&file, &human("a"));
    let report = bench.report().await;
    assert_eq!((report.link, report.revision), (link, 1));
    assert_eq!(turns(&report), [at]);
    assert_eq!(Path::new(&report.path), file);
    bench.apply(&report);
    bench.until_idle(link).await;
    assert_eq!(bench.report_so_far(), None);
}

#[tokio::test]
async fn twenty_lines_are_twenty_turns_however_they_are_reported() {
    let mut bench = Bench::start(EVENTS_ONLY).await;
    let file = bench.old_file("claude/p/s1.jsonl");
    bench.connect(8);
    let link = bench.adopt(&file).await;
    let mut expected = Vec::new();
    for n in 0..20 {
        append(&file, &reply(&format!("r{n}")));
        expected.push(append(&file, &human(&format!("h{n}"))));
    }
    bench.apply_until(link, 20).await;
    bench.until_idle(link).await;
    assert_eq!(bench.gateway.turns(link), expected);
}

#[tokio::test]
async fn a_burst_is_worked_off_report_by_report() {
    let mut bench = Bench::start(EVENTS_ONLY).await;
    let file = bench.old_file("claude/p/s1.jsonl");
    bench.connect(8);
    let link = bench.adopt(&file).await;
    let burst: String = (0..1_000).map(|n| human(&format!("h{n}"))).collect();
    append(&file, &burst);
    bench.apply_until(link, 1_000).await;
    bench.until_idle(link).await;
    assert_eq!(bench.gateway.turns(link).len(), 1_000);
}

#[tokio::test]
async fn a_line_that_nobody_wrote_is_reported_only_at_the_end() {
    let mut bench = Bench::start(EVENTS_ONLY).await;
    let file = bench.old_file("claude/p/s1.jsonl");
    bench.connect(8);
    let link = bench.adopt(&file).await;
    append(&file, &reply("r"));
    bench.until_idle(link).await;
    assert_eq!(bench.report_so_far(), None);
    let follower = bench.follower.clone();
    let finished = tokio::spawn(async move { follower.finish().await });
    let report = bench.report().await;
    assert_eq!(report.outcome, Outcome::Quiet);
    assert_eq!(
        report.marker.offset,
        fs::metadata(&file).expect("metadata").len()
    );
    bench.apply(&report);
    finished.await.expect("the end");
}

#[tokio::test]
async fn a_thread_in_a_directory_made_a_moment_ago_is_followed_at_once() {
    let mut bench = Bench::start(EVENTS_ONLY).await;
    bench.connect(8);
    for n in 0..10 {
        let file = bench.old_file(&format!("claude/p{n}/s{n}.jsonl"));
        let link = bench.adopt(&file).await;
        let at = append(&file, &human("h"));
        bench.apply_until(link, 1).await;
        assert_eq!(bench.gateway.turns(link), [at]);
    }
}

#[tokio::test]
async fn a_thread_archived_into_a_new_nested_directory_is_followed_there() {
    let mut bench = Bench::start(EVENTS_ONLY).await;
    let name = format!("rollout-1-{UUID}.jsonl");
    let file = bench.old_file(&format!("codex/{name}"));
    bench.connect(8);
    let link = bench.adopt(&file).await;
    let nested = bench.path("codex/2026/01/02");
    fs::create_dir_all(&nested).expect("directories");
    fs::rename(&file, nested.join(&name)).expect("rename");
    let arrived = |status: &NodeLinkStatus| Path::new(&status.path) == nested.join(&name);
    while !arrived(&bench.follower.links()[0]) {
        bench.follower.presence().await;
    }
    bench.until_idle(link).await;
    assert_eq!(bench.report_so_far(), None, "nobody spoke");
}

#[tokio::test]
async fn a_moved_file_is_followed_to_its_new_place() {
    let mut bench = Bench::start(EVENTS_ONLY).await;
    let file = bench.old_file("claude/p/s1.jsonl");
    bench.connect(8);
    let link = bench.adopt(&file).await;
    let first = append(&file, &human("a"));
    bench.apply_until(link, 1).await;
    let moved = bench
        .path("claude/q/deep-s1.jsonl")
        .with_file_name("s1.jsonl");
    fs::create_dir(moved.parent().expect("a parent")).expect("a directory");
    fs::rename(&file, &moved).expect("rename");
    let second = append(&moved, &human("b"));
    bench.apply_until(link, 2).await;
    let third = append(&moved, &human("c"));
    bench.apply_until(link, 3).await;
    bench.until_idle(link).await;
    assert_eq!(bench.gateway.turns(link), [first, second, third]);
    assert_eq!(Path::new(&bench.follower.links()[0].path), moved);
}

#[tokio::test]
async fn a_removed_file_is_missing_once_and_good_again_when_it_is_back() {
    let mut bench = Bench::start(SWEEPING).await;
    let file = bench.old_file("claude/p/s1.jsonl");
    bench.connect(8);
    let link = bench.adopt(&file).await;
    let away = bench.path("away.jsonl");
    fs::rename(&file, &away).expect("rename");
    let report = bench.report().await;
    assert_eq!(report.outcome, Outcome::Missing);
    bench.apply(&report);
    let sweeps = bench.follower.presence().await.sweeps;
    while bench.follower.presence().await.sweeps < sweeps + 3 {}
    assert_eq!(bench.report_so_far(), None, "the next miss is 46 s away");
    fs::rename(&away, &file).expect("rename");
    let report = bench.report().await;
    assert_eq!(report.outcome, Outcome::Quiet);
    bench.apply(&report);
    bench.until_idle(link).await;
}

#[tokio::test]
async fn a_root_that_goes_away_says_nothing_about_its_files() {
    let mut bench = Bench::start(SWEEPING).await;
    let file = bench.old_file("claude/p/s1.jsonl");
    bench.connect(8);
    let link = bench.adopt(&file).await;
    let (root, away) = (bench.path("claude"), bench.path("away"));
    fs::rename(&root, &away).expect("rename");
    let report = bench.report().await;
    let expected = Outcome::Inconclusive(Inconclusive::RootUnavailable);
    assert_eq!(report.outcome, expected);
    bench.apply(&report);
    let presence = bench.follower.presence().await;
    assert_eq!(presence.roots[0].state.as_str(), "unavailable");
    assert_eq!(presence.pending, [link]);
    assert!(!presence.warnings.is_empty());
    let at = append(&away.join("p/s1.jsonl"), &human("a"));
    fs::rename(&away, &root).expect("rename");
    bench.apply_until(link, 1).await;
    bench.until_idle(link).await;
    assert_eq!(bench.gateway.turns(link), [at]);
    // And file events come again, without a sweep in between.
    let presence = bench.follower.presence().await;
    assert_eq!(presence.roots[0].state.as_str(), "watched");
}

#[tokio::test]
async fn what_is_no_regular_file_any_more_holds_up_nobody() {
    let mut bench = Bench::start(EVENTS_ONLY).await;
    let (file, other) = (
        bench.old_file("claude/p/s1.jsonl"),
        bench.old_file("claude/p/s2.jsonl"),
    );
    bench.connect(8);
    let link = bench.adopt(&file).await;
    let healthy = bench.adopt(&other).await;
    fs::remove_file(&file).expect("remove");
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        &file,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    );
    made.expect("a FIFO");
    let report = bench.report().await;
    assert_eq!(report.link, link);
    assert!(
        matches!(report.outcome, Outcome::Missing | Outcome::Inconclusive(_)),
        "{report:?}"
    );
    bench.apply(&report);
    append(&other, &human("a"));
    bench.apply_until(healthy, 1).await;
}

#[tokio::test]
async fn a_sweep_of_unchanged_files_reports_nothing() {
    let mut bench = Bench::start(SWEEPING).await;
    bench.connect(8);
    for n in 0..100 {
        let file = bench.old_file(&format!("claude/p{}/s{n}.jsonl", n % 7));
        let link = bench.open(&file).await;
        bench.gateway.links.insert(link.link, link);
    }
    bench.connect(8);
    let sweeps = bench.follower.presence().await.sweeps;
    while bench.follower.presence().await.sweeps < sweeps + 3 {}
    assert_eq!(bench.report_so_far(), None);
    assert_eq!(bench.follower.links().len(), 100);
    assert!(
        bench
            .follower
            .roots()
            .iter()
            .all(|root| root.state == "watched")
    );
}
