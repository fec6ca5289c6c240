//! A node agent in a process of its own.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::answer::{Answer, run};
use crate::binaries::binaries;
use crate::daemon::{Daemon, Log};
use crate::gateway::Gateway;
use crate::scratch::Scratch;

/// A machine with a node agent; dropping it kills the agent.
#[derive(Debug)]
pub struct Node {
    daemon: Option<Daemon>,
    name: String,
    folder: PathBuf,
    scratch: Scratch,
}

impl Node {
    /// A machine that belongs to no gateway yet.
    pub fn new(scratch: &Scratch, name: &str) -> Self {
        let folder = scratch.folder(name);
        for root in ["claude", "codex"] {
            scratch.folder(&format!("{name}/{root}"));
        }
        Self {
            daemon: None,
            name: name.to_owned(),
            folder,
            scratch: scratch.clone(),
        }
    }

    /// A machine that a link printed by `gateway` has joined to it. Its agent does not run.
    pub fn join(gateway: &Gateway, name: &str) -> Self {
        let node = Self::new(gateway.scratch(), name);
        node.join_with(&node.invite(gateway)).done();
        node
    }

    /// A join link of `gateway` for this machine.
    pub fn invite(&self, gateway: &Gateway) -> String {
        let address = gateway.address();
        let invitation = gateway.ask(&[
            "nodes",
            "invite",
            "--name",
            &self.name,
            "--address",
            address,
        ]);
        assert_eq!(invitation["name"], *self.name, "{invitation}");
        let link = invitation["link"].as_str().expect("a link");
        assert!(link.contains(&format!("@{address}?ca=")), "{link}");
        link.to_owned()
    }

    /// Runs `tidings-node join <link>`.
    pub fn join_with(&self, link: &str) -> Answer {
        let mut command = self.scratch.command(&binaries().node);
        command
            .args(["join", link, "--json", "--state-dir"])
            .arg(self.state_dir());
        run(&mut command)
    }

    /// Runs `tidings-node <arguments> --json` on it.
    pub fn command(&self, arguments: &[&str]) -> Answer {
        let mut command = self.scratch.command(&binaries().node);
        command
            .args(arguments)
            .args(["--json", "--state-dir"])
            .arg(self.state_dir());
        run(&mut command)
    }

    /// Starts the agent, and waits until its gateway has welcomed it.
    #[track_caller]
    pub fn run(&mut self) {
        self.start(Log::Everything);
    }

    /// The same for whoever measures: it writes hardly any log.
    #[track_caller]
    pub fn run_to_measure(&mut self) {
        self.start(Log::Warnings);
    }

    /// The process id of its agent.
    pub fn id(&self) -> u32 {
        self.daemon.as_ref().expect("a running agent").id()
    }

    fn start(&mut self, level: Log) {
        let mut command = self.scratch.command(&binaries().node);
        command
            .args(["run", "--json", "--state-dir"])
            .arg(self.state_dir());
        for (catalog, root) in [("claude", self.claude()), ("codex", self.codex())] {
            command
                .arg("--root")
                .arg(format!("{catalog}={}", root.display()));
        }
        self.daemon = Some(Daemon::spawn(&mut command, &self.log(), level));
        self.wait_for_welcome();
    }

    /// Waits for the next time that its gateway welcomes it.
    #[track_caller]
    pub fn wait_for_welcome(&self) {
        let daemon = self.daemon.as_ref().expect("a running agent");
        daemon.wait_for("connected");
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.daemon.take().expect("a running agent").kill();
    }

    /// SIGTERM; its exit code.
    #[track_caller]
    pub fn stop(&mut self) -> i32 {
        self.daemon.take().expect("a running agent").stop()
    }

    /// Its name in keys.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where Claude Code would write.
    pub fn claude(&self) -> PathBuf {
        self.folder.join("claude")
    }

    /// Where Codex would write.
    pub fn codex(&self) -> PathBuf {
        self.folder.join("codex")
    }

    /// Its state directory.
    pub fn state_dir(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// Its log.
    pub fn log(&self) -> PathBuf {
        self.scratch.path().join(format!("{}.log", self.name))
    }

    /// How far `thread` has been recorded, as its agent says; none while it follows no such
    /// thread.
    pub fn recorded(&self, thread: &str) -> Option<u64> {
        recorded(&self.scratch, &self.state_dir(), thread)
    }
}

/// How far `thread` has been recorded, as the agent with this state directory says.
pub(crate) fn recorded(scratch: &Scratch, state_dir: &Path, thread: &str) -> Option<u64> {
    let mut command = scratch.command(&binaries().node);
    command
        .args(["status", "--json", "--state-dir"])
        .arg(state_dir);
    let status = run(&mut command).done();
    let links = status["links"].as_array().expect("a list of links");
    let link = links.iter().find(|link| link["threadId"] == thread);
    link.map(|link: &Value| link["offset"].as_u64().expect("an offset"))
}
