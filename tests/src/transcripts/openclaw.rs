//! OpenClaw, and Pi, whose grammar it is.

use std::path::Path;

use super::file::{TranscriptFile, Turn};
use super::{Transcript, fresh_number, quoted};
use crate::clock::{iso, now_ms};

/// A transcript of version 3: `<root>/<session id>.jsonl`.
#[derive(Debug)]
pub struct OpenClaw {
    file: TranscriptFile,
    session: String,
    parent: String,
}

impl OpenClaw {
    /// A conversation that has gone on for a while.
    pub fn create(root: &Path) -> Self {
        let session = format!("0c1a7da7-0000-4000-8000-{:012x}", fresh_number());
        let path = root.join(format!("{session}.jsonl"));
        let mut openclaw = Self {
            file: TranscriptFile::create(&path),
            parent: session.clone(),
            session,
        };
        let at = iso(now_ms());
        openclaw.file.append(&format!(
            r#"{{"type":"session","id":"{}","version":3,"timestamp":"{at}","cwd":"/home/ada/engine"}}"#,
            openclaw.session
        ));
        openclaw.human("What does the engine do?");
        openclaw.everything_but_a_human("a difference at a time");
        openclaw
    }

    /// An entry behind the one before it: `head` is what stands before its id.
    fn entry(&mut self, head: &str, tail: &str) -> String {
        let id = format!("{:08x}", fresh_number());
        let parent = std::mem::replace(&mut self.parent, id);
        let (id, at) = (&self.parent, iso(now_ms()));
        format!(
            r#"{{"type":"{head}","id":"{id}","parentId":"{parent}","timestamp":"{at}",{tail}}}"#
        )
    }

    /// A message with one text in it.
    fn message(&mut self, role: &str, text: &str) -> String {
        let text = quoted(text);
        self.entry("message", &format!(
            r#""message":{{"role":"{role}","content":[{{"type":"text","text":{text}}}],"timestamp":{}}}"#,
            now_ms()
        ))
    }
}

impl Transcript for OpenClaw {
    fn catalog(&self) -> &'static str {
        "openclaw"
    }

    fn thread(&self) -> &str {
        &self.session
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    fn human(&mut self, text: &str) -> Turn {
        let line = self.message("user", text);
        self.file.append(&line)
    }

    fn everything_but_a_human(&mut self, text: &str) {
        let own = [
            "[OpenClaw heartbeat poll]",
            "Read HEARTBEAT.md if it exists.",
            "[cron:nightly]",
            "[Inter-session message] isUser=false",
            "An async command you ran earlier has completed.",
        ];
        let mut lines: Vec<String> = own
            .iter()
            .map(|own| self.message("user", &format!("{own} {text}")))
            .collect();
        let quoted = quoted(text);
        lines.extend([
            self.entry("message", &format!(
                r#""message":{{"role":"user","content":{quoted},"provenance":{{"kind":"inter_session"}}}}"#
            )),
            self.entry("custom_message", &format!(
                r#""customType":"openclaw.runtime-context","content":{quoted},"display":false"#
            )),
            self.message("toolResult", text),
            self.message("assistant", text),
            self.entry("compaction", &format!(
                r#""summary":{quoted},"tokensBefore":7,"firstKeptEntryId":"{}""#,
                self.session
            )),
        ]);
        self.file.append_all(&lines);
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
