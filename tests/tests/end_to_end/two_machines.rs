//! The two machines on which agent programs are tried.

use serde_json::Value;
use tidings_tests::transcripts::{Claude, Codex, Transcript};
use tidings_tests::{Gateway, Node, Scratch};

/// A gateway that follows its own machine, and a laptop that has joined it.
pub(crate) struct Machines {
    pub(crate) gateway: Gateway,
    pub(crate) laptop: Node,
}

impl Machines {
    pub(crate) fn start() -> Self {
        let scratch = Scratch::new();
        let roots = ["claude", "codex"].map(|root| scratch.folder(root));
        let gateway = Gateway::start_with_local_node(&scratch, &roots[0], &roots[1]);
        let mut laptop = Node::join(&gateway, "laptop");
        laptop.run();
        Self { gateway, laptop }
    }

    pub(crate) fn claude_here(&self) -> Claude {
        Claude::create(&self.gateway.scratch().path().join("claude"))
    }

    pub(crate) fn codex_here(&self) -> Codex {
        Codex::create(&self.gateway.scratch().path().join("codex"))
    }

    /// The session that a thread becomes.
    pub(crate) fn adopt(&self, host: &str, transcript: &dyn Transcript) -> String {
        let (catalog, thread) = (transcript.catalog(), transcript.thread());
        let adopted = self
            .gateway
            .ask(&["sessions", "adopt", catalog, host, thread]);
        adopted["sessionKey"].as_str().expect("a key").to_owned()
    }

    pub(crate) fn watch(&self, watcher: &str, target: &str) -> u64 {
        let added = self.gateway.ask(&["watch", "add", watcher, target]);
        assert_eq!(added["watched"], true, "{added}");
        added["fromVersion"].as_u64().expect("a version")
    }

    pub(crate) fn pending(&self, watcher: &str) -> usize {
        let list = self.gateway.ask(&["notices", "list", watcher]);
        list["notices"].as_array().expect("notices").len()
    }

    pub(crate) fn log(&self, session: &str) -> Vec<(String, Value)> {
        let list = self.gateway.ask(&["signals", "list", "--session", session]);
        let signals = list["signals"].as_array().expect("signals");
        signals
            .iter()
            .map(|signal| {
                let kind = signal["kind"].as_str().expect("a kind").to_owned();
                (kind, signal["payload"].clone())
            })
            .collect()
    }
}
