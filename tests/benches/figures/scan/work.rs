//! The two scans, and the transcript that they go through.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tidings_node::discover::{RootArgument, RootPlaces, RootSet, Surroundings};
use tidings_node::tail::{Probe, Reading, Tailer};
use tidings_protocol::report::Echo;
use tidings_protocol::{Catalog, Marker, ThreadId};

/// One human line in this many lines; the rest are tool calls and results.
pub(crate) const HUMAN_EVERY: u64 = 500;
const THREAD: &str = "5a3d1c9e-7b42-4f0a-9c1d-2e8f6b7a9d10";

/// What the tools of a transcript answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Results {
    /// Whole files: results of 2 to 14 KB, calls of 1 to 3 KB.
    Large,
    /// A few lines: results of 1.5 KB, calls of 1 KB.
    Small,
}

/// A transcript in which an agent works for long and a person speaks now and then.
pub(crate) fn transcript(root: &Path, bytes: u64, results: Results) -> PathBuf {
    let project = root.join("-home-ada-engine");
    std::fs::create_dir_all(&project).expect("a project");
    let path = project.join(format!("{THREAD}.jsonl"));
    let mut file = BufWriter::new(File::create(&path).expect("a transcript"));
    let (mut written, mut at) = (0, 0);
    while written < bytes {
        let line = line(at, results);
        file.write_all(line.as_bytes()).expect("written");
        written += line.len() as u64;
        at += 1;
    }
    file.flush().expect("written");
    path
}

/// So many bytes of what an agent writes with large results while nobody speaks.
pub(crate) fn work_of_an_agent(bytes: usize) -> Vec<u8> {
    let mut work = Vec::with_capacity(bytes + 64 * 1024);
    let at_work = (0_u64..).filter(|at| !at.is_multiple_of(HUMAN_EVERY));
    for at in at_work {
        if work.len() >= bytes {
            break;
        }
        work.extend(line(at, Results::Large).into_bytes());
    }
    work
}

fn line(at: u64, results: Results) -> String {
    let common = format!(
        r#""uuid":"00000000-0000-4000-8000-{at:012x}","timestamp":"2026-11-30T09:00:00.000Z","isSidechain":false,"userType":"external","entrypoint":"cli","cwd":"/home/ada/engine","sessionId":"{THREAD}","version":"2.1.280","gitBranch":"main""#
    );
    if at.is_multiple_of(HUMAN_EVERY) {
        return format!(
            r#"{{"parentUuid":null,"type":"user","message":{{"role":"user","content":"Go on with the next column."}},"promptSource":"typed",{common}}}"#
        ) + "\n";
    }
    let varied = usize::try_from(at * 7 % 13).expect("small");
    let (called, answered) = match results {
        Results::Large => (4 + varied, 10 + 6 * varied),
        Results::Small => (1 + varied % 3, 4 + varied % 5),
    };
    if at.is_multiple_of(2) {
        let input = text(at, called);
        return format!(
            r#"{{"parentUuid":"00000000-0000-4000-8000-{at:012x}",{common},"message":{{"model":"claude-sonnet-5","id":"msg_{at}","type":"message","role":"assistant","content":[{{"type":"tool_use","id":"toolu_{at}","name":"Edit","input":{{"file_path":"/home/ada/engine/src/engine.rs","old_string":"{input}","new_string":"{input}"}}}}],"stop_reason":"tool_use","usage":{{"input_tokens":4,"output_tokens":120}}}},"requestId":"req_{at}","type":"assistant"}}"#
        ) + "\n";
    }
    let output = text(at, answered);
    format!(
        r#"{{"parentUuid":"00000000-0000-4000-8000-{at:012x}",{common},"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"toolu_{at}","type":"tool_result","content":"{output}","is_error":false}}]}},"toolUseResult":{{"stdout":"{output}","stderr":"","interrupted":false}},"sourceToolAssistantUUID":"00000000-0000-4000-8000-{at:012x}"}}"#
    ) + "\n"
}

/// Some lines of a program as a JSON text has them: twenty escapes in a thousand bytes, seven
/// of them quotes.
fn text(at: u64, lines: usize) -> String {
    let lines = (0..lines).map(|line| match line % 4 {
        0 => format!("    let difference_{at} = column[order] - column[order - 1];\\n"),
        1 => "    // A carriage moves by one place, whatever the wheel before it shows, and the\\n"
            .to_owned(),
        2 => "    // barrel turns once for every order of difference that is still to be added.\\n"
            .to_owned(),
        _ => r#"    assert!(difference >= 0, \"the column falls\");\n"#.to_owned(),
    });
    lines.collect()
}

/// How many lines the file has.
pub(crate) fn bare_scan(path: &Path) -> u64 {
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

/// The fast path that ships: the tailer itself, from the start of the file to its end. How
/// many turns it finds.
pub(crate) fn classify(root: &Path, path: &Path) -> usize {
    let roots = [RootArgument {
        catalog: Catalog::Claude,
        directory: root.to_owned(),
    }];
    let roots = RootSet::new(&Surroundings::default(), &roots).expect("a root");
    let places = RootPlaces::new(Arc::new(roots));
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
