//! The gateway's own deliveries are not human messages.

use std::time::Duration;

use tidings_node::classify::echo_digest;
use tidings_protocol::Catalog;
use tidings_protocol::report::{Delivery, Echo};

use crate::support::{DAY, Followed, page, prompt, stamp};

const KEY: &[u8] = b"the link's own key";

fn echo(deliveries: &[(u64, &str, i64)]) -> Echo {
    let delivery = |(id, text, ms): &(u64, &str, i64)| Delivery {
        id: *id,
        digest: echo_digest(KEY, &[text]),
        at: DAY + ms,
    };
    Echo {
        key: KEY.to_vec(),
        deliveries: deliveries.iter().map(delivery).collect(),
        told_at: None,
    }
}

/// The ids of the turns and the deliveries that were echoed.
fn read(file: &mut Followed) -> (Vec<String>, Vec<u64>) {
    let (mut turns, mut echoed) = (Vec::new(), Vec::new());
    loop {
        let page = page(file.look());
        turns.extend(page.turns.into_iter().filter_map(|turn| turn.record_id));
        echoed.extend(page.echoed);
        if !page.more {
            return (turns, echoed);
        }
    }
}

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[test]
fn a_delivered_text_is_an_echo_however_its_blanks_are_written() {
    let mut file = Followed::adopted("");
    file.tailer
        .set_echo(echo(&[(7, "please  look\nat this", 0)]));
    file.append(
        prompt("a", "  please look at   this ", 5) + &prompt("b", "Please look at this", 6),
    );
    assert_eq!(read(&mut file), (ids(&["b"]), vec![7]));
}

#[test]
fn each_delivery_suppresses_one_turn_and_the_pages_agree_when_read_again() {
    let mut file = Followed::adopted("");
    file.tailer.set_echo(echo(&[(1, "go", 0), (2, "go", 0)]));
    let start = file.tailer.marker().clone();
    file.append(prompt("a", "go", 1) + &prompt("b", "go", 2) + &prompt("c", "go", 3));
    let expected = (ids(&["c"]), vec![1, 2]);
    assert_eq!(read(&mut file), expected);
    file.tailer.rewind(start, file.path.clone());
    assert_eq!(read(&mut file), expected);

    // The gateway has heard of them and sends what is still open: nothing.
    file.tailer.set_echo(echo(&[]));
    file.append(prompt("d", "go", 4));
    assert_eq!(read(&mut file), (ids(&["d"]), vec![]));
}

#[test]
fn a_delivery_suppresses_nothing_older_than_itself() {
    let mut file = Followed::adopted("");
    file.tailer.set_echo(echo(&[(1, "go", 1_000)]));
    file.append(prompt("before", "go", 999));
    assert_eq!(read(&mut file), (ids(&["before"]), vec![]));
    file.append(prompt("after", "go", 1_000));
    assert_eq!(read(&mut file), (ids(&[]), vec![1]));
}

#[test]
fn history_that_a_rewrite_brings_back_uses_up_no_delivery() {
    let mut file = Followed::adopted("");
    let talk = prompt("a", "go", 1) + &prompt("b", "x", 2);
    file.append(&talk);
    assert_eq!(read(&mut file).0.len(), 2);
    file.tailer.set_echo(echo(&[(1, "go", 0)]));
    file.replace(
        prompt("a", "go", 1) + &prompt("c", "y", 3) + &prompt("b", "x", 2) + &prompt("d", "go", 4),
    );
    assert_eq!(read(&mut file), (ids(&[]), vec![1]));
}

#[test]
fn only_the_surviving_blocks_are_compared() {
    let mut file = Followed::adopted("");
    file.tailer.set_echo(echo(&[(1, "one two", 0)]));
    let line = serde_json::json!({
        "type": "user", "uuid": "a", "timestamp": stamp(1), "message": {"content": [
            {"type": "text", "text": "<ide_opened_file>x</ide_opened_file>"},
            {"type": "text", "text": " one"}, {"type": "image"}, {"type": "text", "text": "two "},
        ]},
    });
    file.append(format!("{line}\n"));
    assert_eq!(read(&mut file), (ids(&[]), vec![1]));
}

fn operation(operation: &str, content: Option<&str>, ms: i64) -> String {
    let mut line = serde_json::json!({
        "type": "queue-operation", "operation": operation, "timestamp": stamp(ms),
    });
    if let Some(content) = content {
        line["content"] = content.into();
    }
    format!("{line}\n")
}

#[test]
fn a_queued_echo_is_one_whichever_record_it_ends_in() {
    let enqueue = operation("enqueue", Some("go"), 1);
    let old = prompt("v", "x", 0).replacen('{', r#"{"version":"2.1.40","#, 1);
    for (name, end) in [
        (
            "dequeue",
            operation("dequeue", None, 2) + &prompt("u", "go", 3),
        ),
        (
            "absorbed",
            operation("remove", Some("go"), 2).replacen(
                '{',
                r#"{"reason":"absorbed_mid_turn","#,
                1,
            ),
        ),
    ] {
        let mut file = Followed::adopted("");
        file.append(&old);
        let _ = read(&mut file);
        file.tailer.set_echo(echo(&[(1, "go", 0)]));
        file.append(&enqueue);
        file.append(&end);
        assert_eq!(read(&mut file), (ids(&[]), vec![1]), "{name}");
    }

    // An old removal does not repeat the text; the held item knows it is an echo.
    let mut file = Followed::adopted("");
    file.append(&old);
    let _ = read(&mut file);
    file.tailer.set_echo(echo(&[(1, "go", 0)]));
    file.append(enqueue + &operation("remove", None, 2));
    assert!(read(&mut file).0.is_empty());
}

#[test]
fn a_waiting_echo_of_codex_is_one_with_and_without_its_event() {
    let item = |text: &str, ms: i64| {
        let line = serde_json::json!({
            "timestamp": stamp(ms), "type": "response_item",
            "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]},
        });
        format!("{line}\n")
    };
    let event = |text: &str, ms: i64| {
        let line = serde_json::json!({
            "timestamp": stamp(ms), "type": "event_msg",
            "payload": {"type": "user_message", "message": text},
        });
        format!("{line}\n")
    };
    let mut file = Followed::adopted_as(Catalog::Codex, "");
    file.tailer.set_echo(echo(&[(1, "go", 0)]));
    file.append(item("go", 1));
    assert_eq!(read(&mut file), (ids(&[]), vec![]), "it waits");
    file.append(event("go", 2));
    assert_eq!(read(&mut file), (ids(&[]), vec![1]));

    let mut file = Followed::adopted_as(Catalog::Codex, "");
    file.tailer.set_echo(echo(&[(1, "go", 0)]));
    file.append(item("go", 1));
    let _ = read(&mut file);
    file.wait(Duration::from_secs(2));
    assert_eq!(read(&mut file), (ids(&[]), vec![1]));
}

#[test]
fn no_text_is_in_what_a_page_shows() {
    let mut file = Followed::adopted("");
    file.tailer.set_echo(echo(&[(1, "other", 0)]));
    file.append(prompt("a", "very secret words", 1));
    let shown = format!("{:?} {:?}", file.look(), file.tailer);
    assert!(!shown.contains("secret"), "{shown}");
}
