//! What ships agrees with the slow, obvious classifier, on records of every shape and on
//! lines that were damaged in every way.

use std::time::Duration;

use proptest::prelude::*;
use tidings_node::classify::{Verdict, classify_file};
use tidings_protocol::Catalog;

use crate::generate::{Dice, Length, Twins, transcript};
use crate::reference::{Judged, classify};
use crate::support::{LATER, Root, page, probe, read_all, tailer_at_start};

fn catalogs() -> impl Strategy<Value = Catalog> {
    prop::sample::select(&Catalog::ALL[..])
}

/// A file as a message shows it.
fn shown(file: &[u8]) -> String {
    let text = String::from_utf8_lossy(file);
    let lines = text.lines().map(|line| format!("{line:.600}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The command's answer for a file with these bytes, and the tailer's turns.
fn check(catalog: Catalog, file: &[u8]) {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("thread.jsonl");
    std::fs::write(&path, file).expect("write");
    let expected = classify(catalog, file);

    let found = classify_file(&path, Some(catalog)).expect("classify");
    let found: Vec<_> = found
        .records
        .iter()
        .map(|record| Judged {
            line: record.line,
            start: usize::try_from(record.byte_start).expect("small"),
            end: usize::try_from(record.byte_end).expect("small"),
            verdict: record.verdict,
            rule: record.rule,
        })
        .collect();
    assert_eq!(found, expected, "{catalog}\n{}", shown(file));

    let human = expected
        .iter()
        .filter(|judged| judged.verdict == Verdict::Human);
    let mut human: Vec<_> = human.map(|judged| (judged.start, judged.rule)).collect();
    // The tailer reports a record that waited when it is decided.
    human.sort_unstable();
    assert_eq!(turns(catalog, &path, dir.path()), human, "{}", shown(file));
}

fn turns(
    catalog: Catalog,
    path: &std::path::Path,
    dir: &std::path::Path,
) -> Vec<(usize, &'static str)> {
    let root = Root::at(dir);
    let mut tailer = tailer_at_start(catalog, path);
    let pages = read_all(&mut tailer, &root);
    let again = page(tailer.read(&probe(&root, LATER + Duration::from_secs(1))));
    assert!(again.turns.is_empty(), "read twice");
    let turns = pages.into_iter().flat_map(|page| page.turns);
    let mut turns: Vec<_> = turns
        .map(|turn| {
            let rule: &'static str = turn.rule.leak();
            (usize::try_from(turn.byte_start).expect("small"), rule)
        })
        .collect();
    turns.sort_unstable();
    turns
}

proptest! {
    #[test]
    fn every_record_is_judged_as_by_the_reference(
        catalog in catalogs(),
        bytes in prop::collection::vec(any::<u8>(), 0..1_500),
    ) {
        check(catalog, &transcript(&mut Dice::new(&bytes, Twins::Some), catalog, Length::Short));
    }

    #[test]
    fn damaged_lines_are_judged_as_by_the_reference(
        catalog in catalogs(),
        bytes in prop::collection::vec(any::<u8>(), 0..800),
        damage in prop::collection::vec((any::<u16>(), 0..3_u8, prop::sample::select(&b"{}[]\",:\\ 1ux\n\0"[..])), 1..6),
    ) {
        // A damaged record is not told from its twin before a page's end.
        let mut file = transcript(&mut Dice::new(&bytes, Twins::None), catalog, Length::Short);
        for (place, how, byte) in damage {
            let at = usize::from(place) % (file.len() + 1);
            // The reference knows one form of time stamps only.
            let around = &file[at.saturating_sub(26)..file.len().min(at + 26)];
            if around.windows(7).any(|part| part == b"T10:00:") {
                continue;
            }
            match how {
                0 => file.insert(at, byte),
                1 if at < file.len() => file[at] = byte,
                _ if at < file.len() => drop(file.remove(at)),
                _ => file.push(byte),
            }
        }
        check(catalog, &file);
    }
}

proptest! {
    // Each writes and reads some megabytes: one for twenty of the others.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 20))]

    #[test]
    fn lines_longer_than_a_window_are_judged_as_by_the_reference(
        catalog in catalogs(),
        bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        check(catalog, &transcript(&mut Dice::new(&bytes, Twins::None), catalog, Length::Long));
    }
}
