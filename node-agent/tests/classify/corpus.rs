//! The labelled transcripts: every label must be met, by the command and by the tailer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tidings_node::classify::{FileClassification, Verdict, classify_file};
use tidings_protocol::Catalog;

use crate::support::{Root, read_all, skipped, tailer_at_start};

#[derive(Deserialize)]
struct Labels {
    tool: String,
    human: BTreeSet<u64>,
    ambiguous: Vec<Ambiguous>,
    #[serde(default)]
    groups: Vec<BTreeSet<u64>>,
    scored: bool,
}

#[derive(Deserialize)]
struct Ambiguous {
    line: u64,
}

fn corpus() -> Option<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let found = [other, dir].into_iter().find(|dir| dir.is_dir());
    if found.is_none() {
        skipped("the labelled corpus is not beside the workspace");
    }
    found
}

fn labels(corpus: &Path) -> BTreeMap<String, Labels> {
    let text = std::fs::read(corpus.join("labels.json")).expect("labels");
    serde_json::from_slice(&text).expect("labels")
}

fn catalog_of(tool: &str) -> Option<Catalog> {
    match tool {
        "Claude Code" => Some(Catalog::Claude),
        "Codex" => Some(Catalog::Codex),
        "OpenClaw" | "Pi" => Some(Catalog::Openclaw),
        _ => None,
    }
}

fn human_lines(found: &FileClassification) -> BTreeSet<u64> {
    let human = found.records.iter().filter(|r| r.verdict == Verdict::Human);
    human.map(|record| record.line).collect()
}

/// Says what differs from the labels, if anything.
fn compare(name: &str, labels: &Labels, human: &BTreeSet<u64>) -> Vec<String> {
    let open: BTreeSet<u64> = labels.ambiguous.iter().map(|a| a.line).collect();
    let mut wrong = Vec::new();
    for line in labels.human.difference(human) {
        wrong.push(format!("{name}:{line} is human and was missed"));
    }
    for line in human.difference(&labels.human) {
        if !open.contains(line) {
            wrong.push(format!("{name}:{line} is not human and was counted"));
        }
    }
    for group in &labels.groups {
        let count = group.intersection(human).count();
        if count != 1 {
            wrong.push(format!(
                "{name}: {count} of the group {group:?} count, not one"
            ));
        }
    }
    wrong
}

#[test]
fn every_label_of_the_corpus_is_met() {
    let Some(corpus) = corpus() else { return };
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (name, labels) in labels(&corpus) {
        let path = corpus.join(&name);
        let catalog = catalog_of(&labels.tool);
        let found = classify_file(&path, None).expect("classify");
        if !labels.scored {
            continue;
        }
        if found.catalog != catalog {
            wrong.push(format!("{name} was taken for {:?}", found.catalog));
        }
        let by_name = classify_file(&path, catalog).expect("classify");
        if by_name.records != found.records && catalog.is_some() {
            wrong.push(format!("{name} differs with its catalog given"));
        }
        wrong.extend(compare(&name, &labels, &human_lines(&found)));
        compared += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 80, "only {compared} files compared");
}

#[test]
fn the_tailer_finds_the_same_turns_as_the_command() {
    let Some(corpus) = corpus() else { return };
    let root = Root::at(&corpus);
    for (name, labels) in labels(&corpus) {
        let Some(catalog) = catalog_of(&labels.tool) else {
            continue;
        };
        let path = corpus.join(&name);
        let found = classify_file(&path, Some(catalog)).expect("classify");
        let expected: BTreeSet<(u64, u64, &str)> = found
            .records
            .iter()
            .filter(|record| record.verdict == Verdict::Human)
            .map(|record| (record.byte_start, record.byte_end, record.rule))
            .collect();
        let pages = read_all(&mut tailer_at_start(catalog, &path), &root);
        let turns = pages.iter().flat_map(|page| &page.turns);
        let turns: Vec<_> = turns
            .map(|turn| (turn.byte_start, turn.byte_end, turn.rule.as_str()))
            .collect();
        assert_eq!(turns.len(), expected.len(), "{name}");
        assert_eq!(
            turns.into_iter().collect::<BTreeSet<_>>(),
            expected,
            "{name}"
        );
    }
}
