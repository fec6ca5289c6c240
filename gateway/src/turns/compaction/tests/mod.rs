//! Compactions: decided, summarised, and written over real files and a real database.

mod commands;
mod deciding;
mod summaries;
mod writing;

use std::collections::VecDeque;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::request::{Summariser, Summarising, SummaryError, SummaryRequest};
use crate::sessions::transcript::line::{self, Kind};
use crate::turns::view::View;

/// Somebody who summarises as a test says.
#[derive(Default)]
struct Fake {
    // What it answers; once that is used up, `summary <number>`.
    answers: Mutex<VecDeque<Result<String, SummaryError>>>,
    asked: Mutex<Vec<SummaryRequest>>,
}

impl Fake {
    fn answering(answers: &[Result<&str, SummaryError>]) -> Self {
        let own = |answer: &Result<&str, SummaryError>| answer.clone().map(str::to_owned);
        Self {
            answers: Mutex::new(answers.iter().map(own).collect()),
            ..Self::default()
        }
    }

    fn asked(&self) -> Vec<SummaryRequest> {
        self.asked.lock().expect("requests").clone()
    }
}

impl Summariser for Fake {
    fn summarise<'a>(&'a self, request: &'a SummaryRequest) -> Summarising<'a> {
        let mut asked = self.asked.lock().expect("requests");
        asked.push(request.clone());
        let answer = self.answers.lock().expect("answers").pop_front();
        let answer = answer.unwrap_or_else(|| Ok(format!("summary {}", asked.len())));
        Box::pin(async move { answer })
    }
}

/// The lines of a conversation, one entry a word: `u` a person, `a` the model, `t` a result,
/// then its id; `*` and a number makes it so many bytes long. `a…>id` calls, `t…<id` answers.
fn entries(text: &str) -> Vec<Value> {
    let mut parent = Value::Null;
    let mut entries = Vec::new();
    for word in text.split_whitespace() {
        let entry = entry(word, &parent);
        parent = entry["id"].clone();
        entries.push(entry);
    }
    entries
}

fn entry(word: &str, parent: &Value) -> Value {
    let (word, ids) = word.split_at(word.find(['>', '<']).unwrap_or(word.len()));
    let (id, bytes) = word.split_once('*').unwrap_or((word, "40"));
    let text = format!("{id} ").repeat(bytes.parse::<usize>().expect("bytes") / (id.len() + 1));
    let mut content = vec![json!({"type": "text", "text": text})];
    let message =
        match &id[..1] {
            "u" => json!({"role": "user", "content": text}),
            "a" => {
                let calls = ids.split('>').skip(1);
                content.extend(calls.map(
                    |id| json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {}}),
                ));
                json!({"role": "assistant", "content": content})
            }
            "t" => json!({"role": "toolResult", "toolCallId": &ids[1..], "content": content}),
            other => panic!("{other}"),
        };
    json!({
        "type": "message", "id": id, "parentId": parent,
        "timestamp": "2026-12-01T04:00:00.000Z", "message": message,
    })
}

fn view(text: &str) -> View {
    let kinds = entries(text).into_iter().map(|entry| {
        let kind = line::read(entry.to_string().as_bytes())
            .expect("a line")
            .kind;
        (kind, entry)
    });
    let branch: Vec<(Kind, Value)> = kinds.collect();
    View::of_branch(&branch)
}
