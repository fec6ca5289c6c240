//! Files that are cut, replaced, rewritten or moved: nothing old counts again, nothing new
//! is lost.

use std::fs;

use tidings_node::tail::{Reading, Tailer};
use tidings_protocol::marker::Marker;
use tidings_protocol::report::Echo;
use tidings_protocol::{Catalog, ThreadId};

use crate::support::{Followed, page, probe, prompt, reply, stamp};

/// Prompts `p0`, `p1`… with a reply behind each.
fn talk(count: i64) -> String {
    (0..count)
        .map(|n| {
            prompt(&format!("p{n}"), &format!("text {n}"), n * 10)
                + &reply(&format!("r{n}"), n * 10 + 5)
        })
        .collect()
}

/// A tailer that has read this talk from the start.
fn having_read(content: &str) -> Followed {
    let mut file = Followed::adopted("");
    file.append(content);
    file.turns();
    file
}

#[test]
fn a_file_that_lost_its_last_record_goes_on_counting_behind_it() {
    let mut file = having_read(&talk(10));
    file.replace(talk(9) + &prompt("p9", "text 9", 90));
    assert!(file.turns().is_empty());
    file.append(prompt("new", "hello", 200));
    assert_eq!(file.turns(), ["new"]);
}

#[test]
fn a_file_that_was_cut_in_place_and_grew_again_counts_what_is_new() {
    let mut file = having_read(&talk(10));
    let length = talk(4).len() as u64;
    let handle = fs::File::options().write(true).open(&file.path);
    handle
        .and_then(|handle| handle.set_len(length))
        .expect("cut");
    assert!(file.turns().is_empty());
    file.append(prompt("new", "hello", 200) + &reply("x", 201));
    assert_eq!(file.turns(), ["new"]);
}

#[test]
fn a_file_cut_and_grown_beyond_its_old_size_between_two_looks_counts_what_is_new() {
    let mut file = having_read(&talk(10));
    let news: String = (0..60)
        .map(|n| prompt(&format!("n{n}"), "a longer text than before", 500 + n))
        .collect();
    file.replace(talk(5) + &news);
    let turns = file.turns();
    assert_eq!(turns.len(), 60);
    assert_eq!(turns[0], "n0");
}

#[test]
fn an_emptied_file_starts_anew() {
    let mut file = having_read(&talk(3));
    file.replace("");
    assert!(file.turns().is_empty());
    file.append(prompt("new", "hello", 900));
    assert_eq!(file.turns(), ["new"]);
    file.append(prompt("next", "hello", 100));
    assert_eq!(
        file.turns(),
        ["next"],
        "the bar has fallen: every record is new"
    );
}

#[test]
fn a_rewrite_without_any_known_id_counts_only_what_is_later() {
    let mut file = having_read(&talk(10));
    let renamed = talk(10)
        .replace("\"p", "\"migrated-p")
        .replace("\"r", "\"migrated-r");
    file.replace(renamed + &prompt("new", "hello", 500));
    assert_eq!(file.turns(), ["new"]);
}

#[test]
fn a_record_without_a_time_is_as_old_as_its_file_and_says_nothing_of_the_others() {
    let mut file = having_read(&talk(10));
    let timeless = prompt("odd", "x", 3).replace(&stamp(3), "");
    let old = prompt("old", "x", 20);
    file.replace(
        timeless.clone() + &old + &prompt("new", "hello", 500) + &timeless.replace("odd", "odd2"),
    );
    assert_eq!(file.turns(), ["odd", "new", "odd2"]);
}

#[test]
fn prompts_without_a_time_are_not_lost_when_a_file_is_emptied_or_replaced() {
    let timeless = |id: &str| prompt(id, "x", 3).replace(&stamp(3), "");
    let ancient = |id: &str| prompt(id, "x", 3).replace(&stamp(3), "1970-01-01T00:00:00Z");
    let mut file = having_read(&talk(10));
    file.replace("");
    assert!(file.turns().is_empty());
    file.append(timeless("a"));
    assert_eq!(file.turns(), ["a"]);
    file.append(ancient("b"));
    assert_eq!(file.turns(), ["b"]);
    file.replace(timeless("c") + &timeless("d") + &ancient("e"));
    assert_eq!(file.turns(), ["c", "d", "e"]);
}

#[test]
fn a_clock_that_ran_ahead_does_not_hide_what_is_said_after_a_rewrite() {
    let ahead = prompt("ahead", "x", 3).replace(&stamp(3), "2027-01-15T08:05:00.000Z");
    let mut file = having_read(&ahead);
    // The node's clock stands at 08:00 of that day.
    let fresh = |id: &str| prompt(id, "x", 3).replace(&stamp(3), "2027-01-15T08:00:30.000Z");
    file.replace(fresh("a") + &fresh("b"));
    assert_eq!(file.turns(), ["a", "b"]);
}

#[test]
fn a_file_rewritten_in_pieces_is_one_rewrite() {
    let mut file = having_read(&talk(100));
    let whole = talk(100) + &prompt("new", "hello", 5_000);
    fs::write(&file.path, "").expect("write");
    let mut turns = Vec::new();
    for piece in whole.as_bytes().chunks(2_000) {
        file.append(piece);
        turns.extend(file.turns());
        // A restart in between forgets everything but the marker.
        let marker = Marker::decode(&file.tailer.marker().encode().expect("encode"));
        let thread = crate::support::thread_of(&file.path);
        let (path, marker) = (file.path.clone(), marker.expect("decode"));
        file.tailer = Tailer::new(Catalog::Claude, thread, path, marker, Echo::default());
    }
    assert_eq!(turns, ["new"]);
}

#[test]
fn only_the_floor_decides_where_neither_id_nor_time_is_remembered() {
    let mut file = Followed::adopted("{\"type\":\"mode\"}\n");
    assert!(file.turns().is_empty());
    // The floor is the moment of adoption, the beginning of the day.
    let before = prompt("old", "x", 0).replace("2026-09-10", "2026-09-09");
    file.replace(before + &prompt("new", "hello", 1));
    assert_eq!(file.turns(), ["new"]);
}

#[test]
fn prompts_in_the_page_in_which_a_rewrite_is_seen_are_not_lost_when_it_is_read_again() {
    let mut file = having_read(&talk(30));
    let acknowledged = file.tailer.marker().clone();
    let news: String = (0..120)
        .map(|n| prompt(&format!("n{n}"), "x", 900 + n))
        .collect();
    file.replace(talk(20) + &news);
    let first = page(file.look());
    assert_eq!(first.turns.len(), 50);
    file.tailer.rewind(acknowledged, file.path.clone());
    let again = page(file.look());
    assert_eq!(first, again);
    assert_eq!(file.turns().len(), 70);
}

#[test]
fn a_moved_file_is_found_and_goes_on() {
    let mut file = having_read(&talk(3));
    let moved = file.root.dir.join("elsewhere");
    fs::create_dir(&moved).expect("directory");
    let moved = moved.join("thread.jsonl");
    fs::rename(&file.path, &moved).expect("move");
    file.path.clone_from(&moved);
    file.append(prompt("new", "hello", 500));
    let page = page(file.look());
    assert_eq!(page.path, moved);
    assert_eq!(page.turns.len(), 1);
    assert_eq!(file.tailer.path(), moved);
}

#[test]
fn a_moved_file_wins_over_a_stranger_in_its_old_place() {
    let mut file = having_read(&talk(3));
    let moved = file.root.dir.join("project").join("2026-thread.jsonl");
    fs::rename(&file.path, &moved).expect("move");
    fs::write(&file.path, prompt("stranger", "x", 900)).expect("write");
    let page = page(file.look());
    assert_eq!((page.path, page.turns.len()), (moved, 0));
}

#[test]
fn a_renamed_file_is_found_by_its_inode_if_it_holds_what_it_held() {
    let mut file = having_read(&talk(3));
    let renamed = file.path.with_file_name("other-name.jsonl");
    fs::rename(&file.path, &renamed).expect("rename");
    let first = page(file.look());
    assert_eq!(first.path, renamed);
    fs::write(&renamed, prompt("x", "rewritten under another name", 900)).expect("write");
    let _ = first;
    fs::rename(&renamed, file.path.with_file_name("third-name.jsonl")).expect("rename");
    assert_eq!(
        file.look(),
        Reading::Missing,
        "an inode alone proves nothing"
    );
}

#[test]
fn a_moved_and_rewritten_file_is_read_behind_the_bar() {
    let mut file = having_read(&talk(10));
    let moved = file.root.dir.join("thread.jsonl");
    fs::remove_file(&file.path).expect("remove");
    fs::write(&moved, talk(7) + &prompt("new", "hello", 900)).expect("write");
    file.path.clone_from(&moved);
    assert_eq!(file.turns(), ["new"]);
    assert_eq!(file.tailer.path(), moved);
}

#[test]
fn a_migrated_file_of_pi_counts_nothing_again() {
    let entry = |id: &str, role: &str, ms: i64| {
        let mut line = serde_json::json!({
            "type": "message", "timestamp": stamp(ms),
            "message": {"role": role, "content": format!("{role} {ms}")},
        });
        if !id.is_empty() {
            line["id"] = id.into();
        }
        format!("{line}\n")
    };
    let header = |version: &str| {
        format!(
            "{{\"type\":\"session\"{version},\"id\":\"thread\",\"timestamp\":\"{}\"}}\n",
            stamp(0)
        )
    };
    let old: String = (1..20)
        .map(|n| entry("", if n % 2 == 1 { "user" } else { "assistant" }, n))
        .collect();
    let mut file = Followed::adopted_as(Catalog::Openclaw, "");
    file.append(header("") + &old);
    assert_eq!(file.turns().len(), 10);
    let new: String = (1..20)
        .map(|n| {
            entry(
                &format!("e{n}"),
                if n % 2 == 1 { "user" } else { "assistant" },
                n,
            )
        })
        .collect();
    file.replace(header(",\"version\":3") + &new + &entry("e20", "user", 30));
    assert_eq!(file.turns(), ["e20"]);
}

#[test]
fn a_queued_prompt_open_over_a_rewrite_still_counts_once() {
    let operation = |operation: &str, content: &str, ms: i64| {
        let line = serde_json::json!({
            "type": "queue-operation", "operation": operation, "content": content,
            "timestamp": stamp(ms), "reason": (operation == "remove").then_some("absorbed_mid_turn"),
        });
        format!("{line}\n")
    };
    let held = talk(3) + &operation("enqueue", "and this", 100);
    let mut file = having_read(&held);
    file.replace(held.clone() + " \n" + &operation("remove", "and this", 110));
    let turns = file.evidence();
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].rule, "queue-absorbed");
    file.replace(held + "  \n" + &operation("remove", "and this", 110));
    assert!(file.evidence().is_empty());
}

#[test]
fn a_marker_of_another_thread_is_not_taken_for_this_one() {
    let mut file = having_read(&talk(3));
    let thread = ThreadId::parse("nobody").expect("thread");
    let path = file.path.with_file_name("nobody.jsonl");
    let marker = Marker::at_start(0);
    let mut other = Tailer::new(Catalog::Claude, thread, path, marker, Echo::default());
    let reading = other.read(&probe(&file.root, std::time::Duration::ZERO));
    assert!(matches!(reading, Reading::Inconclusive(_)), "{reading:?}");
    assert!(file.turns().is_empty());
}
