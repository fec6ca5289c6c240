//! Two machines: a gateway, and a node that has joined it by a printed link.

use serde_json::Value;

use crate::gateway::Gateway;
use crate::node::Node;
use crate::scratch::Scratch;
use crate::transcripts::Transcript;
use crate::weather::Proxy;

/// The session that watches in most tests.
pub const WATCHER: &str = "agent:main:main";

/// A gateway, and a connected node. Each has a process and a state directory of its own.
#[derive(Debug)]
pub struct TwoMachines {
    /// The first machine.
    pub gateway: Gateway,
    /// The second.
    pub node: Node,
}

/// A thread that has become a session.
#[derive(Debug)]
pub struct Adopted {
    /// The session.
    pub key: String,
    /// The version it is watched from; for one that is not watched, its version.
    pub version: u64,
    /// The whole answer.
    pub answer: Value,
}

impl TwoMachines {
    /// Both, up and joined.
    pub fn start() -> Self {
        let gateway = Gateway::start(&Scratch::new());
        let mut node = Node::join(&gateway, "laptop");
        node.run();
        Self { gateway, node }
    }

    /// Both, with a network of changing weather between them.
    pub fn with_weather() -> (Self, Proxy) {
        let gateway = Gateway::start(&Scratch::new());
        let proxy = Proxy::to(gateway.address());
        let mut node = Node::join_at(&gateway, "laptop", &proxy.address());
        node.run();
        (Self { gateway, node }, proxy)
    }

    /// Adopts a thread of the node, watched by [`WATCHER`] from there on.
    pub fn adopt(&self, transcript: &dyn Transcript) -> Adopted {
        adopt(&self.gateway, self.node.name(), transcript, Some(WATCHER))
    }

    /// Adopts a thread of the node that nobody watches.
    pub fn adopt_unwatched(&self, transcript: &dyn Transcript) -> Adopted {
        adopt(&self.gateway, self.node.name(), transcript, None)
    }
}

impl Gateway {
    /// Adopts a thread of the gateway's own machine, watched by [`WATCHER`].
    pub fn adopt_local(&self, transcript: &dyn Transcript) -> Adopted {
        adopt(self, "local", transcript, Some(WATCHER))
    }
}

/// The text of a notice: byte for byte what SPEC §4.4 says.
pub fn notice(target: &str, changes_since: u64) -> String {
    format!(
        "Session \"{target}\" changed (other actor). Reconcile before acting: session_status \
         sessionKey \"{target}\" changesSince {changes_since}."
    )
}

fn adopt(
    gateway: &Gateway,
    host: &str,
    transcript: &dyn Transcript,
    watcher: Option<&str>,
) -> Adopted {
    let (catalog, thread) = (transcript.catalog(), transcript.thread());
    let mut arguments = vec!["sessions", "adopt", catalog, host, thread];
    if let Some(watcher) = watcher {
        arguments.extend(["--watch-by", watcher]);
    }
    let answer = gateway.ask(&arguments);
    let key = format!("agent:main:adopted:{catalog}:{host}:{thread}");
    assert_eq!(answer["sessionKey"], *key, "{answer}");
    assert_eq!(answer["link"]["offset"], transcript.len(), "{answer}");
    let status = gateway.ask(&["sessions", "status", &key]);
    let version = status["stateVersion"].as_u64().expect("a version");
    if watcher.is_some() {
        assert_eq!(answer["watched"]["watched"], true, "{answer}");
        assert_eq!(answer["watched"]["fromVersion"], version, "{answer}");
    }
    Adopted {
        key,
        version,
        answer,
    }
}
