//! A line that cannot be human costs no allocation: twice as many of them cost as many.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidings_node::discover::{RootArgument, RootPlaces, RootSet, Surroundings};
use tidings_node::tail::{Probe, Reading, Tailer};
use tidings_protocol::report::Echo;
use tidings_protocol::{Catalog, Marker, ThreadId};
use tidings_tests::Scratch;

/// How many lines of each kind.
const LINES: usize = 8_000;
/// How often the window may grow with a larger file: it doubles up to its limit.
const WINDOW_GROWTH: u64 = 8;

/// The system's allocator, counted.
struct Counted;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static COUNTED: Counted = Counted;

#[expect(
    unsafe_code,
    reason = "an allocator is unsafe by its trait; all is passed on"
)]
// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[test]
fn a_rejected_line_costs_no_allocation() {
    let scratch = Scratch::new();
    for (what, line) in [
        ("a tool's result", result()),
        ("a tool's result with blocks", result_in_blocks()),
        ("a tool's call", r#"{"type":"assistant","uuid":"a","message":{"role":"assistant","content":[{"type":"tool_use","input":{"text":"say \"user\" to the user"}}]}}"#.to_owned()),
        ("progress", r#"{"type":"progress","uuid":"p","data":{"message":{"type":"user","message":{"content":"x"}}}}"#.to_owned()),
        ("a snapshot", r#"{"type":"file-history-snapshot","messageId":"m","snapshot":{}}"#.to_owned()),
    ] {
        let one = allocations(&scratch, &line, LINES);
        let two = allocations(&scratch, &line, 2 * LINES);
        assert!(
            two <= one + WINDOW_GROWTH,
            "{what}: {one} for {LINES} lines, {two} for twice as many"
        );
    }
}

fn result() -> String {
    let output = r#"fn main() {\n    println!(\"user\");\n}\n"#.repeat(10);
    format!(
        r#"{{"parentUuid":"q","isSidechain":false,"type":"user","uuid":"r","timestamp":"2026-11-30T09:00:00.000Z","version":"2.1.280","message":{{"role":"user","content":[{{"tool_use_id":"t","type":"tool_result","content":"{output}"}}]}},"toolUseResult":{{"stdout":"{output}"}}}}"#
    )
}

fn result_in_blocks() -> String {
    r#"{"type":"user","uuid":"r","message":{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"a"}]}]},"toolUseResult":[1,2]}"#.to_owned()
}

/// How often something is allocated while so many of these lines are read.
fn allocations(scratch: &Scratch, line: &str, lines: usize) -> u64 {
    let root = scratch.folder("claude");
    let path = root.join("p").join("thread.jsonl");
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(&path, format!("{line}\n").repeat(lines)).expect("a transcript");
    let given = [RootArgument {
        catalog: Catalog::Claude,
        directory: root,
    }];
    let roots = RootSet::new(&Surroundings::default(), &given).expect("a root");
    let places = RootPlaces::new(Arc::new(roots));
    let mut tailer = tailer(&path);
    let probe = Probe {
        places: &places,
        now: 1_800_000_000_000,
        monotonic: Duration::ZERO,
    };
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let reading = tailer.read(&probe);
    let allocated = ALLOCATIONS.load(Ordering::Relaxed) - before;
    let Reading::Page(page) = reading else {
        panic!("no page");
    };
    assert!(page.turns.is_empty() && !page.more && page.marker.offset == page.size);
    allocated
}

fn tailer(path: &Path) -> Tailer {
    let thread = ThreadId::parse("thread").expect("a thread id");
    let marker = Marker::at_start(0);
    Tailer::new(
        Catalog::Claude,
        thread,
        path.to_owned(),
        marker,
        Echo::default(),
    )
}
