//! A gateway in a process of its own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::answer::{Answer, Begun, run};
use crate::binaries::binaries;
use crate::cable::NetworkEnd;
use crate::daemon::{Daemon, Ended, Log, signal};
use crate::follow::Follow;
use crate::http;
use crate::scratch::Scratch;
use crate::terminal::Terminal;

/// How a gateway is run.
#[derive(Debug, Clone)]
pub struct Setup {
    arguments: Vec<String>,
    environment: Vec<(String, OsString)>,
    http: &'static str,
    level: Log,
    state_dir: Option<PathBuf>,
    end: Option<NetworkEnd>,
}

impl Setup {
    /// A gateway that follows nothing on its own machine.
    #[must_use]
    pub fn without_local_node() -> Self {
        Self::with_arguments(vec!["--no-local-node".to_owned()])
    }

    /// A gateway that follows the transcripts of its own machine below `claude` and `codex`.
    #[must_use]
    pub fn with_local_node(claude: &Path, codex: &Path) -> Self {
        let roots = [("claude", claude), ("codex", codex)]
            .map(|(catalog, root)| ["--root".to_owned(), format!("{catalog}={}", root.display())])
            .concat();
        Self::with_arguments(roots)
    }

    fn with_arguments(arguments: Vec<String>) -> Self {
        Self {
            arguments,
            environment: Vec::new(),
            http: "off",
            level: Log::Everything,
            state_dir: None,
            end: None,
        }
    }

    /// The same with hardly any log, for whoever measures or asks very often.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.level = Log::Warnings;
        self
    }

    /// The same with one more variable in its environment.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// The same with this configuration file.
    #[must_use]
    pub fn with_config(mut self, file: &Path) -> Self {
        self.arguments
            .extend(["--config".to_owned(), file.display().to_string()]);
        self
    }

    /// The same with an HTTP door.
    #[must_use]
    pub fn with_http(mut self) -> Self {
        self.http = "127.0.0.1:0";
        self
    }

    /// The same at an end of a cable.
    #[must_use]
    pub fn at(mut self, end: &NetworkEnd) -> Self {
        self.end = Some(end.clone());
        self
    }

    fn ip(&self) -> &'static str {
        self.end.as_ref().map_or("127.0.0.1", NetworkEnd::address)
    }

    /// The same with its state directory there.
    #[must_use]
    pub fn with_state_dir(mut self, state_dir: &Path) -> Self {
        self.state_dir = Some(state_dir.to_owned());
        self
    }
}

/// A gateway; dropping it kills it.
#[derive(Debug)]
pub struct Gateway {
    daemon: Option<Daemon>,
    setup: Setup,
    listen: String,
    http: Option<String>,
    state_dir: PathBuf,
    scratch: Scratch,
}

impl Gateway {
    /// Starts a gateway that follows nothing on its own machine.
    pub fn start(scratch: &Scratch) -> Self {
        Self::start_as(scratch, Setup::without_local_node())
    }

    /// Starts a gateway that follows the transcripts of its own machine below `claude` and
    /// `codex`.
    pub fn start_with_local_node(scratch: &Scratch, claude: &Path, codex: &Path) -> Self {
        Self::start_as(scratch, Setup::with_local_node(claude, codex))
    }

    /// The same for whoever measures: it writes hardly any log.
    pub fn start_to_measure(scratch: &Scratch, claude: &Path, codex: &Path) -> Self {
        Self::start_as(scratch, Setup::with_local_node(claude, codex).quiet())
    }

    /// A gateway that follows nothing on its own machine and writes hardly any log.
    pub fn start_alone_to_measure(scratch: &Scratch) -> Self {
        Self::start_as(scratch, Setup::without_local_node().quiet())
    }

    /// How large the database's write-ahead log is, in bytes: it grows with every commit.
    pub fn wal_bytes(&self) -> u64 {
        let wal = self.state_dir.join("state.sqlite-wal");
        std::fs::metadata(wal).map_or(0, |file| file.len())
    }

    /// Starts a gateway.
    pub fn start_as(scratch: &Scratch, setup: Setup) -> Self {
        let mut gateway = Self::stopped(scratch, setup);
        gateway.restart();
        gateway
    }

    /// A gateway that does not run yet.
    pub fn stopped(scratch: &Scratch, setup: Setup) -> Self {
        let own = || scratch.path().join("gateway");
        Self {
            daemon: None,
            listen: format!("{}:0", setup.ip()),
            http: None,
            state_dir: setup.state_dir.clone().unwrap_or_else(own),
            setup,
            scratch: scratch.clone(),
        }
    }

    /// Starts it again on its port, and waits until it is ready.
    #[track_caller]
    pub fn restart(&mut self) {
        self.begin_restart();
        let daemon = self.daemon.as_ref().expect("a process");
        let ready = daemon.wait_for("ready");
        assert_eq!(ready["pid"], daemon.id(), "{ready}");
        let socket = self.state_dir.join("gateway.sock");
        assert_eq!(ready["socket"].as_str(), socket.to_str(), "{ready}");
        let listen = ready["listen"].as_str().expect("an address");
        assert!(
            listen.starts_with(self.setup.ip()) && !listen.ends_with(":0"),
            "{ready}"
        );
        listen.clone_into(&mut self.listen);
        self.http = ready["http"].as_str().map(str::to_owned);
    }

    /// Asks its HTTP door for what takes no token: status and body.
    #[track_caller]
    pub fn get(&self, path: &str) -> (u16, String) {
        let url = self.http.as_deref().expect("an HTTP door");
        http::get(url, path).expect("an answer")
    }

    /// Starts it again otherwise than before.
    #[track_caller]
    pub fn restart_as(&mut self, setup: Setup) {
        self.setup = setup;
        self.restart();
    }

    /// Starts it again without waiting for anything.
    pub fn begin_restart(&mut self) {
        let daemon = Daemon::spawn(&mut self.command(), &self.log(), self.setup.level);
        self.daemon = Some(daemon);
    }

    /// Starts it again, and kills it once it is ready. False where it ended by itself before.
    #[track_caller]
    pub fn restart_and_kill(&mut self) -> bool {
        self.begin_restart();
        let daemon = self.daemon.as_ref().expect("a process");
        let ready = daemon.has_come_to("ready");
        self.kill();
        ready
    }

    /// Starts it in a way that it must refuse: what it says.
    pub fn run_refused(&self) -> Answer {
        run(&mut self.command())
    }

    fn command(&self) -> Command {
        let end = self.setup.end.as_ref();
        let mut command = self.scratch.command_at(end, &binaries().tidings);
        command
            .args(["gateway", "run", "--json", "--http", self.setup.http])
            .args(["--listen", &self.listen])
            .arg("--state-dir")
            .arg(&self.state_dir)
            .args(&self.setup.arguments)
            .envs(self.setup.environment.iter().cloned());
        command
    }

    /// Waits a moment, and says whether it is still running then.
    pub fn runs_on(&self, moment: Duration) -> bool {
        self.daemon
            .as_ref()
            .expect("a running gateway")
            .runs_on(moment)
    }

    /// Waits for it to end by itself.
    #[track_caller]
    pub fn wait_for_end(&mut self) -> Ended {
        self.daemon
            .take()
            .expect("a running gateway")
            .wait_for_end()
    }

    /// SIGSTOP: it does nothing until it is resumed.
    pub fn suspend(&self) {
        signal(self.id(), "STOP");
    }

    /// SIGCONT.
    pub fn resume(&self) {
        signal(self.id(), "CONT");
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.daemon.take().expect("a running gateway").kill();
    }

    /// SIGTERM; its exit code.
    #[track_caller]
    pub fn stop(&mut self) -> i32 {
        self.daemon.take().expect("a running gateway").stop()
    }

    /// SIGTERM; how it ends.
    #[track_caller]
    pub fn stop_and_listen(&mut self) -> Ended {
        let daemon = self.daemon.take().expect("a running gateway");
        signal(daemon.id(), "TERM");
        daemon.wait_for_end()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.daemon.as_ref().expect("a running gateway").id()
    }

    /// Where nodes connect.
    pub fn address(&self) -> &str {
        &self.listen
    }

    /// Its state directory.
    pub fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    /// Its log.
    pub fn log(&self) -> PathBuf {
        self.scratch.path().join("gateway.log")
    }

    /// The scratch folder it lives in.
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Runs `tidings <arguments> --json` against it.
    pub fn run(&self, arguments: &[&str]) -> Answer {
        let mut command = self.scratch.command(&binaries().tidings);
        command
            .args(arguments)
            .args(["--json", "--state-dir"])
            .arg(&self.state_dir);
        run(&mut command)
    }

    /// The answer of a command that must succeed.
    #[track_caller]
    pub fn ask(&self, arguments: &[&str]) -> Value {
        self.run(arguments).done()
    }

    /// What kinds of signals a session has, oldest first.
    #[track_caller]
    pub fn kinds(&self, session: &str) -> Vec<String> {
        let list = self.ask(&["signals", "list", "--session", session]);
        let signals = list["signals"].as_array().expect("a list of signals");
        let kind = |signal: &Value| signal["kind"].as_str().expect("a kind").to_owned();
        signals.iter().map(kind).collect()
    }

    /// A person changes the goal of a session, recorded by hand.
    #[track_caller]
    pub fn goal_changed(&self, session: &str) {
        let what = ["--kind", "goal_changed", "--actor", "human"];
        self.ask(&[&["signals", "record", "--session", session][..], &what].concat());
    }

    /// Runs `tidings <arguments>` against it in a terminal.
    pub fn terminal(&self, arguments: &[&str]) -> Terminal {
        let state_dir = self.state_dir.to_str().expect("a path of text");
        let arguments = [arguments, &["--state-dir", state_dir]].concat();
        Terminal::run(&self.scratch, &binaries().tidings, &arguments)
    }

    /// Begins `tidings <arguments>` against it, and leaves it running.
    pub fn begin(&self, arguments: &[&str]) -> Begun {
        let mut command = self.scratch.command(&binaries().tidings);
        command
            .args(arguments)
            .args(["--json", "--state-dir"])
            .arg(&self.state_dir);
        Begun::spawn(&mut command)
    }

    /// SIGHUP: it reads its configuration anew.
    pub fn reload(&self) {
        signal(self.id(), "HUP");
    }

    /// Follows the log from behind `after` on.
    pub fn follow(&self, after: u64) -> Follow {
        let mut command = self.scratch.command(&binaries().tidings);
        command
            .args(["signals", "follow", "--json", "--after", &after.to_string()])
            .arg("--state-dir")
            .arg(&self.state_dir)
            .stderr(std::process::Stdio::null());
        Follow::spawn(&mut command)
    }
}
