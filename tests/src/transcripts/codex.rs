//! Codex.

use std::fs;
use std::path::Path;

use super::file::{TranscriptFile, Turn};
use super::{Transcript, fresh_number, quoted};
use crate::clock::{iso, now_ms};

/// A transcript of Codex 0.125: `<root>/<year>/<month>/<day>/rollout-<time>-<thread>.jsonl`.
#[derive(Debug)]
pub struct Codex {
    file: TranscriptFile,
    thread: String,
}

impl Codex {
    /// A conversation that has gone on for a while.
    pub fn create(root: &Path) -> Self {
        let thread = format!("019e1625-789d-76c0-80ab-{:012x}", fresh_number());
        let now = iso(now_ms());
        let (date, time) = (now[..10].replace('-', "/"), now[..19].replace(':', "-"));
        let path = root
            .join(date)
            .join(format!("rollout-{time}-{thread}.jsonl"));
        let mut codex = Self {
            file: TranscriptFile::create(&path),
            thread,
        };
        codex.line("session_meta", &format!(
            r#"{{"id":"{}","timestamp":"{now}","cwd":"/home/ada/engine","originator":"codex-tui","cli_version":"0.125.0","source":"cli","model_provider":"openai"}}"#,
            codex.thread
        ));
        codex.item(
            "developer",
            "input_text",
            "<permissions instructions>\nread only",
        );
        codex.item(
            "user",
            "input_text",
            "# AGENTS.md instructions for /home/ada/engine\n\n<INSTRUCTIONS>\nbe brief",
        );
        codex.human("What does the engine do?");
        codex.everything_but_a_human("a difference at a time");
        codex
    }

    /// The program compresses it, as it does with what is idle for long. What is in it no
    /// longer matters here.
    pub fn compress(&self) {
        let mut compressed = self.path().as_os_str().to_owned();
        compressed.push(".zst");
        fs::rename(self.path(), compressed).expect("a compressed transcript");
    }

    fn item(&mut self, role: &str, kind: &str, text: &str) {
        let text = quoted(text);
        self.line("response_item", &format!(
            r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":{text}}}]}}"#
        ));
    }

    fn line(&mut self, kind: &str, payload: &str) -> Turn {
        let at = iso(now_ms());
        self.file.append(&format!(
            r#"{{"timestamp":"{at}","type":"{kind}","payload":{payload}}}"#
        ))
    }
}

impl Transcript for Codex {
    fn catalog(&self) -> &'static str {
        "codex"
    }

    fn thread(&self) -> &str {
        &self.thread
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    /// The item comes first, the event a moment later: the turn is the event.
    fn human(&mut self, text: &str) -> Turn {
        self.item("user", "input_text", text);
        let text = quoted(text);
        self.line("event_msg", &format!(
            r#"{{"type":"user_message","message":{text},"images":[],"local_images":[],"text_elements":[]}}"#
        ))
    }

    fn everything_but_a_human(&mut self, text: &str) {
        let quoted = quoted(text);
        let call = format!("call_{:024}", fresh_number());
        self.line(
            "turn_context",
            r#"{"cwd":"/home/ada/engine","approval_policy":"on-request"}"#,
        );
        self.item(
            "user",
            "input_text",
            &format!("<environment_context>{text}</environment_context>"),
        );
        self.line("response_item", &format!(
            r#"{{"type":"function_call","name":"exec_command","arguments":{quoted},"call_id":"{call}"}}"#
        ));
        self.line(
            "response_item",
            &format!(r#"{{"type":"function_call_output","call_id":"{call}","output":{quoted}}}"#),
        );
        self.item("assistant", "output_text", text);
        self.line(
            "event_msg",
            &format!(r#"{{"type":"agent_message","message":{quoted},"phase":"final_answer"}}"#),
        );
        self.line(
            "compacted",
            &format!(r#"{{"message":{quoted},"replacement_history":[{{"type":"message","role":"user","content":[{{"type":"input_text","text":{quoted}}}]}}]}}"#),
        );
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    fn append_bytes(&mut self, bytes: &[u8]) {
        self.file.append_bytes(bytes);
    }

    fn reopen(&mut self) {
        self.file.reopen();
    }

    fn move_to(&mut self, folder: &Path) {
        self.file.move_to(folder);
    }
}
