//! Scanning and classifying a tool-heavy transcript, beside a bare scan for line ends.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tidings_node::discover::{RootArgument, RootPlaces, RootSet, Surroundings};
use tidings_node::tail::{Probe, Reading, Tailer};
use tidings_protocol::report::Echo;
use tidings_protocol::{Catalog, Marker, ThreadId};
use tidings_tests::Scratch;

use crate::table::Figures;

/// The size of the transcript: larger than any cache.
const BYTES: u64 = 256 * 1024 * 1024;
/// One human line in this many lines; the rest are tool calls and results.
const HUMAN_EVERY: u64 = 500;
/// Runs of each scan, taken in turn.
const RUNS: usize = 7;
const THREAD: &str = "5a3d1c9e-7b42-4f0a-9c1d-2e8f6b7a9d10";

pub(crate) fn scan(figures: &mut Figures) {
    let scratch = Scratch::new();
    let root = scratch.folder("claude");
    let path = transcript(&root);
    let bytes = std::fs::metadata(&path).expect("the transcript").len();
    // Read once, so that both scans find the file in memory.
    let lines = bare_scan(&path);
    let mut pairs: Vec<(Duration, Duration)> = Vec::new();
    let mut turns = 0;
    for _ in 0..RUNS {
        let began = Instant::now();
        assert_eq!(bare_scan(&path), lines);
        let bare = began.elapsed();
        let began = Instant::now();
        turns = classify(&root, &path);
        pairs.push((bare, began.elapsed()));
    }
    assert_eq!(
        turns as u64,
        lines.div_ceil(HUMAN_EVERY),
        "turns of {lines} lines"
    );
    pairs.sort_by_key(|(_, classified)| *classified);
    let (bare, classified) = pairs[RUNS / 2];
    let rate = |time: Duration| {
        #[expect(clippy::cast_precision_loss, reason = "a rate with two digits")]
        let bytes = bytes as f64;
        bytes / time.as_secs_f64() / 1e9
    };
    figures.add(
        "scan + classify a tool-heavy Claude transcript, one core",
        format!("{:.2} GB/s", rate(classified)),
        ">= 2 GB/s",
    );
    figures.add(
        "bare scan for line ends of the same file",
        format!("{:.2} GB/s", rate(bare)),
        "-",
    );
    figures.add(
        "scan + classify, as a part of the bare scan",
        format!("{:.2}", bare.as_secs_f64() / classified.as_secs_f64()),
        ">= 0.4",
    );
}

/// A transcript in which an agent works for long and a person speaks now and then.
fn transcript(root: &Path) -> PathBuf {
    let project = root.join("-home-ada-engine");
    std::fs::create_dir_all(&project).expect("a project");
    let path = project.join(format!("{THREAD}.jsonl"));
    let mut file = BufWriter::new(File::create(&path).expect("a transcript"));
    let output =
        "src/engine.rs:120:    let difference = column[order] - column[order - 1]; ".repeat(40);
    let (mut written, mut at) = (0, 0);
    while written < BYTES {
        let line = line(at, &output);
        file.write_all(line.as_bytes()).expect("written");
        written += line.len() as u64;
        at += 1;
    }
    file.flush().expect("written");
    path
}

fn line(at: u64, output: &str) -> String {
    let common = format!(
        r#""uuid":"00000000-0000-4000-8000-{at:012x}","timestamp":"2026-11-30T09:00:00.000Z","isSidechain":false,"userType":"external","entrypoint":"cli","cwd":"/home/ada/engine","sessionId":"{THREAD}","version":"2.1.280""#
    );
    if at.is_multiple_of(HUMAN_EVERY) {
        return format!(
            r#"{{"type":"user","message":{{"role":"user","content":"Go on with the next column."}},"promptSource":"typed",{common}}}"#
        ) + "\n";
    }
    if at.is_multiple_of(2) {
        return format!(
            r#"{{"type":"assistant","message":{{"id":"msg_{at}","type":"message","role":"assistant","content":[{{"type":"tool_use","id":"toolu_{at}","name":"Grep","input":{{"pattern":"order"}}}}]}},{common}}}"#
        ) + "\n";
    }
    format!(
        r#"{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"toolu_{at}","type":"tool_result","content":"{output}"}}]}},"toolUseResult":{{"stdout":"{output}"}},{common}}}"#
    ) + "\n"
}

fn bare_scan(path: &Path) -> u64 {
    let mut file = File::open(path).expect("the transcript");
    let mut window = vec![0; 1024 * 1024];
    let mut lines = 0;
    loop {
        let read = file.read(&mut window).expect("read");
        if read == 0 {
            return lines;
        }
        lines += memchr::memchr_iter(b'\n', &window[..read]).count() as u64;
    }
}

/// The fast path that ships: the tailer itself, from the start of the file to its end.
fn classify(root: &Path, path: &Path) -> usize {
    let roots = [RootArgument {
        catalog: Catalog::Claude,
        directory: root.to_owned(),
    }];
    let roots = RootSet::new(&Surroundings::default(), &roots).expect("a root");
    let places = RootPlaces::new(std::sync::Arc::new(roots));
    let thread = ThreadId::parse(THREAD).expect("a thread id");
    let mut tailer = Tailer::new(
        Catalog::Claude,
        thread,
        path.to_owned(),
        Marker::at_start(0),
        Echo::default(),
    );
    let mut turns = 0;
    loop {
        let probe = Probe {
            places: &places,
            now: 1_800_000_000_000,
            monotonic: Duration::ZERO,
        };
        let Reading::Page(page) = tailer.read(&probe) else {
            panic!("no page");
        };
        turns += page.turns.len();
        if !page.more {
            return turns;
        }
    }
}
