//! Every rule of the specification, as a table of records and what becomes of them.

mod claude;
mod codex;
mod openclaw;
mod queue;

use serde_json::Value;
use tidings_node::classify::{Verdict, classify_file};
use tidings_protocol::Catalog;

/// What becomes of these records in a file of that name: for each one `human: rule`,
/// `not: rule` or `unclassified: rule`.
fn judge_as(catalog: Catalog, name: &str, records: &[Value]) -> Vec<String> {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join(name);
    std::fs::create_dir_all(path.parent().expect("parent")).expect("directory");
    let lines: Vec<_> = records.iter().map(Value::to_string).collect();
    std::fs::write(&path, lines.join("\n")).expect("write");
    let found = classify_file(&path, Some(catalog))
        .expect("classify")
        .records;
    let shown = found.iter().map(|record| {
        let verdict = match record.verdict {
            Verdict::Human => "human",
            Verdict::NotHuman => "not",
            Verdict::Unclassified => "unclassified",
        };
        format!("{verdict}: {}", record.rule)
    });
    shown.collect()
}

fn judge(catalog: Catalog, records: &[Value]) -> Vec<String> {
    judge_as(catalog, "thread.jsonl", records)
}
