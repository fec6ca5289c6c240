//! What is summarised and what is kept.

use super::super::plan::{Plan, Trigger, plan};
use super::view;
use crate::config::{Compaction, KeepRecent};
use crate::turns::budget::Budget;
use crate::turns::tokens;

fn kept(tokens: u64) -> Compaction {
    Compaction {
        keep_recent_tokens: KeepRecent::Explicit(tokens),
        ..Compaction::default()
    }
}

#[track_caller]
fn check(text: &str, trigger: Trigger, settings: &Compaction, expected: Option<(usize, &str)>) {
    let budget = Budget::new(1_000_000, settings);
    let found = plan(&view(text), trigger, settings, budget);
    let found = found.map(
        |Plan {
             cut, first_kept, ..
         }| (cut, first_kept.unwrap_or_default()),
    );
    let found = found.as_ref().map(|(cut, first)| (*cut, first.as_str()));
    assert_eq!(found, expected, "{text} {trigger:?}");
}

/// Four messages of 1 000 tokens and a little.
const FOUR: &str = "u1*4000 a1*4000 u2*4000 a2*4000";

#[test]
fn somebody_who_asks_keeps_nothing_unless_a_number_was_configured() {
    let usual = Compaction::default();
    check(FOUR, Trigger::Manual, &usual, Some((4, "")));
    check("u1", Trigger::Manual, &usual, Some((1, "")));
    check("", Trigger::Manual, &usual, None);
    check(FOUR, Trigger::Manual, &kept(1_500), Some((3, "a2")));
    check(FOUR, Trigger::Manual, &kept(20_000), Some((2, "u2")));
    check("u1 a1", Trigger::Manual, &kept(20_000), None);
}

#[test]
fn by_itself_the_newest_is_kept_and_something_is_summarised() {
    for trigger in [Trigger::Threshold, Trigger::Size, Trigger::MidTurn] {
        check(FOUR, trigger, &kept(1_500), Some((3, "a2")));
        check(FOUR, trigger, &kept(2_500), Some((2, "u2")));
        check(FOUR, trigger, &Compaction::default(), Some((2, "u2")));
        check("u1 a1", trigger, &Compaction::default(), None);
    }
}

#[test]
fn after_an_overflow_at_most_half_of_what_overflowed_is_kept() {
    let overflow = |attempted| Trigger::Overflow { attempted };
    let usual = Compaction::default();
    check(FOUR, overflow(1_000_001), &usual, Some((3, "a2")));
    check(FOUR, overflow(3_000_000), &usual, Some((4, "")));
    check(FOUR, overflow(4_000), &kept(500), Some((4, "")));
    check(FOUR, overflow(4_000), &kept(1_500), Some((3, "a2")));
    // One long turn is parted.
    check(
        "u1*4000 a1*400 a2*400 a3*400",
        overflow(4_000),
        &usual,
        Some((1, "a1")),
    );
    for text in [
        FOUR,
        "u1*40 a1*9000 u2*40 a2*40",
        "u1*9000 a1*40 u2*40 a2*40",
    ] {
        for attempted in [10, 5_000, 3_000_000] {
            let view = view(text);
            let budget = Budget::new(1_000_000, &usual);
            let plan = plan(&view, overflow(attempted), &usual, budget).expect("a plan");
            let tail = tokens::sum(view.items[plan.cut..].iter().map(|item| item.tokens));
            assert!(
                tail <= (view.estimate() / 2).min(20_000) && plan.cut > 0,
                "{text}"
            );
        }
    }
}

#[test]
fn in_a_small_window_the_tail_leaves_room_for_a_summary() {
    let settings = Compaction::default();
    let budget = Budget::new(4_000, &settings);
    let plan = plan(&view(FOUR), Trigger::Threshold, &settings, budget).expect("a plan");
    assert_eq!(plan.cut, 4);
}

#[test]
fn a_turn_that_is_parted_is_named_and_no_call_is_without_its_result() {
    let settings = kept(2_500);
    let text = "u1 a1 u2*4000 a2*400>c t2*4000<c a3*4000";
    let budget = Budget::new(1_000_000, &settings);
    let plan = plan(&view(text), Trigger::Threshold, &settings, budget).expect("a plan");
    let expected = Plan {
        cut: 3,
        first_kept: Some("a2".to_owned()),
        split_from: Some(2),
    };
    assert_eq!(plan, expected);
}

#[test]
fn an_entry_without_an_id_is_not_the_first_that_is_kept() {
    let mut view = view(FOUR);
    for at in [2, 3] {
        view.items[at].id = None;
    }
    let settings = kept(2_500);
    let budget = Budget::new(1_000_000, &settings);
    let plan = plan(&view, Trigger::Threshold, &settings, budget).expect("a plan");
    assert_eq!((plan.cut, plan.first_kept), (4, None));
}
