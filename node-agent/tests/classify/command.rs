//! What `classify FILE` answers.

use std::fs;

use tidings_node::classify::{ClassifyFileError, classify_file};
use tidings_protocol::Catalog;

use crate::support::prompt;

/// The answer for a file with these bytes, as JSON.
fn answer(content: impl AsRef<[u8]>, catalog: Option<Catalog>) -> serde_json::Value {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("t.jsonl");
    fs::write(&path, content).expect("write");
    let found = classify_file(&path, catalog).expect("classify");
    serde_json::to_value(found).expect("json")
}

#[test]
fn records_are_shown_with_their_places_and_blank_lines_count() {
    let line = prompt("a", "hello", 1);
    let content = format!(
        "\n{}\r\n\nnull{}garbage\n{{\"type\":\"user\",\"torn",
        line.trim_end(),
        line.trim_end()
    );
    let length = line.len() as u64 - 1;
    let expected = serde_json::json!({
        "catalog": "claude",
        "records": [
            {"line": 2, "byteStart": 1, "byteEnd": 1 + length, "verdict": "human",
             "rule": "typed-prompt", "recordId": "a"},
            {"line": 4, "byteStart": length + 4, "byteEnd": length + 8, "verdict": "not_human",
             "rule": "not-an-object"},
            {"line": 4, "byteStart": length + 8, "byteEnd": 2 * length + 8, "verdict": "not_human",
             "rule": "copy", "recordId": "a"},
            {"line": 4, "byteStart": 2 * length + 8, "byteEnd": 2 * length + 15,
             "verdict": "not_human", "rule": "not-json"},
            {"line": 5, "byteStart": 2 * length + 16, "byteEnd": 2 * length + 36,
             "verdict": "not_human", "rule": "incomplete"},
        ],
    });
    assert_eq!(answer(content, None), expected);
}

#[test]
fn what_is_no_object_on_a_line_longer_than_a_window_is_no_record() {
    let filler = "y".repeat(3_000_000);
    let line = prompt("a", "hello", 1);
    let content = format!("[1,{{}}]\"text\"null[]{{\"type\":\"x\",\"y\":\"{filler}\"}}{line}");
    let found = answer(content, Some(Catalog::Claude));
    let records = found["records"].as_array().expect("records");
    let rules: Vec<_> = records.iter().map(|record| &record["rule"]).collect();
    let not = "not-an-object";
    assert_eq!(rules, [not, not, not, not, "record-type", "typed-prompt"]);
}

#[test]
fn a_record_on_a_line_longer_than_a_window_may_nest_as_deep_as_in_one() {
    let million = 1024 * 1024;
    // The record is the first level.
    for (depth, rule) in [
        (900_000, "typed-prompt"),
        (million - 1, "typed-prompt"),
        (million, "not-json"),
    ] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let line = prompt("a", "hello", 1).replacen('{', &format!("{{\"deep\":{deep},"), 1);
        let found = answer(line, Some(Catalog::Claude));
        assert_eq!(found["records"][0]["rule"], rule, "{depth}");
        assert_eq!(found["records"].as_array().map(Vec::len), Some(1));
    }
}

#[test]
fn the_end_of_the_file_is_settled() {
    let line = prompt("a", "hello", 1);
    let found = answer(line.trim_end(), None);
    assert_eq!(found["records"][0]["verdict"], "human");
    let item = r#"{"type":"response_item","payload":{"role":"user","content":"go"}}"#;
    assert_eq!(answer(item, None)["records"][0]["rule"], "response-item");
}

#[test]
fn no_known_programs_records_are_of_unknown_format() {
    assert_eq!(answer("", None), serde_json::json!({"records": []}));
    let found = answer(
        "{\n  \"messages\": [\n    {\"type\": \"user\", \"text\": \"hi\"}\n  ]\n}\n\n",
        None,
    );
    let records = found["records"].as_array().expect("records");
    assert_eq!(records.len(), 6);
    for record in records {
        let verdict = (record["verdict"].as_str(), record["rule"].as_str());
        assert_eq!(verdict, (Some("not_human"), Some("unknown-format")));
    }
    assert!(found.get("catalog").is_none());
}

#[test]
fn a_catalog_that_is_given_is_taken() {
    let found = answer(prompt("a", "hello", 1), Some(Catalog::Codex));
    assert_eq!(found["catalog"], "codex");
    assert_eq!(found["records"][0]["rule"], "record-type");
    let found = answer("{\"x\":1}\n", Some(Catalog::Claude));
    assert_eq!(found["records"][0]["rule"], "record-type");
}

#[test]
fn lines_of_any_length_keep_their_numbers() {
    let long = format!(
        "{{\"type\":\"assistant\",\"uuid\":\"x\",\"x\":\"{}\"}}",
        "y".repeat(2_500_000)
    );
    let torn = format!("{{\"type\":\"assistant\",\"x\":\"{}", "y".repeat(2_500_000));
    let content = format!(
        "{long}\n\n{torn}\n{}{long}{long}\n{}",
        prompt("a", "x", 1),
        prompt("b", "x", 2)
    );
    let found = answer(content, None);
    let records = found["records"].as_array().expect("records").iter();
    let places: Vec<_> = records
        .map(|record| {
            (
                record["line"].as_u64(),
                record["rule"].as_str().expect("rule"),
            )
        })
        .collect();
    let expected = [
        (Some(1), "record-type"),
        (Some(3), "not-json"),
        (Some(4), "typed-prompt"),
        (Some(5), "record-type"),
        (Some(5), "record-type"),
        (Some(6), "typed-prompt"),
    ];
    assert_eq!(places, expected);
}

#[test]
fn what_is_no_file_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().expect("directory");
    let error = classify_file(dir.path(), None).expect_err("a directory");
    assert!(matches!(error, ClassifyFileError::NotRegular { .. }));
    let error = classify_file(&dir.path().join("none"), None).expect_err("nothing");
    assert!(matches!(error, ClassifyFileError::Io { .. }));
    assert!(error.to_string().contains("none"), "{error}");
}
