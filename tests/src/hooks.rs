//! The hooks of an agent program, fired as the program fires them: a process per event, with
//! one JSON object on its standard input.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::answer::{Answer, run};
use crate::binaries::binaries;
use crate::clock::until;
use crate::gateway::Gateway;
use crate::node::Node;
use crate::scratch::Scratch;
use crate::transcripts::Transcript;

/// A program in one of its conversations.
#[derive(Debug)]
pub struct Hooks {
    scratch: Scratch,
    binary: PathBuf,
    state_dir: PathBuf,
    program: &'static str,
    session: String,
    transcript: Value,
}

/// A hook that waits in the background.
#[derive(Debug)]
pub struct Waiter(Child);

impl Waiter {
    /// Its process.
    pub fn pid(&self) -> u64 {
        self.0.id().into()
    }

    /// Waits until it has ended: with which code, and what it says on standard error.
    #[track_caller]
    pub fn ended(mut self) -> (Option<i32>, String) {
        let status = until("a hook that waits ends", || {
            self.0.try_wait().expect("a child")
        });
        let mut said = String::new();
        let mut stderr = self.0.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut said).expect("a text");
        let mut out = String::new();
        let mut stdout = self.0.stdout.take().expect("a pipe");
        stdout.read_to_string(&mut out).expect("a text");
        assert_eq!(out, "", "nothing on standard output");
        (status.code(), said)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        // It fails where it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Hooks {
    /// On the gateway's machine, by `tidings`.
    pub fn on_gateway(gateway: &Gateway, transcript: &dyn Transcript) -> Self {
        let binary = binaries().tidings.clone();
        Self::new(gateway.scratch(), binary, gateway.state_dir(), transcript)
    }

    /// On a node's machine, by `tidings-node`.
    pub fn on_node(node: &Node, transcript: &dyn Transcript) -> Self {
        let binary = binaries().node.clone();
        Self::new(node.scratch(), binary, &node.state_dir(), transcript)
    }

    fn new(
        scratch: &Scratch,
        binary: PathBuf,
        state_dir: &Path,
        transcript: &dyn Transcript,
    ) -> Self {
        let program = match transcript.catalog() {
            "claude" => "claude-code",
            _ => "codex",
        };
        Self {
            scratch: scratch.clone(),
            binary,
            state_dir: state_dir.to_owned(),
            program,
            session: transcript.thread().to_owned(),
            transcript: transcript.path().to_str().into(),
        }
    }

    /// The same program after it has gone on in another conversation.
    #[must_use]
    pub fn gone_on_in(&self, session: &str) -> Self {
        Self {
            scratch: self.scratch.clone(),
            binary: self.binary.clone(),
            state_dir: self.state_dir.clone(),
            program: self.program,
            session: session.to_owned(),
            // Codex writes nothing before the first turn.
            transcript: Value::Null,
        }
    }

    /// What the program hands to the hooks of an event: every member that is documented for
    /// all events, one that nobody knows yet, and those of `more`.
    fn payload(&self, event: &str, more: &Value) -> Value {
        let mut payload = json!({
            "session_id": self.session,
            "transcript_path": self.transcript,
            "cwd": "/home/ada/engine",
            "permission_mode": "default",
            "effort": {"level": "high"},
            "model": "of-today",
            "hook_event_name": event,
            "of_tomorrow": {"anything": [1, null, {"deep": [[]]}]},
        });
        let members = payload.as_object_mut().expect("an object");
        for (name, value) in more.as_object().into_iter().flatten() {
            members.insert(name.clone(), value.clone());
        }
        payload
    }

    /// Fires the hooks of an event. Whatever happens, they end with 0 and say nothing on
    /// standard error.
    #[track_caller]
    pub fn fire(&self, event: &str, more: &Value) -> Answer {
        let payload = self.payload(event, more).to_string();
        let answer = self.hand(payload.as_bytes());
        assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer}");
        answer
    }

    /// Hands these bytes to the hook.
    #[track_caller]
    pub fn hand(&self, bytes: &[u8]) -> Answer {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let input = self.scratch.path().join(format!("hook-{number}.json"));
        fs::write(&input, bytes).expect("an input");
        let answer = run(self.command().stdin(File::open(&input).expect("an input")));
        fs::remove_file(input).expect("an input");
        answer
    }

    /// Fires the hook that waits in the background, after a turn has ended.
    pub fn wait(&self) -> Waiter {
        self.wait_by(self.command().arg("--rewake"))
    }

    /// The same, by another command that starts it.
    pub fn wait_by(&self, command: &mut Command) -> Waiter {
        let payload = self.payload("Stop", &json!({"stop_hook_active": false}));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a hook");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin
            .write_all(payload.to_string().as_bytes())
            .expect("an event");
        Waiter(child)
    }

    /// The process that waits for news of the conversation, by the file that names it.
    pub fn waiter(&self) -> Option<u64> {
        let catalog = if self.program == "codex" {
            "codex"
        } else {
            "claude"
        };
        let name = format!("waiters/{catalog}-{}.json", self.session);
        let text = fs::read(self.state_dir.join(name)).ok()?;
        serde_json::from_slice::<Value>(&text).ok()?["pid"].as_u64()
    }

    /// The conversation.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The hook's command, without an input.
    pub fn command(&self) -> Command {
        let mut command = self.scratch.command(&self.binary);
        command
            .args(["hook", self.program, "--state-dir"])
            .arg(&self.state_dir)
            .stdin(Stdio::null());
        command
    }

    /// Fires the hooks of a prompt: what they add to it.
    #[track_caller]
    pub fn prompt(&self, more: &Value) -> Option<String> {
        let answer = self.fire("UserPromptSubmit", more);
        if answer.stdout.is_empty() {
            return None;
        }
        let document = answer.json();
        let context = document["hookSpecificOutput"]["additionalContext"].clone();
        // Not a member more: Codex refuses what it does not know.
        assert_eq!(
            document,
            json!({"hookSpecificOutput": {
                "hookEventName": "UserPromptSubmit",
                "additionalContext": context,
            }})
        );
        Some(context.as_str().expect("a text").to_owned())
    }
}
