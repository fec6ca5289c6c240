//! Each rule with a transcript of its own: `fixtures/<catalog>/<verdict>/<rule>.<behaviour>.jsonl`
//! is named for what its last record is; of a rule that decides about a record afterwards, for
//! the last that it decides about.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tidings_node::classify::{ClassifiedRecord, classify_file};
use tidings_protocol::Catalog;

use crate::support::{LATER, Root, page, probe, read_all, tailer_at_start};

/// A fixture and what its name says.
struct Fixture {
    path: PathBuf,
    catalog: Catalog,
    verdict: String,
    rule: String,
}

#[test]
fn every_fixture_is_judged_as_its_name_says() {
    for fixture in fixtures() {
        let found = classify_file(&fixture.path, Some(fixture.catalog)).expect("classify");
        let record = found
            .records
            .iter()
            .rfind(|record| record.rule == fixture.rule);
        let shown = fixture.path.display();
        let record = record.unwrap_or_else(|| panic!("{shown}: {:#?}", found.records));
        assert_eq!(verdict(record), fixture.verdict, "{shown}");
        let decided_afterwards = fixture.rule == "duplicate-of-event";
        let is_last = found.records.last() == Some(record);
        assert!(
            is_last || decided_afterwards,
            "{shown}: {:#?}",
            found.records
        );
    }
}

#[test]
fn every_fixture_is_judged_alike_by_the_command_and_the_tailer() {
    for fixture in fixtures() {
        // As it would stand in a root: the name of a fixture is none of a sub-agent's.
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("thread.jsonl");
        fs::copy(&fixture.path, &path).expect("a copy");
        let root = Root::at(dir.path());
        let mut tailer = tailer_at_start(fixture.catalog, &path);
        let pages = read_all(&mut tailer, &root);
        let turns = pages.iter().flat_map(|page| &page.turns);
        let mut turns: Vec<u64> = turns.map(|turn| turn.byte_start).collect();
        turns.sort_unstable();
        let found = classify_file(&path, Some(fixture.catalog)).expect("classify");
        let humans = found.records.iter().filter(|r| verdict(r) == "human");
        let humans: Vec<u64> = humans.map(|record| record.byte_start).collect();
        assert_eq!(turns, humans, "{}", fixture.path.display());
        let again = page(tailer.read(&probe(&root, LATER)));
        assert!(again.turns.is_empty(), "{}", fixture.path.display());
    }
}

#[test]
fn every_rule_that_the_sources_name_has_a_fixture() {
    let known: BTreeSet<String> = fixtures().into_iter().map(|f| f.rule).collect();
    // The first says that no rule has decided yet, the second that no program is known.
    let beside = ["waiting", "unknown-format"].map(str::to_owned);
    let named: BTreeSet<String> = rules_in(&at("src/classify"));
    assert!(named.len() > 30, "{named:?}");
    let missing: Vec<_> = named
        .difference(&known)
        .filter(|r| !beside.contains(r))
        .collect();
    assert!(missing.is_empty(), "no fixture for {missing:?}");
}

fn fixtures() -> Vec<Fixture> {
    let mut fixtures = Vec::new();
    for catalog in Catalog::ALL {
        for verdict in ["human", "not_human", "unclassified"] {
            let folder = at("tests/fixtures").join(catalog.as_str()).join(verdict);
            for path in files(&folder) {
                let name = path.file_name().expect("a name").to_string_lossy();
                let (rule, _) = name.split_once('.').expect("a rule and a behaviour");
                fixtures.push(Fixture {
                    rule: rule.to_owned(),
                    catalog,
                    verdict: verdict.to_owned(),
                    path: path.clone(),
                });
            }
        }
    }
    assert!(fixtures.len() > 90, "{} fixtures", fixtures.len());
    fixtures
}

fn verdict(record: &ClassifiedRecord) -> String {
    let verdict = serde_json::to_value(record.verdict).expect("json");
    verdict.as_str().expect("a name").to_owned()
}

/// The rules that are named where a ruling is made.
fn rules_in(folder: &Path) -> BTreeSet<String> {
    let mut rules = BTreeSet::new();
    for path in files(folder) {
        if path.is_dir() {
            rules.extend(rules_in(&path));
            continue;
        }
        let source = fs::read_to_string(&path).expect("a source");
        for made in [
            "Ruling::human(\"",
            "Ruling::not(\"",
            "Ruling::unclassified(\"",
        ] {
            let named = source.split(made).skip(1);
            let rule = |rest: &str| rest.split_once('"').map(|(rule, _)| rule.to_owned());
            rules.extend(named.filter_map(rule));
        }
    }
    rules
}

/// What is in a folder, in order; nothing where there is none.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
