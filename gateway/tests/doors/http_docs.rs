//! The examples of `docs/http.md`, as they stand there.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tidings_gateway::doors::http::HttpLimits;

use crate::served::{Served, connect, speak, watch};
use crate::web::{Web, open};

/// A block of the page.
#[derive(Debug)]
struct Block {
    kind: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(kind) = line.strip_prefix("```") {
            let text: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(Block {
                kind: kind.to_owned(),
                text: text.join("\n"),
            });
        }
    }
    blocks
}

/// The members of a document, and of the first item of each list in it.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), shape(value)))
            .collect(),
        Value::Array(items) => items.iter().take(1).map(shape).collect(),
        _ => Value::Null,
    }
}

fn shell(web: &Web, dir: &Path, script: &str) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-euc", script])
        .env("URL", format!("http://{}", web.address))
        .env("TOKEN", &web.token)
        .env("CURL_HOME", dir)
        .stdin(Stdio::null());
    command
}

fn run(web: &Web, dir: &Path, script: &str) -> String {
    let output = shell(web, dir, script).output().expect("a shell");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{script}\n{text}");
    text
}

/// Runs until the first event with data has come.
fn run_until_an_event(web: &Web, dir: &Path, script: &str) {
    let script = format!("exec {script}");
    let mut process = shell(web, dir, &script)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let lines = BufReader::new(process.stdout.take().expect("its output")).lines();
    let event = lines
        .map_while(Result::ok)
        .find(|line| line.starts_with("data: "));
    let _ = process.kill();
    process.wait().expect("it ends");
    event.unwrap_or_else(|| panic!("no event: {script}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_page_do_what_it_says() {
    if !Path::new("/usr/bin/curl").is_file() {
        eprintln!("SKIPPED: there is no curl on this machine");
        return;
    }
    let served = Served::start();
    let door = open(&served, HttpLimits::default()).await;
    let web = door.web.clone();
    // No example hangs for ever.
    std::fs::write(served.dir.path().join(".curlrc"), "max-time = 90\n").expect("written");
    let blocks = blocks(include_str!("../../../docs/http.md"));
    let mut operator = connect(served.dir.path()).await;
    watch(&mut operator, "agent:main:reader", "agent:ops:main").await;
    let mut ran = 0;
    for (at, block) in blocks.iter().enumerate() {
        let (web, dir) = (web.clone(), served.dir.path().to_owned());
        let script = block.text.clone();
        match block.kind.as_str() {
            "sh" => {
                let answer = tokio::task::spawn_blocking(move || run(&web, &dir, &script)).await;
                let answer = answer.expect("no panic");
                if let Some(said) = blocks.get(at + 1).filter(|next| next.kind == "json") {
                    let said: Value = serde_json::from_str(&said.text).expect(&said.text);
                    let answer: Value = serde_json::from_str(&answer).expect(&answer);
                    assert_eq!(shape(&answer), shape(&said), "{block:?}\n{answer}");
                    assert_eq!(answer["error"], said["error"], "{block:?}");
                }
                ran += 1;
            }
            "sh stream" => {
                speak(&mut operator, "agent:ops:main").await;
                let events =
                    tokio::task::spawn_blocking(move || run_until_an_event(&web, &dir, &script));
                events.await.expect("no panic");
                ran += 1;
            }
            _ => {}
        }
    }
    assert!(ran >= 9, "only {ran} examples");
}

#[test]
fn the_page_names_every_limit_as_it_is() {
    let page = include_str!("../../../docs/http.md");
    let limits = HttpLimits::default();
    for said in [
        format!("| connections at once | {};", limits.connections),
        format!("| streams at once | {};", limits.streams),
        format!("each within {} s |", limits.arrival.as_secs()),
        format!(
            "| a reader that takes nothing | {} s |",
            limits.write_stall.as_secs()
        ),
        format!("a comment every {} s", limits.keep_alive.as_secs()),
        format!("when the gateway stops | {} s |", limits.farewell.as_secs()),
    ] {
        assert!(page.contains(&said), "{said}");
    }
}
