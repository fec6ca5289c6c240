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
use crate::report::{Link, LinkId, Report, ReportAnswer};
use crate::session_api::{ApiError, Caller, HistoryItems};
use crate::{Catalog, EpochMs, ThreadId};

pub use super::control::{
    Goaway, Hello, Presence, RefusalCode, Refused, RootPresence, RootState, Welcome,
};
pub use super::joining::{Ask, Join, Joined, NonceOf, Renew, Renewed};

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

/// Announces a request that a program on the node's machine makes: the next frame is the
/// request, and what comes back are its replies, as on a local socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    /// The conversation that the program runs, where it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Caller>,
}
