//! The whole story: a manager that the gateway runs watches a worker on another machine, has a
//! child of its own, is woken, looks before it acts, and talks for so long that its history is
//! compacted twice. Nothing of it is lost.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tidings_tests::model::{Asked, ModelServer, Play, Say};
use tidings_tests::transcripts::{Claude, Transcript};
use tidings_tests::{Gateway, Node, Scratch, TwoMachines, WATCHER, files, notice, until};

use crate::turns::{Running, said, setup};

/// A window of 40 000 tokens: half of it is left free, and notes are due above 16 000.
const WINDOW: u64 = 40_000;
const KEEP: &str = "[agents.defaults.compaction]\nkeepRecentTokens = 40\n";

/// What the manager, its child, and whoever summarises say.
struct Cast {
    worker: String,
    notes: u32,
    summaries: u32,
}

impl Cast {
    fn play(&mut self, asked: &Asked) -> Play {
        let last = asked.last();
        if !asked.has_tools() {
            self.summaries += 1;
            let before = asked.conversation();
            let carried = if before.contains("Twelve sacks") {
                "Twelve sacks."
            } else {
                ""
            };
            return Say::text(&format!("Summary {}. {carried}", self.summaries)).into();
        }
        if asked.offers("memory_append") {
            return self.note(&last);
        }
        if asked.conversation().contains(":subagent:") && last.contains("Count the sacks.") {
            return Say::text("Twelve sacks.").into();
        }
        self.manage(&last)
    }

    fn note(&mut self, last: &str) -> Play {
        if last.contains("Appended to") {
            return Say::text("NO_REPLY").into();
        }
        self.notes += 1;
        let text = format!("- note {}: twelve sacks", self.notes);
        Say::call("memory_append", json!({"text": text})).into()
    }

    fn manage(&self, last: &str) -> Play {
        let worker = || json!({"sessionKey": self.worker});
        let is_result = last.contains("\"role\":\"tool\"");
        match last {
            _ if is_result && last.contains("stateChanges") => {
                Say::call("sessions_history", worker()).into()
            }
            _ if is_result && last.contains("Stop the mill.") => {
                let mut send = worker();
                send["message"] = json!("It is stopped.");
                Say::call("sessions_send", send).into()
            }
            _ if is_result && last.contains("sequence") => Say::text("Spawned.").into(),
            _ if is_result => Say::text("NO_REPLY").into(),
            _ if last.contains("Reconcile before acting") => {
                let mut status = worker();
                status["changesSince"] = changes_since(last).into();
                Say::call("session_status", status).into()
            }
            _ if last.contains("Have the sacks counted.") => {
                let task = json!({"task": "Count the sacks.", "label": "sacks"});
                Say::call("sessions_spawn", task).into()
            }
            _ if last.contains("Report 1.") => Say::text("One.").using(16_500, 100).into(),
            _ if last.contains("Report 2.") => Say::text("Two.").using(20_500, 100).into(),
            _ if last.contains("Report 3.") => Say::text("Three.").using(900, 100).into(),
            _ if last.contains("Report 4.") => Say::text("Four.").using(25_000, 100).into(),
            _ => Say::text("Good.").into(),
        }
    }
}

/// The version that a notice names.
fn changes_since(text: &str) -> u64 {
    let (_, behind) = text.split_once("changesSince ").expect("a notice");
    let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a version")
}

/// A manager on one machine that watches a worker on another.
struct Story {
    running: Running,
    node: Node,
    claude: Claude,
    worker: String,
    version: u64,
}

impl Story {
    fn begin() -> Self {
        let scratch = Scratch::new();
        let gateway = Gateway::start(&scratch);
        let mut node = Node::join(&gateway, "laptop");
        node.run();
        let machines = TwoMachines { gateway, node };
        let claude = Claude::create(&machines.node.claude());
        let adopted = machines.adopt(&claude);
        let TwoMachines { mut gateway, node } = machines;
        let mut cast = Cast {
            worker: adopted.key.clone(),
            notes: 0,
            summaries: 0,
        };
        let model = ModelServer::answering(move |asked| cast.play(asked));
        assert_eq!(gateway.stop(), 0);
        gateway.restart_as(setup(&scratch, &model, "openai", WINDOW, KEEP));
        Self {
            running: Running { gateway, model },
            node,
            claude,
            worker: adopted.key,
            version: adopted.version,
        }
    }

    /// Waits until the manager has said this last.
    #[track_caller]
    fn wait_for(&self, last: &str) -> Vec<String> {
        until(last, || {
            let said = said(&self.running.transcript(WATCHER));
            (said.last()? == &format!("assistant: {last}")).then_some(said)
        })
    }

    fn entry(&self) -> Value {
        self.running.gateway.ask(&["sessions", "show", WATCHER])
    }
}

#[test]
fn a_manager_is_woken_looks_before_it_acts_and_loses_nothing_over_two_compactions() {
    let mut story = Story::begin();

    assert_eq!(story.running.say("Watch the worker.")["reply"], "Good.");
    assert_eq!(
        story.running.say("Have the sacks counted.")["reply"],
        "Spawned."
    );
    let told = story.wait_for("Good.");
    let result = told.iter().rev().nth(1).expect("the child's result");
    assert!(
        result.starts_with("user: System: Message ") && result.contains("Twelve sacks."),
        "{told:#?}"
    );

    let spoken = story.entry()["lastInteractionAt"].clone();
    let turn = story.claude.human("Stop the mill.");
    let told = story.wait_for("NO_REPLY");
    let expected = [
        format!("user: System: {}", notice(&story.worker, story.version)),
        "assistant: →session_status".to_owned(),
        "assistant: →sessions_history".to_owned(),
        "assistant: →sessions_send".to_owned(),
        "assistant: NO_REPLY".to_owned(),
    ];
    let woken: Vec<&String> = told[told.len() - 8..]
        .iter()
        .filter(|line| !line.starts_with("toolResult"))
        .collect();
    assert_eq!(woken, expected.iter().collect::<Vec<_>>());
    assert_eq!(
        story.entry()["lastInteractionAt"],
        spoken,
        "a wake keeps nothing fresh"
    );
    let pending = story.running.gateway.ask(&["notices", "list", WATCHER]);
    assert_eq!(pending["notices"], json!([]));

    // Notes alone; a compaction; and, over both limits at once, notes and then a compaction.
    for (report, reply, compactions, flushed) in [
        ("Report 1.", "One.", 0, Some(0)),
        ("Report 2.", "Two.", 1, None),
        ("Report 3.", "Three.", 1, None),
        ("Report 4.", "Four.", 2, None),
    ] {
        let answer = story.running.say(report);
        assert_eq!(answer["reply"], reply, "{answer}");
        let entry = story.entry();
        let count = entry["compactionCount"].as_u64().unwrap_or(0);
        let at = entry["memoryFlushCompactionCount"].as_u64();
        assert_eq!((count, at), (compactions, flushed), "{report} {entry}");
    }
    assert_eq!(story.running.say("And now?")["reply"], "Good.");

    let prompt = story
        .running
        .model
        .asked()
        .last()
        .expect("requests")
        .conversation();
    assert!(prompt.contains("Summary 2. Twelve sacks."), "{prompt}");
    assert!(!prompt.contains("Watch the worker."), "{prompt}");
    check_files(&story, &turn);
}

/// What stands in every file once all is over.
fn check_files(story: &Story, turn: &tidings_tests::transcripts::Turn) {
    let gateway = &story.running.gateway;
    let transcript = story.running.transcript(WATCHER);
    let said = said(&transcript);
    for once in [
        "user: Watch the worker.",
        "user: Have the sacks counted.",
        "user: Report 1.",
        "user: Report 2.",
        "user: Report 3.",
        "user: Report 4.",
        "user: And now?",
    ] {
        let times = said.iter().filter(|line| *line == once).count();
        assert_eq!(times, 1, "{once}: {said:#?}");
    }
    let kinds: Vec<&str> = transcript
        .iter()
        .filter_map(|line| line["type"].as_str())
        .filter(|kind| *kind != "message")
        .collect();
    let expected = [
        "session",
        "custom_message",
        "compaction",
        "custom_message",
        "compaction",
    ];
    assert_eq!(kinds, expected);
    check_tree(&transcript);

    let entry = story.entry();
    let stored = stored_entry(gateway, WATCHER);
    assert_eq!(stored["compactionCount"], 2);
    assert_eq!(stored["sessionId"], entry["sessionId"]);

    let workspace = gateway.state_dir().join("agents/main/workspace/memory");
    let notes: Vec<String> = files(&workspace)
        .iter()
        .map(|file| fs::read_to_string(file).expect("notes"))
        .collect();
    assert_eq!(
        notes.concat(),
        "- note 1: twelve sacks\n- note 2: twelve sacks\n"
    );

    let child = child_of(gateway);
    let heard = crate::turns::said(&story.running.transcript(&child));
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert!(heard[0].ends_with("Count the sacks.") && heard[1].ends_with("Twelve sacks."));

    // The worker's file is its program's: only its human wrote there.
    let worker = fs::read(story.claude.path()).expect("a transcript");
    assert_eq!(u64::try_from(worker.len()).ok(), Some(turn.end + 1));
    let left: Vec<_> = files(gateway.state_dir())
        .into_iter()
        .filter(|file| file.extension().is_some_and(|end| end == "lock"))
        .filter(|file| file.to_string_lossy().contains("sessions"))
        .collect();
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
    assert!(story.node.recorded(story.claude.thread()).is_some());

    let kinds = gateway.kinds(WATCHER);
    assert_eq!(kinds, ["compacted", "compacted"]);
    let answer = gateway.ask(&["sessions", "show", &story.worker]);
    assert_eq!(answer["sessionKey"], *story.worker);
}

/// Each entry follows the one before it: nothing was left out, and nothing branched off.
fn check_tree(transcript: &[Value]) {
    let mut parent = Value::Null;
    for line in &transcript[1..] {
        assert_eq!(line["parentId"], parent, "{line}");
        parent = line["id"].clone();
    }
}

fn stored_entry(gateway: &Gateway, key: &str) -> Value {
    let file = gateway
        .state_dir()
        .join("agents/main/sessions/sessions.json");
    until("the projection with both compactions", || {
        let text = fs::read_to_string(Path::new(&file)).ok()?;
        let store: Value = serde_json::from_str(&text).ok()?;
        let entry = store[key].clone();
        (entry["compactionCount"] == 2).then_some(entry)
    })
}

fn child_of(gateway: &Gateway) -> String {
    let list = gateway.ask(&["sessions", "list"]);
    let sessions = list["sessions"].as_array().expect("sessions");
    let keys = sessions.iter().filter_map(|row| row["sessionKey"].as_str());
    let mut children = keys.filter(|key| key.contains(":subagent:"));
    children.next().expect("a child").to_owned()
}

#[test]
fn what_a_killed_gateway_was_running_is_told_and_what_waits_is_run() {
    let scratch = Scratch::new();
    let model = ModelServer::answering(|asked| {
        let last = asked.last();
        if last.contains("Count the sacks.") {
            return Play::Silence;
        }
        Say::text("Good.").into()
    });
    let setup = setup(&scratch, &model, "openai", 200_000, "");
    let mut running = Running {
        gateway: Gateway::start_as(&scratch, setup),
        model,
    };
    running.say("Good morning.");
    let spawn = ["sessions", "spawn", WATCHER, "Count the sacks."];
    let spawned = running.gateway.ask(&spawn);
    running.model.wait_for(2);

    running.gateway.kill();
    running.gateway.restart();

    let told = until("the parent's answer", || {
        let said = said(&running.transcript(WATCHER));
        (said.len() == 4).then_some(said)
    });
    assert!(
        told[2].contains("The gateway ended while this was run."),
        "{told:?}"
    );
    let child = spawned["sessionKey"].as_str().expect("a key");
    let signals = running
        .gateway
        .ask(&["signals", "list", "--session", child]);
    assert_eq!(
        signals["signals"][1]["payload"]["outcome"], "cancelled",
        "{signals}"
    );
    let heard = said(&running.transcript(child));
    assert_eq!(heard.len(), 1, "the task, and no answer: {heard:?}");
}
