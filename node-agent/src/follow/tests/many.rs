//! Many files and many links.

use tidings_protocol::Marker;

use super::*;

#[tokio::test]
async fn ten_thousand_files_and_a_thousand_links_are_followed_and_then_there_is_silence() {
    const FILES: u64 = 10_000;
    const LINKS: u64 = 1_000;
    let timing = Timing {
        first_sweep: Duration::from_millis(500),
        sweep: Duration::from_millis(500),
        ..EVENTS_ONLY
    };
    let mut bench = Bench::start(timing).await;
    for project in 0..100 {
        fs::create_dir(bench.path(&format!("claude/p{project}"))).expect("a directory");
    }
    let file_of = |n: u64| format!("claude/p{}/s{n}.jsonl", n % 100);
    for n in 0..FILES {
        fs::write(bench.path(&file_of(n)), reply("r")).expect("write");
    }
    for n in 0..LINKS {
        let path = bench.path(&file_of(n * 10));
        let link = Link {
            link: LinkId(n),
            revision: 1,
            catalog: Catalog::Claude,
            thread_id: ThreadId::parse(&format!("s{}", n * 10)).expect("a thread"),
            path: path.to_str().expect("a path").to_owned(),
            marker: Marker::at_start(0),
            echo: Echo::default(),
            last_look: Look::Good,
        };
        bench.gateway.links.insert(link.link, link);
    }
    bench.connect(8);
    let sweeps = bench.follower.presence().await.sweeps;
    while bench.follower.presence().await.sweeps < sweeps + 2 {}
    assert_eq!(bench.report_so_far(), None, "quiet progress waits");
    // In between, whoever speaks is heard.
    for n in [7, 999, 500] {
        append(&bench.path(&file_of(n * 10)), &human("h"));
        bench.apply_until(LinkId(n), 1).await;
    }
    let page = CatalogPage {
        limit: 200,
        ..CatalogPage::default()
    };
    let page = bench.follower.catalog_page(page).await;
    assert_eq!((page.threads.len(), page.more), (200, true));
    assert_eq!(page.threads[0].thread_id.as_str(), "s5000");
    assert_eq!(bench.follower.warnings(), [""; 0]);
}
