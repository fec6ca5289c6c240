//! Turns of the gateway's own: a person talks to a session, and a model answers.

mod cancelled;
mod compacted;
mod counted;
mod cut_off;
mod hostile;
mod spoken;
mod taken;
mod terminal;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tidings_tests::model::{Asked, ModelServer, Play};
use tidings_tests::{Gateway, Scratch, Setup, WATCHER};

/// A gateway that runs turns against a scripted model.
pub(crate) struct Running {
    pub(crate) gateway: Gateway,
    pub(crate) model: ModelServer,
}

impl Running {
    pub(crate) fn with(model: ModelServer, kind: &str, window: u64, more: &str) -> Self {
        let scratch = Scratch::new();
        let setup = setup(&scratch, &model, kind, window, more);
        Self {
            gateway: Gateway::start_as(&scratch, setup),
            model,
        }
    }

    fn answering(answer: impl FnMut(&Asked) -> Play + Send + 'static) -> Self {
        Self::with(ModelServer::answering(answer), "openai", 200_000, "")
    }

    /// Says something in the main session, and what comes of it.
    #[track_caller]
    pub(crate) fn say(&self, message: &str) -> Value {
        self.gateway
            .ask(&["chat", "--session", WATCHER, "--message", message])
    }

    /// The transcript that continues a session, line by line.
    pub(crate) fn transcript(&self, key: &str) -> Vec<Value> {
        lines(&self.transcript_file(key))
    }

    pub(crate) fn transcript_file(&self, key: &str) -> PathBuf {
        let entry = self.gateway.ask(&["sessions", "show", key]);
        let id = entry["sessionId"].as_str().expect("an id");
        let file = match entry["sessionFile"].as_str() {
            Some(file) => file.to_owned(),
            None => format!("{id}.jsonl"),
        };
        let agent = entry["agentId"].as_str().unwrap_or("main");
        let agents = self.gateway.state_dir().join("agents");
        agents.join(agent).join("sessions").join(file)
    }
}

pub(crate) fn setup(
    scratch: &Scratch,
    model: &ModelServer,
    kind: &str,
    window: u64,
    more: &str,
) -> Setup {
    let file = scratch.path().join("models.toml");
    fs::write(&file, model.config(kind, window, more)).expect("a configuration");
    Setup::without_local_node().with_config(&file)
}

pub(crate) fn lines(file: &PathBuf) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("a transcript");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a record"))
        .collect()
}

/// What the messages of a transcript say, one a line.
pub(crate) fn said(transcript: &[Value]) -> Vec<String> {
    let said = |line: &Value| {
        let message = &line["message"];
        let content = message["content"].as_array()?;
        let texts = content.iter().map(|block| match block["type"].as_str() {
            Some("toolCall") => format!("→{}", block["name"].as_str().unwrap_or_default()),
            _ => block["text"].as_str().unwrap_or_default().to_owned(),
        });
        let role = message["role"].as_str()?;
        Some(format!("{role}: {}", texts.collect::<Vec<_>>().join(" | ")))
    };
    transcript.iter().filter_map(said).collect()
}
