//! A gateway that asks for what is not below the roots.

use std::collections::HashSet;

use tidings_protocol::Marker;
use tidings_protocol::session_api::ErrorType;

use super::*;

/// A transcript below the roots' parent and outside of every root, and the ways to name it:
/// thread and path.
fn secrets(bench: &Bench) -> Vec<(&'static str, PathBuf)> {
    let secret = bench.path("elsewhere/secret.jsonl");
    fs::create_dir_all(secret.parent().expect("a parent")).expect("directories");
    append(&secret, &human("secret"));
    let project = bench.path("claude/project");
    fs::create_dir_all(&project).expect("directories");
    std::os::unix::fs::symlink(&secret, project.join("linked.jsonl")).expect("a link");
    std::os::unix::fs::symlink(bench.path("elsewhere"), bench.path("claude/through"))
        .expect("a link");
    vec![
        ("secret", secret),
        ("secret", bench.path("claude/../elsewhere/secret.jsonl")),
        ("linked", project.join("linked.jsonl")),
        ("secret", bench.path("claude/through/secret.jsonl")),
        (
            "../../elsewhere/secret",
            bench.path("claude/project/../../elsewhere/secret.jsonl"),
        ),
        ("../../etc/passwd", PathBuf::from("../../etc/passwd")),
        ("passwd", PathBuf::from("/etc/passwd")),
        ("passwd", PathBuf::from("/proc/self/environ")),
        ("", PathBuf::new()),
    ]
}

#[tokio::test]
async fn a_link_to_a_file_outside_the_roots_is_never_read() {
    let mut bench = Bench::start(SWEEPING).await;
    let honest = bench.old_file("claude/p/honest.jsonl");
    bench.connect(64);
    let followed = bench.adopt(&honest).await;
    let mut hostile = Vec::new();
    for (thread, path) in secrets(&bench) {
        let Ok(thread_id) = ThreadId::parse(thread) else {
            continue;
        };
        bench.gateway.last_link += 1;
        let link = Link {
            link: LinkId(bench.gateway.last_link),
            revision: 1,
            catalog: Catalog::Claude,
            thread_id,
            path: path.to_string_lossy().into_owned(),
            marker: Marker::at_start(0),
            echo: Echo::default(),
            last_look: Look::Good,
        };
        hostile.push(link.link);
        bench.gateway.links.insert(link.link, link.clone());
        bench.follower.link(link);
    }
    // Each is looked at and found wanting; then an honest one goes on as ever.
    append(&honest, &human("mine"));
    let mut refused = HashSet::new();
    while refused.len() < hostile.len() || bench.gateway.turns(followed).is_empty() {
        let report = bench.report().await;
        if hostile.contains(&report.link) {
            assert!(
                matches!(report.outcome, Outcome::Inconclusive(_)),
                "{report:?}"
            );
            assert_eq!((report.marker.offset, report.size), (0, 0), "{report:?}");
            refused.insert(report.link);
        }
        bench.apply(&report);
    }
}

#[tokio::test]
async fn a_thread_outside_the_roots_is_not_opened_and_not_listed() {
    let bench = Bench::start(EVENTS_ONLY).await;
    for (thread, _) in secrets(&bench) {
        let Ok(thread_id) = ThreadId::parse(thread) else {
            continue;
        };
        for catalog in Catalog::ALL {
            let wanted = OpenThread {
                catalog,
                thread_id: thread_id.clone(),
            };
            let error = bench.follower.open_thread(wanted).await;
            let error = error.expect_err("it is outside");
            assert_eq!(error.error_type, ErrorType::NotFound, "{thread}: {error}");
        }
    }
    let page = CatalogPage {
        limit: 100,
        titles: true,
        ..CatalogPage::default()
    };
    assert_eq!(bench.follower.catalog_page(page).await.threads, []);
}
