//! The messages of the node protocol. Each frame is a map of one entry: the message's name
//! and its body.
//!
//! | stream | opened by | messages |
//! |---|---|---|
//! | control | node, bidirectional | `hello`, then `welcome` or `refused`; `presence`, `goaway` |
//! | links | gateway, one-way | `link` …, `links_end`, then each change: `link`, `link_removed` |
//! | reports | node, bidirectional | `report`, answered by `report_answer` |
//! | request | either side, bidirectional | one request and its answer |
//! | relay | node, bidirectional | `relay`, then one request of the session interface; its replies |
//! | join (own ALPN) | node, bidirectional | `join`; or `ask`, `nonce`, `reveal`, `shown`; at the end `joined` or `refused` |

use serde::{Deserialize, Serialize};

use super::frame::{FrameMessage, frame_message};
use crate::marker::Marker;
use crate::pairing::{Commitment, Nonce};
use crate::report::{Link, LinkId, Report, ReportAnswer};
use crate::session_api::{ApiError, Caller, HistoryItems};
use crate::{Catalog, EpochMs, HostName, NodeId, ThreadId};

/// How many threads one catalog page has, at most.
pub const MAX_CATALOG_PAGE: u32 = 200;
/// How many warnings or roots one presence has, at most.
pub const MAX_PRESENCE_ITEMS: usize = 64;
/// How many pending links one presence names, at most.
pub const MAX_PENDING_LINKS: usize = 1_000;
/// The longest text field of a message (names, reasons, hints), in bytes.
pub const MAX_TEXT_BYTES: usize = 1_024;

/// Everything that travels between node agent and gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The node's first word.
    Hello(Hello),
    /// The node is connected from now on.
    Welcome(Welcome),
    /// The node, or the machine that wants to join, is turned away.
    Refused(Refused),
    /// Signs of life, every 15 s.
    Presence(Presence),
    /// The sender is about to close.
    Goaway(Goaway),
    /// A link, new or changed.
    Link(Box<Link>),
    /// A link is gone: stop following.
    LinkRemoved {
        /// Which.
        link: LinkId,
    },
    /// All links have been sent; what follows are changes.
    LinksEnd {
        /// How many were sent.
        count: u64,
    },
    /// What a node found on a link.
    Report(Box<Report>),
    /// What the gateway did with it.
    ReportAnswer(ReportAnswer),
    /// Asks a node for its threads.
    CatalogPage(CatalogPage),
    /// A page of threads.
    CatalogThreads(CatalogThreads),
    /// Asks a node to read a thread up to its end and make the marker for following it.
    OpenThread(OpenThread),
    /// The thread, ready to be followed.
    ThreadOpened(Box<ThreadOpened>),
    /// Asks a node for a part of a thread's conversation.
    HistoryPage(HistoryPage),
    /// That part.
    HistoryItems(HistoryItems),
    /// Asks for a sign of life.
    Ping {},
    /// The sign of life.
    Pong {},
    /// Asks for a new certificate for the key of this connection.
    Renew(Renew),
    /// The new certificate.
    Renewed(Renewed),
    /// What follows on this stream is a request of the session interface.
    Relay(Relay),
    /// A request failed.
    Failed(ApiError),
    /// Asks to become a node.
    Join(Join),
    /// Is a node now.
    Joined(Joined),
    /// Asks to become a node without a link: somebody is to approve it.
    Ask(Ask),
    /// The gateway's nonce, in answer to `ask`.
    Nonce(NonceOf),
    /// The nonce that the asking machine had committed to.
    Reveal(NonceOf),
    /// People see the request from now on.
    Shown {},
    /// The other side's message is not known to this build.
    Unsupported {
        /// That message's name.
        name: String,
    },
}

frame_message!(
    Message,
    "node protocol message",
    [
        "hello",
        "welcome",
        "refused",
        "presence",
        "goaway",
        "link",
        "link_removed",
        "links_end",
        "report",
        "report_answer",
        "catalog_page",
        "catalog_threads",
        "open_thread",
        "thread_opened",
        "ping",
        "pong",
        "renew",
        "renewed",
        "relay",
        "failed",
        "join",
        "joined",
        "ask",
        "nonce",
        "reveal",
        "shown",
        "unsupported",
        "history_page",
        "history_items",
    ]
);

impl Message {
    /// The message's name on the wire.
    pub fn name(&self) -> &'static str {
        let at = match self {
            Self::Hello(_) => 0,
            Self::Welcome(_) => 1,
            Self::Refused(_) => 2,
            Self::Presence(_) => 3,
            Self::Goaway(_) => 4,
            Self::Link(_) => 5,
            Self::LinkRemoved { .. } => 6,
            Self::LinksEnd { .. } => 7,
            Self::Report(_) => 8,
            Self::ReportAnswer(_) => 9,
            Self::CatalogPage(_) => 10,
            Self::CatalogThreads(_) => 11,
            Self::OpenThread(_) => 12,
            Self::ThreadOpened(_) => 13,
            Self::Ping {} => 14,
            Self::Pong {} => 15,
            Self::Renew(_) => 16,
            Self::Renewed(_) => 17,
            Self::Relay(_) => 18,
            Self::Failed(_) => 19,
            Self::Join(_) => 20,
            Self::Joined(_) => 21,
            Self::Ask(_) => 22,
            Self::Nonce(_) => 23,
            Self::Reveal(_) => 24,
            Self::Shown {} => 25,
            Self::Unsupported { .. } => 26,
            Self::HistoryPage(_) => 27,
            Self::HistoryItems(_) => 28,
        };
        Self::NAMES[at]
    }
}

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

/// Asks a node for its threads, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogPage {
    /// Only this catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<Catalog>,
    /// How many to pass over.
    pub offset: u32,
    /// How many, at most [`MAX_CATALOG_PAGE`].
    pub limit: u32,
    /// Titles may be made of prompt text: only because somebody asked.
    pub titles: bool,
    /// The listing that the page before this one is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listing: Option<u64>,
}

/// A page of threads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogThreads {
    /// The threads, newest first.
    pub threads: Vec<Thread>,
    /// True when there are more.
    pub more: bool,
    /// Names the listing to whoever asks for its next page, so that the node need not look
    /// through its directories again. It is kept for a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listing: Option<u64>,
    /// How many of the oldest files are in no page of the listing.
    #[serde(default)]
    pub left_out: u64,
}

/// One thread on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thread {
    /// The family of the transcript.
    pub catalog: Catalog,
    /// The program's own id of the conversation.
    pub thread_id: ThreadId,
    /// The file.
    pub path: String,
    /// The working directory it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The title the program wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The file's last change.
    pub updated_at: EpochMs,
    /// The file's size.
    pub size_bytes: u64,
}

/// Asks a node to prepare a thread for being followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenThread {
    /// The family of the transcript.
    pub catalog: Catalog,
    /// The program's own id of the conversation.
    pub thread_id: ThreadId,
}

/// Asks a node for a part of a thread's conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryPage {
    /// The family of the transcript.
    pub catalog: Catalog,
    /// The program's own id of the conversation.
    pub thread_id: ThreadId,
    /// How many items.
    pub limit: u32,
    /// Only what stands before this place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// With tool calls and their results.
    #[serde(default)]
    pub tools: bool,
}

/// A thread, ready to be followed from its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadOpened {
    /// The thread.
    pub thread: Thread,
    /// The marker just after the file's last newline.
    pub marker: Marker,
}

/// Asks for a new certificate for the key of this connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Renew {
    /// The PKCS #10 signing request, DER, for the node's own key.
    #[serde(with = "serde_bytes")]
    pub signing_request: Vec<u8>,
}

/// A new certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Renewed {
    /// The certificate, DER.
    #[serde(with = "serde_bytes")]
    pub certificate: Vec<u8>,
}

/// Announces a request that a program on the node's machine makes: the next frame is the
/// request, and what comes back are its replies, as on a local socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    /// The conversation that the program runs, where it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
}

/// Asks to become a node.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Join {
    /// The code of the join link.
    #[serde(with = "serde_bytes")]
    pub code: [u8; 16],
    /// The PKCS #10 signing request, DER. Only its public key and its proof of possession
    /// are taken.
    #[serde(with = "serde_bytes")]
    pub signing_request: Vec<u8>,
    /// The machine's name, used where the invitation gave none.
    pub machine_name: String,
    /// The agent's version.
    pub agent_version: String,
}

impl std::fmt::Debug for Join {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Join")
            .field("machine_name", &self.machine_name)
            .field("agent_version", &self.agent_version)
            .finish_non_exhaustive()
    }
}

/// Asks to become a node: the key, and the commitment to a nonce that comes later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// The PKCS #10 signing request, DER. Only its public key and its proof of possession
    /// are taken.
    #[serde(with = "serde_bytes")]
    pub signing_request: Vec<u8>,
    /// See [`crate::pairing`].
    #[serde(with = "serde_bytes")]
    pub commitment: Commitment,
    /// The machine's name, for the person who approves.
    pub machine_name: String,
    /// The agent's version.
    pub agent_version: String,
}

/// The nonce of one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NonceOf {
    /// See [`crate::pairing`].
    #[serde(with = "serde_bytes")]
    pub nonce: Nonce,
}

/// Is a node now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Joined {
    /// The node's id.
    pub node_id: NodeId,
    /// Its name in keys.
    pub host_name: HostName,
    /// Its certificate, DER.
    #[serde(with = "serde_bytes")]
    pub certificate: Vec<u8>,
    /// The gateway's certificate authority, DER.
    #[serde(with = "serde_bytes")]
    pub authority: Vec<u8>,
}
