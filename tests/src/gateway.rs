//! A gateway in a process of its own.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::answer::{Answer, run};
use crate::binaries::binaries;
use crate::daemon::{Daemon, Log};
use crate::follow::Follow;
use crate::scratch::Scratch;

/// A gateway; dropping it kills it.
#[derive(Debug)]
pub struct Gateway {
    daemon: Option<Daemon>,
    options: Vec<String>,
    level: Log,
    listen: String,
    state_dir: PathBuf,
    scratch: Scratch,
}

impl Gateway {
    /// Starts a gateway that follows nothing on its own machine.
    pub fn start(scratch: &Scratch) -> Self {
        Self::with_options(scratch, vec!["--no-local-node".to_owned()], Log::Everything)
    }

    /// Starts a gateway that follows the transcripts of its own machine below `claude` and
    /// `codex`.
    pub fn start_with_local_node(scratch: &Scratch, claude: &Path, codex: &Path) -> Self {
        Self::with_options(scratch, local_roots(claude, codex), Log::Everything)
    }

    /// The same for whoever measures: it writes hardly any log.
    pub fn start_to_measure(scratch: &Scratch, claude: &Path, codex: &Path) -> Self {
        Self::with_options(scratch, local_roots(claude, codex), Log::Warnings)
    }

    /// A gateway that follows nothing on its own machine and writes hardly any log.
    pub fn start_alone_to_measure(scratch: &Scratch) -> Self {
        Self::with_options(scratch, vec!["--no-local-node".to_owned()], Log::Warnings)
    }

    /// How large the database's write-ahead log is, in bytes: it grows with every commit.
    pub fn wal_bytes(&self) -> u64 {
        let wal = self.state_dir.join("state.sqlite-wal");
        std::fs::metadata(wal).map_or(0, |file| file.len())
    }

    fn with_options(scratch: &Scratch, options: Vec<String>, level: Log) -> Self {
        let mut gateway = Self {
            daemon: None,
            options,
            level,
            listen: "127.0.0.1:0".to_owned(),
            state_dir: scratch.path().join("gateway"),
            scratch: scratch.clone(),
        };
        gateway.restart();
        gateway
    }

    /// Starts it again on its port, and waits until it is ready.
    #[track_caller]
    pub fn restart(&mut self) {
        let mut command = self.scratch.command(&binaries().tidings);
        command
            .args(["gateway", "run", "--json", "--http", "off", "--listen"])
            .arg(&self.listen)
            .arg("--state-dir")
            .arg(&self.state_dir)
            .args(&self.options);
        let daemon = Daemon::spawn(&mut command, &self.log(), self.level);
        let ready = daemon.wait_for("ready");
        assert_eq!(ready["pid"], daemon.id(), "{ready}");
        let socket = self.state_dir.join("gateway.sock");
        assert_eq!(ready["socket"].as_str(), socket.to_str(), "{ready}");
        let listen = ready["listen"].as_str().expect("an address");
        assert!(
            listen.starts_with("127.0.0.1:") && !listen.ends_with(":0"),
            "{ready}"
        );
        listen.clone_into(&mut self.listen);
        self.daemon = Some(daemon);
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

fn local_roots(claude: &Path, codex: &Path) -> Vec<String> {
    [("claude", claude), ("codex", codex)]
        .map(|(catalog, root)| ["--root".to_owned(), format!("{catalog}={}", root.display())])
        .concat()
}
