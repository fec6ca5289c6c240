//! A file that grows: what was appended is reported once, in pages.

use std::time::Duration;

use tidings_node::tail::Tailer;
use tidings_protocol::Catalog;
use tidings_protocol::report::Echo;

use crate::support::{DAY, Followed, page, probe, prompt, reply, stamp};

#[test]
fn an_appended_prompt_is_one_turn_and_says_why() {
    let mut file = Followed::adopted(&(prompt("old", "before", 0) + &reply("r", 1)));
    assert!(file.turns().is_empty(), "what was said before never counts");
    let start = std::fs::metadata(&file.path).expect("file").len();
    file.append(prompt("new", "hello", 1_500));

    let page = page(file.look());
    let [turn] = &page.turns[..] else {
        panic!("one turn, not {}", page.turns.len())
    };
    assert_eq!(turn.record_id.as_deref(), Some("new"));
    assert_eq!(turn.rule, "typed-prompt");
    assert_eq!(turn.at, DAY + 1_500);
    assert_eq!((turn.byte_start, turn.byte_end + 1), (start, page.size));
    assert_eq!(page.marker.offset, page.size);
    assert_eq!((page.more, page.look_again), (false, None));
    assert_eq!(page.path, file.path);
    assert!(file.turns().is_empty(), "and only once");
}

#[test]
fn an_unchanged_file_changes_nothing_in_the_marker() {
    let mut file = Followed::adopted(&prompt("a", "x", 0));
    let first = page(file.look());
    let second = page(file.look());
    assert_eq!(first, second);
    assert_eq!(&second.marker, file.tailer.marker());
}

#[test]
fn a_burst_comes_in_pages_and_every_turn_once_also_when_pages_are_lost() {
    let mut file = Followed::adopted("");
    let burst: String = (0..10_000)
        .map(|n| prompt(&format!("id-{n}"), "go", n))
        .collect();
    file.append(&burst);
    let mut acknowledged = file.tailer.marker().clone();
    let mut turns = Vec::new();
    let mut pages = 0;
    loop {
        let first = page(file.look());
        // The answer never came: the gateway says to go on from what it has.
        file.tailer.rewind(acknowledged.clone(), file.path.clone());
        let again = page(file.look());
        assert_eq!(first, again, "page {pages}");
        assert!(again.turns.len() <= 50);
        turns.extend(again.turns.into_iter().filter_map(|turn| turn.record_id));
        acknowledged = again.marker;
        pages += 1;
        if !again.more {
            break;
        }
    }
    let expected: Vec<_> = (0..10_000).map(|n| format!("id-{n}")).collect();
    assert_eq!(turns, expected);
    assert_eq!(pages, 201, "and one that says that nothing more is there");
}

#[test]
fn more_prompts_on_one_line_than_a_page_holds_are_all_found() {
    let mut file = Followed::adopted("");
    let line: String = (0..120)
        .map(|n| prompt(&format!("id-{n}"), "go", n).trim_end().to_owned())
        .collect();
    file.append(line + "\n");
    let expected: Vec<_> = (0..120).map(|n| format!("id-{n}")).collect();
    assert_eq!(file.turns(), expected);
    assert!(file.turns().is_empty());
}

#[test]
fn a_line_in_pieces_is_read_when_it_is_whole() {
    let mut file = Followed::adopted("");
    let line = prompt("a", "hello", 0);
    for byte in line.trim_end().bytes().collect::<Vec<_>>().chunks(7) {
        file.append(byte);
        assert!(file.turns().is_empty());
    }
    let unsettled = page(file.look());
    assert_eq!(unsettled.look_again, Some(Duration::from_secs(2)));
    file.append("\n");
    assert_eq!(file.turns(), ["a"]);
}

#[test]
fn a_file_that_is_written_in_two_parts_counts_the_same_wherever_it_is_cut() {
    let torn = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"\"{ "#;
    let enqueue = r#"{"type":"queue-operation","operation":"enqueue","content":"later"}"#;
    let absorbed =
        r#"{"type":"queue-operation","operation":"remove","reason":"absorbed_mid_turn"}"#;
    let content = [
        prompt("a", "caf\u{e9}", 1).replace('\n', "\r\n"),
        format!("\u{feff}\0\0{}", prompt("b", "b", 2)),
        format!(
            "null{}{}",
            prompt("c", "c", 3).trim_end(),
            prompt("d", "d", 4)
        ),
        format!("{torn}{}", prompt("e", "e", 5)),
        format!("{torn}\n{enqueue}\n\n{absorbed}\n"),
        reply("r", 6),
        prompt("f", "f", 7),
    ]
    .concat();
    let bytes = content.as_bytes();
    for settles in [false, true] {
        for cut in 0..=bytes.len() {
            let mut file = Followed::adopted("");
            file.append(&bytes[..cut]);
            let mut turns = file.evidence();
            if settles {
                file.wait(Duration::from_secs(2));
                turns.extend(file.evidence());
            }
            file.append(&bytes[cut..]);
            turns.extend(file.evidence());
            let ids: Vec<_> = turns
                .iter()
                .map(|turn| turn.record_id.as_deref().unwrap_or("-"))
                .collect();
            assert_eq!(ids.concat(), "abcde-f", "cut at {cut}, settles: {settles}");
        }
    }
}

#[test]
fn a_last_line_without_its_end_counts_after_two_seconds_and_once() {
    let mut file = Followed::adopted("");
    file.append(prompt("a", "hello", 0).trim_end());
    assert!(file.turns().is_empty());
    file.wait(Duration::from_millis(1_500));
    let unsettled = page(file.look());
    assert_eq!(unsettled.look_again, Some(Duration::from_millis(500)));
    assert!(unsettled.turns.is_empty());
    file.wait(Duration::from_millis(500));
    assert_eq!(file.turns(), ["a"]);
    assert_eq!(page(file.look()).look_again, None);

    // The line's end comes later, or the next record right behind it.
    file.append("\n");
    assert!(file.turns().is_empty());
    file.append(prompt("b", "more", 1).trim_end());
    file.wait(Duration::from_secs(2));
    assert!(file.turns().is_empty(), "it has just grown");
    file.append(prompt("c", "and more", 2));
    assert_eq!(file.turns(), ["b", "c"]);
}

#[test]
fn a_torn_tail_stays_unread_however_long_it_lies() {
    let mut file = Followed::adopted("");
    let line = prompt("a", "hello", 0);
    let (head, rest) = line.split_at(40);
    file.append(head);
    let _ = file.look();
    file.wait(Duration::from_hours(1));
    let page = page(file.look());
    assert_eq!((page.marker.offset, page.look_again), (0, None));
    file.append(rest);
    assert_eq!(file.turns(), ["a"]);
}

#[test]
fn a_nested_object_at_the_end_of_a_torn_line_is_no_record() {
    let mut file = Followed::adopted("");
    let inner = prompt("inner", "not me", 0);
    file.append(format!(
        r#"{{"type":"progress","data":{}"#,
        inner.trim_end()
    ));
    let _ = file.look();
    file.wait(Duration::from_secs(5));
    assert!(file.turns().is_empty());
    file.append("}\n");
    assert!(file.turns().is_empty());
}

#[test]
fn two_tailers_on_one_file_do_not_know_of_each_other() {
    let mut file = Followed::adopted("");
    let mut other = Tailer::new(
        Catalog::Claude,
        crate::support::thread_of(&file.path),
        file.path.clone(),
        file.tailer.marker().clone(),
        Echo::default(),
    );
    file.append(prompt("a", "x", 0));
    assert_eq!(file.turns(), ["a"]);
    let page = page(other.read(&probe(&file.root, Duration::ZERO)));
    assert_eq!(page.turns.len(), 1);
}

#[test]
fn unknown_values_are_counted_and_notify_nobody() {
    let mut file = Followed::adopted("");
    for n in 0..60 {
        let line = prompt(&format!("id-{n}"), "x", n);
        file.append(line.replacen('{', r#"{"promptSource":"telepathy","#, 1));
    }
    let first = page(file.look());
    let second = page(file.look());
    assert_eq!((first.unclassified, first.more), (50, true));
    assert_eq!((second.unclassified, second.more), (10, false));
    assert!(first.turns.is_empty() && second.turns.is_empty());
}

#[test]
fn the_time_of_a_turn_is_the_records_or_the_files() {
    let modified = 1_700_000_000_123;
    for (json, expected) in [
        (format!(r#""{}""#, stamp(5)), DAY + 5),
        (r#""2026-09-10T00:00:00.0059Z""#.to_owned(), DAY + 5),
        (r#""2026-09-10T00:00:00""#.to_owned(), DAY),
        (r#""2026-09-10T02:00:00+02:00""#.to_owned(), DAY),
        (format!("{}.75", DAY + 3), DAY + 3),
        ("null".to_owned(), modified),
        (r#""yesterday""#.to_owned(), modified),
        (r#""9999-01-01T00:00:00Z""#.to_owned(), modified),
        // A clock that is two months ahead.
        (r#""2027-03-20T00:00:00Z""#.to_owned(), modified),
    ] {
        let mut file = Followed::adopted("");
        let line = prompt("a", "x", 5).replace(&format!(r#""{}""#, stamp(5)), &json);
        file.append(line);
        let time = std::time::UNIX_EPOCH + Duration::from_millis(modified.unsigned_abs());
        let handle = std::fs::File::options().append(true).open(&file.path);
        handle
            .and_then(|file| file.set_modified(time))
            .expect("set the time");
        let at: Vec<_> = file.evidence().iter().map(|turn| turn.at).collect();
        assert_eq!(at, [expected], "{json}");
    }
}

#[test]
fn the_newest_ids_and_times_are_remembered_though_nobody_judged_them() {
    let mut file = Followed::adopted("");
    let lines: String = (0..200).map(|n| reply(&format!("r{n}"), n)).collect();
    file.append(lines + &prompt("p", "x", 150));
    let marker = page(file.look()).marker;
    assert_eq!(marker.records.len(), 64);
    let newest = |id: &str| {
        let id = tidings_protocol::digest::short(id.as_bytes());
        marker.records.contains(id)
    };
    assert!(newest("p") && newest("r199") && newest("r137") && !newest("r136"));
    assert_eq!(marker.human_records.len(), 1);
    assert_eq!(marker.newest_record_at, Some(DAY + 199));
    assert_eq!(marker.carried.facts.version.as_deref(), Some("2.1.250"));
}
