//! Scanning and classifying a tool-heavy transcript, beside a bare scan for line ends.

mod instructions;
mod work;

use std::time::Duration;

use tidings_tests::{Scratch, time_on_cpu};

use crate::spec::{Comparison, Figure};
use crate::table::Figures;
use work::{HUMAN_EVERY, Results, bare_scan, classify, transcript};

pub(crate) use instructions::{alone, instructions};
pub(crate) use work::work_of_an_agent;

/// The size of the transcript: larger than any cache.
const BYTES: u64 = 256 * 1024 * 1024;
/// Runs of each scan, taken in turn. The fastest counts: whatever else the machine does can
/// only make one slower. Counted is the time on a processor, not the time in which others
/// were on it.
const RUNS: usize = 15;

/// What is measured of a transcript.
struct Names {
    rate: &'static str,
    bare: &'static str,
    ratio: &'static str,
}

pub(crate) fn scan(figures: &mut Figures) {
    let large = Names {
        rate: "scan + classify a tool-heavy Claude transcript, one core",
        bare: "bare scan for line ends of the same file",
        ratio: "scan + classify, as a part of the bare scan",
    };
    let small = Names {
        rate: "scan + classify one with small results (1.3 KB a line)",
        bare: "bare scan of the same file",
        ratio: "scan + classify, as a part of that",
    };
    for (results, names) in [(Results::Large, large), (Results::Small, small)] {
        measure(results, &names, figures);
    }
}

fn measure(results: Results, names: &Names, figures: &mut Figures) {
    let scratch = Scratch::new();
    let root = scratch.folder("claude");
    let path = transcript(&root, BYTES, results);
    let bytes = std::fs::metadata(&path).expect("the transcript").len();
    // Read once, so that both scans find the file in memory.
    let lines = bare_scan(&path);
    let (mut bare, mut classified) = (Duration::MAX, Duration::MAX);
    for _ in 0..RUNS {
        let began = time_on_cpu();
        assert_eq!(bare_scan(&path), lines);
        bare = bare.min(time_on_cpu().saturating_sub(began));
        let began = time_on_cpu();
        let turns = classify(&root, &path) as u64;
        classified = classified.min(time_on_cpu().saturating_sub(began));
        assert_eq!(turns, lines.div_ceil(HUMAN_EVERY), "turns of {lines} lines");
    }
    let rate = |time: Duration| {
        #[expect(clippy::cast_precision_loss, reason = "a rate with two digits")]
        let bytes = bytes as f64;
        bytes / time.as_secs_f64() / 1e9
    };
    let shown = |time| format!("{:.2} GB/s", rate(time));
    figures.add(names.rate, shown(classified), ">= 2 GB/s");
    figures.add(names.bare, shown(bare), "-");
    let ratio = bare.as_secs_f64() / classified.as_secs_f64();
    figures.add(names.ratio, format!("{ratio:.2}"), ">= 0.4");
    if results == Results::Large {
        let bare_rate = || Comparison::with(names.bare, rate(bare), "GB/s");
        figures.result(Figure::ScanRatio, ratio, bare_rate());
        figures.result(Figure::ScanRate, rate(classified), bare_rate());
    }
}
