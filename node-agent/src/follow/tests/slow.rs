//! Files that do not answer.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex};

use tidings_protocol::marker::FileHint;

use super::*;

/// Places in which some files do not answer until they are let go.
struct Stuck {
    places: Arc<RootPlaces>,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    held: Mutex<HashSet<PathBuf>>,
    opened: Condvar,
}

impl Gate {
    fn hold(&self, path: &Path) {
        self.held.lock().unwrap().insert(path.to_owned());
    }

    fn let_go(&self) {
        self.held.lock().unwrap().clear();
        self.opened.notify_all();
    }

    fn pass(&self, path: &Path) {
        let held = self.held.lock().unwrap();
        let stuck = |held: &mut HashSet<PathBuf>| held.contains(path);
        drop(self.opened.wait_while(held, stuck).unwrap());
    }
}

impl Places for Stuck {
    fn candidates(
        &self,
        catalog: Catalog,
        thread: &ThreadId,
        hint: FileHint,
        not: &Path,
    ) -> Vec<PathBuf> {
        self.places.candidates(catalog, thread, hint, not)
    }

    fn is_inside(&self, catalog: Catalog, path: &Path) -> bool {
        self.gate.pass(path);
        self.places.is_inside(catalog, path)
    }

    fn root_is_as_last_seen(&self, catalog: Catalog, path: &Path) -> bool {
        self.places.root_is_as_last_seen(catalog, path)
    }

    fn found(&self, catalog: Catalog, path: &Path) {
        self.places.found(catalog, path);
    }

    fn is_stored_otherwise(&self, catalog: Catalog, thread: &ThreadId, path: &Path) -> bool {
        self.places.is_stored_otherwise(catalog, thread, path)
    }
}

async fn start(timing: Timing) -> (Bench, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let stuck = gate.clone();
    let bench = Bench::start_with(timing, |places| {
        Arc::new(Stuck {
            places,
            gate: stuck,
        })
    });
    (bench.await, gate)
}

#[tokio::test]
async fn files_that_do_not_answer_hold_up_no_other_and_are_shown() {
    let timing = Timing {
        // Longer than a file that answers takes on a busy machine.
        hang_limit: Duration::from_secs(1),
        ..EVENTS_ONLY
    };
    let (mut bench, gate) = start(timing).await;
    bench.connect(64);
    // More than there are readers.
    let mut stuck = Vec::new();
    for n in 0..FollowerOptions::READERS + 2 {
        let file = bench.old_file(&format!("claude/p/stuck{n}.jsonl"));
        stuck.push((bench.adopt(&file).await, file));
    }
    let file = bench.old_file("claude/p/healthy.jsonl");
    let healthy = bench.adopt(&file).await;
    for (_, file) in &stuck {
        gate.hold(file);
        append(file, &human("a"));
    }
    for turns in 1..=3 {
        append(&file, &human(&format!("h{turns}")));
        bench.apply_until(healthy, turns).await;
    }
    bench.until_idle(healthy).await;
    let links: Vec<LinkId> = stuck.iter().map(|(link, _)| *link).collect();
    let shown = |warning: &String| warning.contains("stuck0.jsonl has not come back");
    let told = tokio::time::timeout(PATIENCE, async {
        loop {
            let presence = bench.follower.presence().await;
            if presence.pending == links && presence.warnings.iter().any(shown) {
                return;
            }
        }
    });
    assert!(told.await.is_ok(), "{:?}", bench.follower.presence().await);

    gate.let_go();
    for (link, _) in &stuck {
        bench.apply_until(*link, 1).await;
        bench.until_idle(*link).await;
        assert_eq!(bench.gateway.turns(*link).len(), 1);
    }
}

#[tokio::test]
async fn a_nudge_has_the_file_of_its_thread_read_at_once() {
    let (mut bench, gate) = start(EVENTS_ONLY).await;
    bench.connect(8);
    let file = bench.old_file("claude/p/s1.jsonl");
    let link = bench.adopt(&file).await;
    let thread = ThreadId::parse("s1").expect("a thread");
    gate.hold(&file);
    bench.follower.nudge(&(Catalog::Claude, thread));
    while bench.follower.links()[0].state != "reading" {
        bench.follower.presence().await;
    }
    gate.let_go();
    bench.until_idle(link).await;
    assert_eq!(bench.report_so_far(), None);
}

#[tokio::test]
async fn an_end_does_not_wait_for_a_file_that_does_not_answer() {
    let (mut bench, gate) = start(EVENTS_ONLY).await;
    bench.connect(8);
    let file = bench.old_file("claude/p/s1.jsonl");
    let link = bench.adopt(&file).await;
    gate.hold(&file);
    append(&file, &human("a"));
    while bench.follower.links()[0].state != "reading" {
        bench.follower.presence().await;
    }
    let ended = tokio::time::timeout(END_LIMIT, bench.follower.finish());
    assert!(ended.await.is_ok());
    gate.let_go();
    assert!(bench.gateway.turns(link).is_empty());
}

#[tokio::test]
async fn what_comes_back_after_its_link_was_renewed_is_forgotten() {
    let (mut bench, gate) = start(EVENTS_ONLY).await;
    bench.connect(8);
    let file = bench.old_file("claude/p/s1.jsonl");
    let link = bench.adopt(&file).await;
    gate.hold(&file);
    let first = append(&file, &human("a"));
    while bench.follower.links()[0].state != "reading" {
        bench.follower.presence().await;
    }
    // Gone on one connection, named again on the next, while its tailer is out.
    let named = bench.gateway.links.remove(&link).expect("the link");
    bench.connect(8);
    bench.gateway.links.insert(link, named);
    bench.connect(8);
    gate.let_go();
    let second = append(&file, &human("b"));
    bench.apply_until(link, 2).await;
    bench.until_idle(link).await;
    assert_eq!(bench.gateway.turns(link), [first, second]);
}
