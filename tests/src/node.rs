//! A node agent in a process of its own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::answer::{Answer, run};
use crate::binaries::binaries;
use crate::cable::NetworkEnd;
use crate::daemon::{Daemon, Log, signal};
use crate::gateway::Gateway;
use crate::namespace::Namespace;
use crate::scratch::Scratch;

/// A machine with a node agent; dropping it kills the agent.
#[derive(Debug)]
pub struct Node {
    daemon: Option<Daemon>,
    name: String,
    folder: PathBuf,
    namespace: Option<Namespace>,
    environment: Vec<(String, OsString)>,
    scratch: Scratch,
    end: Option<NetworkEnd>,
    level: Log,
    further_roots: Vec<(&'static str, PathBuf)>,
    wake_command: Option<PathBuf>,
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
            namespace: None,
            environment: Vec::new(),
            scratch: scratch.clone(),
            end: None,
            level: Log::Everything,
            further_roots: Vec::new(),
            wake_command: None,
        }
    }

    /// The same at an end of a cable.
    #[must_use]
    pub fn at(mut self, end: &NetworkEnd) -> Self {
        self.end = Some(end.clone());
        self
    }

    /// A machine that a link printed by `gateway` has joined to it. Its agent does not run.
    pub fn join(gateway: &Gateway, name: &str) -> Self {
        let node = Self::new(gateway.scratch(), name);
        node.join_with(&node.invite(gateway)).done();
        node
    }

    /// The same for a machine that reaches the gateway at `address`.
    pub fn join_at(gateway: &Gateway, name: &str, address: &str) -> Self {
        let node = Self::new(gateway.scratch(), name);
        node.join_with(&node.invite_at(gateway, address)).done();
        node
    }

    /// One more variable for the environment of its agent.
    pub fn set_variable(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.push((name.to_owned(), value.into()));
    }

    /// Its agent starts this program for each wake, whenever it is started.
    pub fn set_wake_command(&mut self, program: PathBuf) {
        self.wake_command = Some(program);
    }

    /// Its agent writes hardly any log from now on.
    pub fn set_quiet(&mut self) {
        self.level = Log::Warnings;
    }

    /// One more root, beside those of Claude Code and Codex: a folder of this name.
    pub fn add_root(&mut self, catalog: &'static str, name: &str) -> PathBuf {
        let root = self.scratch.folder(&format!("{}/{name}", self.name));
        self.further_roots.push((catalog, root.clone()));
        root
    }

    /// A join link of `gateway` for this machine.
    pub fn invite(&self, gateway: &Gateway) -> String {
        self.invite_at(gateway, gateway.address())
    }

    /// The same with the address that the machine reaches the gateway at.
    pub fn invite_at(&self, gateway: &Gateway, address: &str) -> String {
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
        let mut command = self.program();
        command
            .args(["join", link, "--json", "--state-dir"])
            .arg(self.state_dir());
        run(&mut command)
    }

    /// Runs `tidings-node <arguments> --json` on it.
    pub fn command(&self, arguments: &[&str]) -> Answer {
        let mut command = self.program();
        command
            .args(arguments)
            .args(["--json", "--state-dir"])
            .arg(self.state_dir());
        run(&mut command)
    }

    /// Starts the agent, and waits until its gateway has welcomed it.
    #[track_caller]
    pub fn run(&mut self) {
        self.start();
    }

    /// The same for whoever measures: it writes hardly any log.
    #[track_caller]
    pub fn run_to_measure(&mut self) {
        self.set_quiet();
        self.start();
    }

    /// The same in a namespace, now and whenever it is started again.
    #[track_caller]
    pub fn run_in(&mut self, namespace: Namespace) {
        self.namespace = Some(namespace);
        self.run();
    }

    /// The process id of its agent.
    pub fn id(&self) -> u32 {
        self.daemon.as_ref().expect("a running agent").id()
    }

    fn program(&self) -> Command {
        let end = self.end.as_ref();
        self.scratch.command_at(end, &binaries().node)
    }

    fn start(&mut self) {
        self.spawn();
        self.wait_for_welcome();
    }

    /// Starts the agent without waiting for anything.
    pub fn start_unwelcomed(&mut self) {
        self.spawn();
    }

    fn spawn(&mut self) {
        let mut command = match &self.namespace {
            Some(namespace) => namespace.command(&self.scratch, &binaries().node),
            None => self.program(),
        };
        command
            .args(["run", "--json", "--state-dir"])
            .arg(self.state_dir())
            .envs(self.environment.iter().cloned());
        if let Some(program) = &self.wake_command {
            command.arg("--wake-command").arg(program);
        }
        let usual = [("claude", self.claude()), ("codex", self.codex())];
        for (catalog, root) in usual.iter().chain(&self.further_roots) {
            command
                .arg("--root")
                .arg(format!("{catalog}={}", root.display()));
        }
        self.daemon = Some(Daemon::spawn(&mut command, &self.log(), self.level));
    }

    /// Waits a moment, and says whether its agent is still running then.
    pub fn runs_on(&self, moment: Duration) -> bool {
        let daemon = self.daemon.as_ref().expect("a running agent");
        daemon.runs_on(moment)
    }

    /// Waits for the next time that its gateway welcomes it.
    #[track_caller]
    pub fn wait_for_welcome(&self) {
        let daemon = self.daemon.as_ref().expect("a running agent");
        daemon.wait_for("connected");
    }

    /// Waits until its agent says that it is not connected any more.
    #[track_caller]
    pub fn wait_for_loss(&self) {
        let daemon = self.daemon.as_ref().expect("a running agent");
        daemon.wait_for("disconnected");
    }

    /// SIGSTOP: its agent does nothing until it is resumed.
    pub fn suspend(&self) {
        signal(self.id(), "STOP");
    }

    /// SIGCONT.
    pub fn resume(&self) {
        signal(self.id(), "CONT");
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

    /// SIGSTOP: it does nothing until it is told to go on.
    pub fn pause(&self) {
        signal(self.id(), "STOP");
    }

    /// SIGCONT.
    pub fn go_on(&self) {
        signal(self.id(), "CONT");
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

    /// The scratch folder it lives in.
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
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
