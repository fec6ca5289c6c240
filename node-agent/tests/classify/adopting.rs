//! Adoption: what was said before never counts, and what was open then neither.

use std::time::Duration;

use tidings_node::tail::{FirstPrompt, open_at_end, thread_head};
use tidings_protocol::Catalog;

use crate::support::{DAY, Followed, Root, page, prompt, reply, stamp, thread_of};

fn operation(operation: &str, content: &str, ms: i64) -> String {
    let mut line = serde_json::json!({
        "type": "queue-operation", "operation": operation, "content": content,
        "timestamp": stamp(ms),
    });
    if operation == "remove" {
        line["reason"] = "absorbed_mid_turn".into();
    }
    format!("{line}\n")
}

fn attachment(text: &str, ms: i64) -> String {
    let line = serde_json::json!({
        "type": "attachment", "timestamp": stamp(ms),
        "attachment": {"type": "queued_command", "prompt": text, "commandMode": "prompt"},
    });
    format!("{line}\n")
}

fn item(text: &str, ms: i64) -> String {
    let line = serde_json::json!({
        "timestamp": stamp(ms), "type": "response_item",
        "payload": {"role": "user", "content": [{"type": "input_text", "text": text}]},
    });
    format!("{line}\n")
}

#[test]
fn the_marker_stands_behind_the_last_line_and_knows_what_was_there() {
    let talk: String = (0..300)
        .map(|n| prompt(&format!("p{n}"), "x", n * 10) + &reply(&format!("r{n}"), n * 10 + 1))
        .collect();
    let file = Followed::adopted(&(talk.clone() + "{\"type\":\"user\",\"torn"));
    let marker = file.tailer.marker();
    assert_eq!(marker.offset, talk.len() as u64);
    assert_eq!((marker.records.len(), marker.human_records.len()), (64, 64));
    // The records claim a time after the node's clock, and nothing is later than now.
    assert_eq!(marker.newest_record_at, Some(DAY));
    assert_eq!(marker.floor, DAY);
    assert_ne!(marker.file.inode, 0);
    assert_eq!(marker.carried.facts.version.as_deref(), Some("2.1.250"));
    assert!(marker.encode().is_ok());
}

#[test]
fn an_unterminated_prompt_counts_when_it_is_whole() {
    let line = prompt("a", "x", 1);
    let (head, rest) = line.split_at(60);
    let mut file = Followed::adopted(head);
    file.append(rest);
    assert_eq!(file.turns(), ["a"]);
}

#[test]
fn every_record_behind_a_matching_marker_is_new_whatever_time_it_claims() {
    let mut file = Followed::adopted(&prompt("a", "x", 5_000));
    file.append(prompt("old", "x", 1).replace("2026", "2020"));
    assert_eq!(file.turns(), ["old"]);
}

#[test]
fn a_prompt_queued_before_adoption_never_counts_by_itself() {
    for (name, end) in [
        ("removal", operation("remove", "go", 2)),
        ("attachment", attachment("go", 1)),
        ("both", operation("remove", "go", 2) + &attachment("go", 1)),
        (
            "both, the other way round",
            attachment("go", 1) + &operation("remove", "go", 2),
        ),
    ] {
        let mut file = Followed::adopted(&operation("enqueue", "go", 1));
        file.append(end);
        assert!(file.evidence().is_empty(), "{name}");
        file.append(operation("enqueue", "go", 8) + &operation("remove", "go", 9));
        assert_eq!(file.evidence().len(), 1, "{name}: the next one does");
    }
}

#[test]
fn a_prompt_queued_before_adoption_counts_as_the_record_it_becomes() {
    let mut file = Followed::adopted(&operation("enqueue", "go", 1));
    file.append(operation("dequeue", "go", 2) + &prompt("u", "go", 3));
    assert_eq!(file.turns(), ["u"]);
}

#[test]
fn an_item_waiting_at_adoption_never_counts_and_a_later_one_does() {
    let mut file = Followed::adopted_as(Catalog::Codex, &item("before", 1));
    assert_eq!(file.tailer.marker().carried.waiting.len(), 1);
    file.append(item("after", 2));
    let first = page(file.look());
    assert_eq!(
        (first.turns.len(), first.look_again),
        (0, Some(Duration::from_secs(2)))
    );
    file.wait(Duration::from_secs(2));
    let turns = file.evidence();
    assert_eq!(turns.len(), 1);
    assert_eq!(
        (turns[0].rule.as_str(), turns[0].at),
        ("response-item", DAY + 2)
    );
    assert_eq!(turns[0].byte_start, item("before", 1).len() as u64);
}

#[test]
fn a_waiting_item_survives_a_restart_inside_the_marker() {
    let mut file = Followed::adopted_as(Catalog::Codex, "");
    file.append(item("go", 1));
    let marker = page(file.look()).marker;
    file.tailer.rewind(marker, file.path.clone());
    let other = "{\"type\":\"event_msg\",\"payload\":{}}\n";
    file.append(other.repeat(3));
    assert!(file.evidence().is_empty());
    file.append(other);
    assert_eq!(file.evidence().len(), 1, "four more records have followed");
    file.append(item("go", 5) + &other.repeat(4));
    assert_eq!(file.evidence().len(), 1);
}

#[test]
fn a_burst_of_waiting_items_counts_each_once() {
    let mut file = Followed::adopted_as(Catalog::Codex, "");
    let burst: String = (0..130).map(|n| item(&format!("text {n}"), n)).collect();
    file.append(burst);
    let mut turns = file.evidence();
    assert_eq!(turns.len(), 126, "the last four still wait");
    file.wait(Duration::from_secs(2));
    turns.extend(file.evidence());
    turns.dedup_by_key(|turn| turn.byte_start);
    assert_eq!(turns.len(), 130);
}

#[test]
fn adoption_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().expect("directory");
    let root = Root::at(dir.path());
    let path = root.dir.join("nothing.jsonl");
    let error = open_at_end(Catalog::Claude, &thread_of(&path), &path, &root, 0);
    let error = error.expect_err("nothing there").to_string();
    assert!(
        error.contains("nothing.jsonl") && error.contains("not there"),
        "{error}"
    );
}

#[test]
fn a_listing_shows_what_the_program_wrote_and_a_prompt_only_when_asked() {
    let claude = prompt("a", "a secret\nwish", 1).replacen('{', r#"{"cwd":"/one","#, 1)
        + &reply("r", 2).replacen('{', r#"{"cwd":"/two","#, 1)
        + "{\"type\":\"summary\",\"summary\":\"of another session\",\"leafUuid\":\"zz\"}\n"
        + "{\"type\":\"ai-title\",\"aiTitle\":\"Made up\"}\n"
        + "{\"type\":\"custom-title\",\"customTitle\":\"Mine\\nown\"}\n"
        + "{\"type\":\"ai-title\",\"aiTitle\":\"Made up again\"}\n";
    let codex = "{\"type\":\"session_meta\",\"payload\":{\"id\":\"t-1\",\"cwd\":\"/c\"}}\n"
        .to_owned()
        + &item("a secret wish", 1);
    let pi = "{\"type\":\"session\",\"id\":\"t-2\",\"cwd\":\"/p\"}\n".to_owned()
        + "{\"type\":\"session_info\",\"name\":\"Named\"}\n"
        + "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a secret wish\"}}\n";
    for (catalog, content, thread, cwd, title) in [
        (Catalog::Claude, claude, "thread", "/two", Some("Mine own")),
        (Catalog::Codex, codex, "t-1", "/c", None),
        (Catalog::Openclaw, pi, "t-2", "/p", Some("Named")),
    ] {
        let file = Followed::adopted_as(catalog, &content);
        let head = |prompt| thread_head(catalog, &file.path, &file.root, prompt).expect("head");
        let hidden = head(FirstPrompt::Hide);
        assert_eq!(
            hidden
                .thread_id
                .as_ref()
                .map(tidings_protocol::ThreadId::as_str),
            Some(thread)
        );
        assert_eq!(hidden.cwd.as_deref(), Some(cwd));
        assert_eq!(hidden.title.as_deref(), title);
        assert_eq!(hidden.first_prompt, None);
        assert_eq!(hidden.size_bytes, content.len() as u64);
        let shown = head(FirstPrompt::Show);
        assert_eq!(shown.first_prompt.as_deref(), Some("a secret wish"));
        assert!(!format!("{shown:?}").contains("secret"));
    }
}

#[test]
fn a_large_thread_is_listed_from_its_head_and_tail() {
    let middle = reply("r", 1).repeat(20_000);
    let content = prompt("a", "x", 1).replacen('{', r#"{"cwd":"/first","#, 1)
        + &middle
        + "{\"type\":\"custom-title\",\"customTitle\":\"Late\"}\n";
    let file = Followed::adopted(&content);
    let head =
        thread_head(Catalog::Claude, &file.path, &file.root, FirstPrompt::Hide).expect("head");
    assert_eq!(head.title.as_deref(), Some("Late"));
    assert_eq!(head.cwd.as_deref(), Some("/first"));
}
