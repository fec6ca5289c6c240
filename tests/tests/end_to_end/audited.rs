//! The audit of the crash and fault tests can fail: each of its rules notices its damage.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tidings_tests::audit::{DATABASE, RULES, audit, snapshot};
use tidings_tests::{Dice, Gateway, Load, Scratch, Setup, seed, until};

/// Damage, and what must be said about it.
const DAMAGE: &[(&str, &str)] = &[
    (
        "a signal without its head raised",
        "UPDATE sessions SET last_sequence = last_sequence - 1
         WHERE last_sequence = (SELECT max(sequence) FROM events)",
    ),
    (
        "a head without its signal",
        "DELETE FROM events WHERE sequence = (SELECT max(sequence) FROM events)",
    ),
    (
        "a signal that was pruned and is there",
        "UPDATE sessions SET pruned_sequence = 1 WHERE last_sequence > 0",
    ),
    (
        "a dedupe key twice in one session",
        "UPDATE events SET dedupe_key = 'once-0'",
    ),
    (
        "an actor where there is none, or none where there is one",
        "UPDATE events SET actor = NULL WHERE actor_type = 'agent'",
    ),
    (
        "a signal that happened after it was recorded, or more than a day before",
        "UPDATE events SET occurred_at = recorded_at + 1",
    ),
    (
        "a cursor out of order, or beyond its target's head",
        "UPDATE cursors SET material = 1000000",
    ),
    (
        "something material that no notice speaks of",
        "UPDATE cursors SET last_seen = 0, notified = 0 WHERE material > 0",
    ),
    (
        "a material signal that moved no cursor",
        "UPDATE cursors SET last_seen = 0, notified = 0, material = 0",
    ),
    (
        "a cursor that was moved by no material signal",
        "UPDATE cursors SET last_seen = 0,
             notified = (SELECT min(sequence) FROM events WHERE kind = 'compacted'
                         AND session = cursors.target)
         WHERE target IN (SELECT session FROM events WHERE kind = 'compacted')",
    ),
    (
        "a watch by hand whose watcher has no entry",
        "DELETE FROM entries",
    ),
    (
        "evidence without its signal",
        "UPDATE events SET kind = 'goal_changed' WHERE kind = 'human_direct_message'",
    ),
    (
        "an upstream message with more or less evidence than it has turns",
        "DELETE FROM evidence WHERE sequence = (SELECT min(sequence) FROM evidence)",
    ),
    (
        "a turn that was counted twice",
        "INSERT INTO evidence SELECT sequence, turn + 1000, node, catalog, file, byte_start,
             byte_end, record_id, rule, occurred_at FROM evidence LIMIT 1",
    ),
    (
        "a turn that was counted before its link had passed it",
        "UPDATE links SET marker_offset = 0",
    ),
    (
        "a link without its entry, or without the signal that it was adopted",
        "UPDATE events SET payload = NULL WHERE kind = 'adopted'",
    ),
    (
        "an adopted session that has neither a link nor lost its upstream",
        "DELETE FROM links",
    ),
    (
        "a message that was delivered and kept, or neither delivered nor kept",
        "INSERT INTO messages (target, body, sent_at, delivered_at) VALUES (1, 'x', 1, 1)",
    ),
];

#[test]
fn every_rule_of_the_audit_notices_its_damage() {
    let scratch = Scratch::new();
    let state_dir = filled(&scratch);
    let copy = scratch.folder("copy");
    let named: BTreeSet<&str> = DAMAGE.iter().map(|(wrong, _)| *wrong).collect();
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.wrong).collect();
    assert_eq!(named, rules, "each rule has its damage");
    for (wrong, damage) in DAMAGE {
        fs::copy(state_dir.join(DATABASE), copy.join(DATABASE)).expect("a copy");
        assert_eq!(audit(&copy).findings, Vec::<String>::new());
        do_damage(&copy, damage);
        let findings = audit(&copy).findings;
        assert!(
            findings.iter().any(|finding| finding.starts_with(wrong)),
            "{wrong}: {findings:#?}"
        );
    }
}

/// A state directory in which everything is, and all of it well.
fn filled(scratch: &Scratch) -> PathBuf {
    let (claude, codex) = (scratch.folder("claude"), scratch.folder("codex"));
    let setup = Setup::with_local_node(&claude, &codex).quiet();
    let mut gateway = Gateway::start_as(scratch, setup);
    let load = Load::of_callers_and_people(&mut Dice::new(seed()), &claude);
    let running = load.start(&gateway);
    running.work_until(600);
    until("a turn is counted", || {
        let evidence = snapshot(gateway.state_dir()).evidence;
        (!evidence.is_empty()).then_some(())
    });
    let mut load = running.stop();
    let wrong = load.compare_when_recorded(gateway.state_dir());
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(gateway.stop(), 0);
    gateway.state_dir().to_owned()
}

/// Changes rows past every check and index that guards them.
fn do_damage(state_dir: &Path, damage: &str) {
    let conn = Connection::open(state_dir.join(DATABASE)).expect("the copy");
    conn.execute_batch(
        "PRAGMA foreign_keys = OFF;
         PRAGMA ignore_check_constraints = ON;
         DROP INDEX events_by_dedupe_key;",
    )
    .expect("no guards");
    let rows = conn.execute(damage, []).expect("damage");
    assert!(rows > 0, "nothing to damage: {damage}");
}
