//! What is said on the control stream: the first words, signs of life, the end.

use serde::{Deserialize, Serialize};

use crate::report::LinkId;
use crate::{Catalog, EpochMs, HostName};

/// The node's first word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// The oldest protocol version the node speaks.
    pub oldest_version: u32,
    /// The newest.
    pub newest_version: u32,
    /// The agent's version.
    pub agent_version: String,
    /// New at every start of the agent's process.
    #[serde(with = "serde_bytes")]
    pub instance: [u8; 16],
    /// The catalogs it has roots for.
    pub catalogs: Vec<Catalog>,
}

/// The node is connected from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// The protocol version both speak.
    pub version: u32,
    /// The gateway's version.
    pub gateway_version: String,
    /// The gateway's clock.
    pub gateway_time: EpochMs,
    /// The node's name in keys.
    pub host_name: HostName,
    /// How many reports may wait for their answers at once.
    pub max_reports_in_flight: u32,
}

/// Turned away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Why, for programs.
    pub code: RefusalCode,
    /// Why, for people.
    pub reason: String,
    /// What to do.
    pub hint: String,
}

/// Why a node is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalCode {
    /// No protocol version in common.
    Version,
    /// No node of this gateway.
    UnknownNode,
    /// A node no longer.
    Revoked,
    /// The node's certificate has expired: on this connection it may ask for a new one, and
    /// for nothing else.
    CertificateExpired,
    /// Another machine with the same key is connected.
    DuplicateIdentity,
    /// The join code is wrong, used or too old.
    JoinCode,
    /// The signing request is no good.
    SigningRequest,
    /// The host name is taken.
    NameTaken,
    /// Too many attempts; later.
    TooMany,
    /// Nobody listens for machines that ask without a link.
    NotListening,
    /// Somebody looked at the request and said no.
    Rejected,
    /// Nobody approved the request in time.
    TimedOut,
    /// The certificate that was shown has been revoked; the node has not.
    CertificateRevoked,
    /// Something else.
    #[serde(other)]
    Other,
}

/// Signs of life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Presence {
    /// The node's clock.
    pub node_time: EpochMs,
    /// Full sweeps so far.
    pub sweeps: u64,
    /// Where it looks for transcripts.
    pub roots: Vec<RootPresence>,
    /// Links with a probe or a report that is not through yet: for these nothing newer
    /// than their last report is known.
    pub pending: Vec<LinkId>,
    /// True when `pending` was cut: take every link as pending.
    pub pending_truncated: bool,
    /// What an operator should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One root, as its node sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootPresence {
    /// The family of its transcripts.
    pub catalog: Catalog,
    /// The directory.
    pub path: String,
    /// How its files are followed.
    pub state: RootState,
}

/// How the files under a root are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RootState {
    /// By file events, and a sweep.
    Watched,
    /// By sweeps alone.
    Polled,
    /// Not at all: it cannot be read now.
    Unavailable,
}

impl RootState {
    /// The state's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Watched => "watched",
            Self::Polled => "polled",
            Self::Unavailable => "unavailable",
        }
    }
}

/// The sender is about to close.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goaway {
    /// Why.
    pub reason: String,
}
