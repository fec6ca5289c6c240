//! A command that tells what happens for as long as it runs.

use std::process::Command;

use serde_json::Value;

use crate::binaries::binaries;
use crate::daemon::{Daemon, Ended, Log, signal};
use crate::gateway::Gateway;
use crate::node::Node;

/// A running command and its events; dropping it kills it.
#[derive(Debug)]
pub struct Speaking(Daemon);

impl Speaking {
    fn spawn(command: &mut Command, log: &std::path::Path) -> Self {
        Self(Daemon::spawn(command, log, Log::Everything))
    }

    /// The next event of this name; others on the way are passed over.
    #[track_caller]
    pub fn wait_for(&self, event: &str) -> Value {
        self.0.wait_for(event)
    }

    /// Waits for it to end by itself.
    #[track_caller]
    pub fn wait_for_end(self) -> Ended {
        self.0.wait_for_end()
    }

    /// Ctrl-C; how it ends.
    #[track_caller]
    pub fn interrupt(self) -> Ended {
        signal(self.0.id(), "INT");
        self.0.wait_for_end()
    }
}

impl Gateway {
    /// Runs `tidings nodes listen`; it listens when this returns.
    #[track_caller]
    pub fn listen_for_nodes(&self) -> Speaking {
        let mut command = self.scratch().command(&binaries().tidings);
        command
            .args(["nodes", "listen", "--json", "--state-dir"])
            .arg(self.state_dir());
        let listening = Speaking::spawn(&mut command, &self.log());
        let first = listening.wait_for("listening");
        assert_eq!(first["address"], self.address(), "{first}");
        listening
    }
}

impl Node {
    /// Runs `tidings-node join HOST:PORT`, under this machine's name.
    pub fn ask(&self, gateway: &Gateway) -> Speaking {
        let mut command = gateway.scratch().command(&binaries().node);
        command
            .args(["join", gateway.address(), "--name", self.name(), "--json"])
            .arg("--state-dir")
            .arg(self.state_dir());
        Speaking::spawn(&mut command, &self.log())
    }
}
