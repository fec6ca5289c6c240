//! Stores, and what upkeep makes of them.

use std::collections::BTreeSet;

use super::facts::*;
use super::plan::plan;
use crate::config::{Age, ArchiveRetention, HighWater, Maintenance, Size, Switch};
use crate::state::{AgentId, SessionAddress};
use tidings_protocol::{EpochMs, SessionKey};

const DAY: EpochMs = 24 * 60 * 60 * 1_000;
const NOW: EpochMs = 1_000 * DAY;
const UUID: &str = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";

/// `<rest of key> <days since it changed> [n] [a] [g<days since somebody spoke>]`: needed,
/// adopted, a group. Its session id is the rest of its key with `-` for `:`.
fn entry(text: &str) -> EntryFacts {
    let mut words = text.split(' ');
    let rest = words.next().expect("a key");
    let age: EpochMs = words.next().expect("an age").parse().expect("days");
    let key = if rest.starts_with("cron:") {
        rest.to_owned()
    } else {
        format!("agent:main:{rest}")
    };
    let agent = AgentId::parse("main").expect("agent");
    let key = SessionKey::parse(&key).expect("a key");
    let id = rest.replace(':', "-");
    let mut facts = EntryFacts {
        session: SessionAddress::resolve(key, &agent).expect("address"),
        transcript: Some(format!("{id}.jsonl")),
        session_id: id,
        updated_at: NOW - age * DAY,
        last_interaction_at: NOW - age * DAY,
        chat_type: None,
        is_needed: false,
        is_adopted: false,
    };
    for word in words {
        match word.split_at(1) {
            ("n", "") => facts.is_needed = true,
            ("a", "") => facts.is_adopted = true,
            ("g", days) => {
                let days: EpochMs = days.parse().expect("days");
                facts.chat_type = Some("group".to_owned());
                facts.last_interaction_at = NOW - days * DAY;
            }
            other => panic!("{other:?}"),
        }
    }
    facts
}

/// `<name> <bytes> <days since it changed>`
fn file(text: &str) -> FileFacts {
    let words: Vec<&str> = text.split(' ').collect();
    FileFacts {
        name: words[0].to_owned(),
        size: words[1].parse().expect("bytes"),
        modified: NOW - words[2].parse::<EpochMs>().expect("days") * DAY,
    }
}

fn facts(entries: &[&str], files: &[&str]) -> Facts {
    Facts {
        entries: entries.iter().map(|text| entry(text)).collect(),
        files: files.iter().map(|text| file(text)).collect(),
        stuck: BTreeSet::new(),
    }
}

fn settings(change: impl FnOnce(&mut Maintenance)) -> Settings {
    let mut maintenance = Maintenance::default();
    change(&mut maintenance);
    Settings {
        maintenance,
        cron_retention: Age::parse("24h"),
    }
}

/// Each action as `<reason> <rest of key or file>[: files]`.
fn shown(plan: &Plan) -> Vec<String> {
    let names = |files: &[FileFacts]| {
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        names.join(" ")
    };
    let show = |action: &Action| match action {
        Action::Entry {
            session,
            files,
            reason,
            ..
        } => {
            let key = session.key().as_str();
            let rest = key.strip_prefix("agent:main:").unwrap_or(key);
            let files = names(files);
            let separator = if files.is_empty() { "" } else { ": " };
            format!("{} {rest}{separator}{files}", reason.as_str())
        }
        Action::File { file, reason } => format!("{} {}", reason.as_str(), file.name),
    };
    plan.actions.iter().map(show).collect()
}

/// The store after the plan has been done.
fn after(facts: &Facts, plan: &Plan) -> Facts {
    let mut left = facts.clone();
    for action in &plan.actions {
        if let Action::Entry { session, .. } = action {
            left.entries.retain(|entry| entry.session != *session);
        }
        left.files.retain(|file| !action.files().contains(file));
    }
    left
}

#[track_caller]
fn check(facts: &Facts, settings: &Settings, occasion: Occasion, expected: &[&str]) {
    let planned = plan(facts, settings, occasion, NOW);
    assert_eq!(shown(&planned), expected);
    let left = after(facts, &planned);
    let again = plan(&left, settings, occasion, NOW);
    assert_eq!(
        shown(&again),
        Vec::<String>::new(),
        "a second run finds nothing"
    );
    for kept in facts.entries.iter().filter(|entry| entry.is_needed) {
        assert!(left.entries.contains(kept), "{kept:?}");
    }
}

#[test]
fn entries_go_with_their_files_when_they_did_not_change_for_long() {
    let facts = facts(
        &[
            "old 31",
            "young 29",
            "edge 30",
            "needed 99 n",
            "group 40 g10",
            "dead 40 g35",
        ],
        &[
            "old.jsonl 10 31",
            "old-topic-7.jsonl 10 31",
            "old.trajectory.jsonl 5 31",
            "old.checkpoint.1.jsonl 5 31",
            "old.jsonl.reset.x 5 29",
            "young.jsonl 10 29",
            "notes.txt 1 99",
            "sessions.json 9 0",
        ],
    );
    let expected = [
        "pruneAfter dead",
        "pruneAfter old: old-topic-7.jsonl old.checkpoint.1.jsonl old.jsonl \
         old.jsonl.reset.x old.trajectory.jsonl",
    ];
    check(&facts, &settings(|_| {}), Occasion::Usual, &expected);
    check(&facts, &settings(|_| {}), Occasion::Unsure, &[]);
    let long = settings(|m| m.prune_after = Age::parse("90d").expect("days"));
    check(&facts, &long, Occasion::Usual, &[]);
}

#[test]
fn threads_count_as_conversations_of_several_by_their_keys() {
    let mut facts = facts(
        &["slack:channel:c:thread:1 40", "telegram:group:1:topic:2 40"],
        &[],
    );
    for entry in &mut facts.entries {
        entry.last_interaction_at = NOW - DAY;
    }
    check(&facts, &settings(|_| {}), Occasion::Usual, &[]);
    for entry in &mut facts.entries {
        entry.last_interaction_at = NOW - 40 * DAY;
    }
    let planned = plan(&facts, &settings(|_| {}), Occasion::Usual, NOW);
    assert_eq!(planned.actions.len(), 2);
}

#[test]
fn the_oldest_go_where_there_are_too_many_in_batches_or_at_once_when_asked() {
    let limit = |entries| settings(move |m| m.max_entries = entries);
    let facts = facts(
        &["a 5", "b 4", "needed 9 n", "group 8 g8", "c 3", "d 2"],
        &[],
    );
    check(&facts, &limit(5), Occasion::Usual, &[]);
    check(&facts, &limit(5), Occasion::Asked, &["maxEntries a"]);
    check(
        &facts,
        &limit(4),
        Occasion::Usual,
        &["maxEntries a", "maxEntries b"],
    );
    check(
        &facts,
        &limit(1),
        Occasion::Usual,
        &[
            "maxEntries a",
            "maxEntries b",
            "maxEntries c",
            "maxEntries d",
        ],
    );
}

#[test]
fn the_buffer_above_the_limit_is_a_tenth_and_not_more_than_fifty() {
    for (limit, buffer) in [(1, 1), (100, 10), (500, 50), (5_000, 50)] {
        let settings = settings(|m| m.max_entries = limit);
        let entries: Vec<EntryFacts> = (0..=limit + buffer)
            .map(|number| entry(&format!("e{number} 1")))
            .collect();
        let mut facts = Facts {
            entries,
            files: Vec::new(),
            stuck: BTreeSet::new(),
        };
        let gone = |facts: &Facts| plan(facts, &settings, Occasion::Usual, NOW).actions.len();
        assert_eq!(gone(&facts), buffer as usize + 1, "{limit}");
        facts.entries.pop();
        assert_eq!(gone(&facts), 0, "{limit}");
    }
}

#[test]
fn probes_of_models_go_first_under_pressure_only_and_by_their_exact_key() {
    let probe = format!("explicit:model-run-{UUID} 2");
    let young = "explicit:model-run-11111111-2222-3333-4444-555555555555 0";
    let odd = [
        "explicit:model-run-5 9",
        "explicit:other 9",
        "x:explicit:model-run-1 9",
    ];
    let entries = [probe.as_str(), young, odd[0], odd[1], odd[2], "main 9"];
    let facts = facts(&entries, &[]);
    check(&facts, &settings(|_| {}), Occasion::Asked, &[]);
    let gone = format!("modelRun explicit:model-run-{UUID}");
    let limit = settings(|m| m.max_entries = 5);
    check(&facts, &limit, Occasion::Asked, &[&gone]);
    let pressed = settings(|m| m.max_entries = 4);
    let planned = plan(&facts, &pressed, Occasion::Asked, NOW);
    assert_eq!(shown(&planned)[0], gone);
    assert_eq!(planned.actions.len(), 2);
}

#[test]
fn sessions_of_cron_runs_have_a_retention_of_their_own() {
    let facts = facts(
        &["cron:nightly 2", "cron:hourly 0", "cron:running 9 n"],
        &["cron-nightly.jsonl 7 2"],
    );
    let expected = ["cronRetention cron:nightly: cron-nightly.jsonl"];
    check(&facts, &settings(|_| {}), Occasion::Usual, &expected);
    let off = Settings {
        cron_retention: None,
        ..settings(|_| {})
    };
    check(&facts, &off, Occasion::Usual, &[]);
}

#[test]
fn archives_have_a_retention_and_what_no_entry_names_goes_only_when_asked() {
    let files = [
        "main.jsonl 1 99",
        "own.jsonl 1 99",
        "lost.jsonl 1 31",
        "lost-topic-1.jsonl 1 31",
        "fresh.jsonl 1 29",
        "lost.trajectory.jsonl 1 31",
        "gone.jsonl.deleted.x 1 31",
        "main.jsonl.reset.a 1 31",
        "other.jsonl.reset.b 1 31",
        "other.jsonl.reset.c 1 5",
        "held.jsonl 1 31",
        "held.jsonl.lock 1 31",
        "main.jsonl.lock.0a1b 1 31",
        "main.jsonl.lock.2c3d 1 29",
        "notes.txt 1 99",
        "sessions.json.rejected-x 1 99",
    ];
    let mut facts = facts(&["main 1", "elsewhere 1"], &files);
    facts.entries[1].transcript = Some("own.jsonl".to_owned());
    let archives = [
        "resetArchiveRetention main.jsonl.reset.a",
        "resetArchiveRetention other.jsonl.reset.b",
    ];
    check(&facts, &settings(|_| {}), Occasion::Usual, &archives);
    let orphans = [
        "orphan gone.jsonl.deleted.x",
        "orphan lost-topic-1.jsonl",
        "orphan lost.jsonl",
        "orphan lost.trajectory.jsonl",
        "orphan main.jsonl.lock.0a1b",
    ];
    let both = [archives.as_slice(), orphans.as_slice()].concat();
    check(&facts, &settings(|_| {}), Occasion::Asked, &both);
    let off = settings(|m| m.reset_archive_retention = ArchiveRetention::Off);
    check(&facts, &off, Occasion::Asked, &orphans);
    let days = Age::parse("4d").expect("days");
    let brief = settings(|m| m.reset_archive_retention = ArchiveRetention::Age(days));
    let third = "resetArchiveRetention other.jsonl.reset.c";
    check(
        &facts,
        &brief,
        Occasion::Usual,
        &[archives[0], archives[1], third],
    );
}

#[test]
fn a_budget_takes_loose_files_first_then_the_oldest_entries_down_to_the_mark() {
    let files = [
        "a.jsonl 100 3",
        "b.jsonl 100 2",
        "needed.jsonl 100 9",
        "lost.jsonl 50 2",
        "b.jsonl.reset.x 50 1",
        "c.jsonl.deleted.x 50 3",
    ];
    let facts = facts(&["a 3", "b 2", "needed 9 n"], &files);
    let budget = |bytes, mark| {
        settings(move |m| {
            m.max_disk_bytes = Switch::On(Size(bytes));
            m.high_water_bytes = HighWater::Bytes(mark);
        })
    };
    check(&facts, &settings(|_| {}), Occasion::Usual, &[]);
    check(&facts, &budget(450, 400), Occasion::Usual, &[]);
    check(
        &facts,
        &budget(449, 400),
        Occasion::Usual,
        &["maxDiskBytes c.jsonl.deleted.x"],
    );
    check(
        &facts,
        &budget(449, 350),
        Occasion::Usual,
        &["maxDiskBytes c.jsonl.deleted.x", "maxDiskBytes lost.jsonl"],
    );
    check(
        &facts,
        &budget(200, 150),
        Occasion::Unsure,
        &[
            "maxDiskBytes c.jsonl.deleted.x",
            "maxDiskBytes lost.jsonl",
            "maxDiskBytes b.jsonl.reset.x",
            "maxDiskBytes a: a.jsonl",
            "maxDiskBytes b: b.jsonl",
        ],
    );
}

#[test]
fn a_transcript_of_two_entries_stays_for_the_other_one() {
    let mut facts = facts(&["old 31", "young 1"], &["old.jsonl 1 31"]);
    facts.entries[1].transcript = Some("old.jsonl".to_owned());
    check(
        &facts,
        &settings(|_| {}),
        Occasion::Asked,
        &["pruneAfter old"],
    );
}

#[test]
fn entries_without_a_transcript_are_counted_and_kept() {
    let facts = facts(&["here 1", "gone 1", "adopted:x 1 a"], &["here.jsonl 1 1"]);
    let planned = plan(&facts, &settings(|_| {}), Occasion::Asked, NOW);
    assert_eq!((planned.missing, planned.actions.len()), (1, 0));
}

#[test]
fn what_cannot_be_removed_counts_and_another_goes_in_its_place() {
    let files = [
        "a.jsonl.reset.x 100 3",
        "b.jsonl.reset.x 100 2",
        "c.jsonl.reset.x 100 1",
    ];
    let mut facts = facts(&[], &files);
    facts.stuck.insert("a.jsonl.reset.x".to_owned());
    let settings = settings(|m| {
        m.max_disk_bytes = Switch::On(Size(250));
        m.high_water_bytes = HighWater::Bytes(200);
    });
    let expected = ["maxDiskBytes b.jsonl.reset.x"];
    check(&facts, &settings, Occasion::Usual, &expected);
}
