//! What a committed transaction means to the rest of the gateway.

use std::fmt;
use std::sync::Arc;

use tidings_protocol::report::LinkId;
use tidings_protocol::{Host, NodeId, SessionKey};

use super::address::AgentId;
use super::error::StateError;

/// How many effects a subscriber may lag behind before it is told that it missed some:
/// several groups' worth, after which it does better to read afresh.
pub const EFFECTS_KEPT: usize = 1024;

/// Something that a committed transaction changed. Effects carry no state, only where to
/// look: a subscriber that lagged reads the state afresh and has lost nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// A notice became available for a watcher that is not nested.
    Wake(Wake),
    /// A link of this host is new or changed other than by its own report.
    LinkChanged {
        /// The host that follows it.
        host: Host,
        /// The link.
        link: LinkId,
    },
    /// A link of this host is gone.
    LinkRemoved {
        /// The host that followed it.
        host: Host,
        /// The link.
        link: LinkId,
    },
    /// Entries of this agent changed: its projection is due.
    EntriesChanged {
        /// The agent.
        agent: AgentId,
    },
    /// A certificate of this node was revoked: it must not stay connected with it.
    CertificateRevoked {
        /// The node.
        node: NodeId,
    },
    /// An API token was revoked: nothing it opened stays open.
    TokenRevoked {
        /// Its number.
        token: i64,
    },
    /// The gateway added an entry of this agent.
    EntryAdded {
        /// The agent.
        agent: AgentId,
    },
    /// A node is no longer what it was: revoked, removed, renamed, or paired anew.
    NodeChanged {
        /// The node.
        node: NodeId,
    },
}

/// One watcher has one more notice to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake {
    /// The session to wake.
    pub watcher: SessionKey,
    /// The session that changed.
    pub target: SessionKey,
}

/// How the database stands.
#[derive(Clone)]
#[non_exhaustive]
pub enum Health {
    /// Reads and writes.
    Serving,
    /// Reads only, because the disk is full. The writer tries again every 5 s.
    ReadOnly(Arc<StateError>),
    /// Nothing more is written: the process must end with this error.
    Failed(Arc<StateError>),
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serving => f.write_str("Serving"),
            Self::ReadOnly(error) => write!(f, "ReadOnly({error})"),
            Self::Failed(error) => write!(f, "Failed({error})"),
        }
    }
}
