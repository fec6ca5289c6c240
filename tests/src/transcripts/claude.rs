//! Claude Code.

use std::path::Path;

use super::file::{TranscriptFile, Turn};
use super::{Transcript, fresh_number, quoted};
use crate::clock::{iso, now_ms};

/// A transcript of Claude Code 2.1.280: `<root>/<project>/<session id>.jsonl`.
#[derive(Debug)]
pub struct Claude {
    file: TranscriptFile,
    session: String,
    parent: String,
}

/// The fields of one record that differ from record to record.
struct Record<'a> {
    /// What stands before `uuid`, from `type` on.
    head: &'a str,
    /// What stands behind the time.
    tail: &'a str,
    sidechain: bool,
}

impl Claude {
    /// A conversation that has gone on for a while: a prompt, a tool call, its result, an
    /// answer.
    pub fn create(root: &Path) -> Self {
        Self::create_in(&root.join("-home-ada-engine"))
    }

    /// The same in the folder of some project.
    pub fn create_in(project: &Path) -> Self {
        let session = uuid();
        let path = project.join(format!("{session}.jsonl"));
        let mut claude = Self {
            file: TranscriptFile::create(&path),
            session,
            parent: "null".to_owned(),
        };
        claude.file.append(&snapshot());
        claude.human("What does the engine do?");
        for line in claude.answer("a difference at a time") {
            claude.file.append(&line);
        }
        claude
    }

    /// When it was last written to, in epoch milliseconds.
    pub fn written_at(&self) -> i64 {
        self.file.written_at()
    }

    /// A person types every one of `texts`; all is written at once.
    pub fn humans(&mut self, texts: &[String]) -> Vec<Turn> {
        let lines: Vec<String> = texts.iter().map(|text| self.typed(text)).collect();
        self.file.append_all(&lines)
    }

    /// A person types `text`; the record's id and time, and where it stands.
    pub fn human_with_id(&mut self, text: &str) -> (Turn, String, i64) {
        let at = now_ms();
        let line = self.typed_at(text, at);
        let id = self.parent.trim_matches('"').to_owned();
        (self.file.append(&line), id, at)
    }

    /// A person types `text` at that time, in epoch milliseconds.
    pub fn human_at(&mut self, text: &str, at: i64) -> Turn {
        let line = self.typed_at(text, at);
        self.file.append(&line)
    }

    /// The line of a person who types `text`, without its end; it is not written.
    pub fn line(&mut self, text: &str) -> String {
        self.typed(text)
    }

    /// Appends bytes as they are, in one write.
    pub fn append(&mut self, bytes: impl AsRef<[u8]>) {
        self.file.append_bytes(bytes.as_ref());
    }

    /// `user` records that nobody typed.
    fn user_records_of_the_program(&mut self, text: &str) -> Vec<String> {
        let typed_by_nobody = [
            (
                format!("<local-command-caveat>{text}</local-command-caveat>"),
                r#""isMeta":true"#,
            ),
            (
                format!("This session is being continued. {text}"),
                r#""isCompactSummary":true,"isVisibleInTranscriptOnly":true"#,
            ),
            (
                format!("<command-name>/model</command-name>\n<command-args>{text}</command-args>"),
                r#""promptSource":"typed""#,
            ),
            (
                format!("<local-command-stdout>{text}</local-command-stdout>"),
                r#""promptSource":"typed""#,
            ),
            (
                format!("<task-notification>{text}</task-notification>"),
                r#""origin":{"kind":"task-notification"}"#,
            ),
            (
                format!("{text} every morning"),
                r#""origin":{"kind":"human"},"turnOrigin":"scheduled""#,
            ),
            (
                "[Request interrupted by user]".to_owned(),
                r#""promptSource":"typed""#,
            ),
        ];
        let mut lines: Vec<String> = typed_by_nobody
            .iter()
            .map(|(content, tail)| {
                let head = user(&quoted(content));
                self.record(&Record {
                    head: &head,
                    tail,
                    sidechain: false,
                })
            })
            .collect();
        let head = user(&quoted(&format!("Look at the mill: {text}")));
        lines.push(self.record(&Record {
            head: &head,
            tail: r#""agentId":"a1b2c3d""#,
            sidechain: true,
        }));
        lines
    }

    /// A tool call, its result, and words.
    fn answer(&mut self, text: &str) -> Vec<String> {
        let tool = format!("toolu_{:024}", fresh_number());
        let call = assistant(&format!(
            r#"{{"type":"tool_use","id":"{tool}","name":"Bash","input":{{"command":{}}}}}"#,
            quoted(&format!("echo {text}"))
        ));
        let output = quoted(text);
        let result = user(&format!(
            r#"[{{"tool_use_id":"{tool}","type":"tool_result","content":{output},"is_error":false}}]"#
        ));
        let result_tail = format!(r#""toolUseResult":{{"stdout":{output},"stderr":""}}"#);
        let words = assistant(&format!(r#"{{"type":"text","text":{output}}}"#));
        [
            (call, r#""requestId":"req_1""#),
            (result, &*result_tail),
            (words, r#""requestId":"req_2""#),
        ]
        .map(|(head, tail)| {
            self.record(&Record {
                head: &head,
                tail,
                sidechain: false,
            })
        })
        .to_vec()
    }

    fn typed(&mut self, text: &str) -> String {
        self.typed_at(text, now_ms())
    }

    fn typed_at(&mut self, text: &str, at: i64) -> String {
        let head = user(&quoted(text));
        let record = Record {
            head: &head,
            tail: r#""permissionMode":"default","origin":{"kind":"human"},"promptSource":"typed","turnOrigin":"human""#,
            sidechain: false,
        };
        self.record_at(&record, at)
    }

    fn record(&mut self, record: &Record<'_>) -> String {
        self.record_at(record, now_ms())
    }

    fn record_at(&mut self, record: &Record<'_>, at: i64) -> String {
        let Record {
            head,
            tail,
            sidechain,
        } = record;
        let parent = std::mem::replace(&mut self.parent, format!("\"{}\"", uuid()));
        let (uuid, session, at) = (&self.parent, &self.session, iso(at));
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":{sidechain},{head},"uuid":{uuid},"timestamp":"{at}",{tail},"userType":"external","entrypoint":"cli","cwd":"/home/ada/engine","sessionId":"{session}","version":"2.1.280","gitBranch":"main"}}"#
        )
    }
}

impl Transcript for Claude {
    fn catalog(&self) -> &'static str {
        "claude"
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
        let line = self.typed(text);
        self.file.append(&line)
    }

    fn everything_but_a_human(&mut self, text: &str) {
        let mut lines = self.answer(text);
        lines.extend(self.user_records_of_the_program(text));
        lines.extend([
            snapshot(),
            format!(
                r#"{{"type":"summary","summary":{},"leafUuid":"{}"}}"#,
                quoted(text),
                uuid()
            ),
            format!(
                r#"{{"type":"last-prompt","lastPrompt":{},"sessionId":"{}"}}"#,
                quoted(text),
                self.session
            ),
            "null".to_owned(),
            format!("{{\"type\":\"user\", torn: {text}"),
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

fn user(content: &str) -> String {
    let prompt = uuid();
    format!(
        r#""promptId":"{prompt}","type":"user","message":{{"role":"user","content":{content}}}"#
    )
}

fn assistant(block: &str) -> String {
    let message = format!("msg_{:024}", fresh_number());
    format!(
        r#""message":{{"model":"claude-sonnet-5","id":"{message}","type":"message","role":"assistant","content":[{block}],"stop_reason":"end_turn","stop_sequence":null}},"type":"assistant""#
    )
}

fn snapshot() -> String {
    let id = uuid();
    let at = iso(now_ms());
    format!(
        r#"{{"type":"file-history-snapshot","messageId":"{id}","snapshot":{{"messageId":"{id}","trackedFileBackups":{{}},"timestamp":"{at}"}},"isSnapshotUpdate":false}}"#
    )
}

/// A version 4 UUID, other than any before it.
fn uuid() -> String {
    format!("7e57da7a-0000-4000-8000-{:012x}", fresh_number())
}
