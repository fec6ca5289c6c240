//! Values that several samples share.

use tidings_protocol::marker::{
    Bar, Carried, Digests, FileHint, QueueItem, QueueItems, ThreadFacts, ThreadKind, WaitingRecord,
};
use tidings_protocol::report::{Delivery, Echo, Inconclusive, Link, LinkId, Look};
use tidings_protocol::session_api::{ApiError, ErrorType};
use tidings_protocol::{Catalog, EpochMs, Host, HostName, Marker, NodeId, SessionKey, ThreadId};

/// 2026-11-30 12:00 UTC.
pub(super) const NOON: EpochMs = 1_796_040_000_000;

/// Every kind of error with its name on the wire.
pub(super) const ERROR_TYPES: [(&str, ErrorType); 12] = [
    ("not found", ErrorType::NotFound),
    ("conflict", ErrorType::Conflict),
    ("invalid request", ErrorType::InvalidRequest),
    ("invalid data", ErrorType::InvalidData),
    ("no input", ErrorType::NoInput),
    ("unavailable", ErrorType::Unavailable),
    ("cannot create", ErrorType::CannotCreate),
    ("try later", ErrorType::TryLater),
    ("not permitted", ErrorType::NotPermitted),
    ("configuration", ErrorType::Configuration),
    ("unsupported", ErrorType::Unsupported),
    ("internal", ErrorType::Internal),
];

pub(super) fn node_id() -> NodeId {
    NodeId::parse("00112233445566778899aabbccddeeff").expect("a node id")
}

pub(super) fn node_host() -> Host {
    Host::Node(node_id())
}

pub(super) fn host_name() -> HostName {
    HostName::parse("laptop-2").expect("a host name")
}

pub(super) fn thread() -> ThreadId {
    ThreadId::parse("6f0d6a1e-5f1b-4c55-9d0e-2b7a1c3d4e5f").expect("a thread id")
}

pub(super) fn key(rest: &str) -> SessionKey {
    SessionKey::parse(&format!("agent:main:{rest}")).expect("a session key")
}

pub(super) fn adopted_key() -> SessionKey {
    key(&format!("adopted:claude:laptop-2:{}", thread()))
}

pub(super) const PATH: &str = "/home/ada/.claude/projects/-home-ada-engine/6f0d6a1e.jsonl";

/// An error of this kind, with a hint.
pub(super) fn error(error_type: ErrorType) -> ApiError {
    ApiError::new(error_type, "what went wrong").with_hint("what to do")
}

/// A marker with every optional field and something in every list.
pub(super) fn full_marker() -> Marker {
    Marker {
        offset: 1_048_577,
        before: *b"before-the-offst",
        records: digests(&[1, 2, 3]),
        human_records: digests(&[2]),
        newest_record_at: Some(NOON),
        floor: NOON - 60_000,
        file: FileHint {
            device: 66_305,
            inode: u64::MAX,
        },
        carried: carried(),
        bar: Some(Bar {
            records: digests(&[4, 5]),
            newest_record_at: Some(NOON - 1),
        }),
    }
}

fn carried() -> Carried {
    let item = |text: u8, human, counts| QueueItem {
        text: [text; 8],
        queued_at: NOON + EpochMs::from(text),
        human,
        counts,
    };
    Carried {
        queue: QueueItems(vec![
            item(10, true, true),
            item(11, true, false),
            item(12, false, true),
            item(13, false, false),
        ]),
        counted: digests(&[14]),
        waiting: vec![
            WaitingRecord {
                text: [15; 8],
                at: Some(NOON),
                byte_start: 1_000,
                byte_end: 1_200,
                followed_by: 3,
                counts: true,
                echo_of: Some(7),
                has_kinds: true,
            },
            WaitingRecord {
                text: [16; 8],
                at: None,
                byte_start: 1_200,
                byte_end: 70_000,
                followed_by: 0,
                counts: false,
                echo_of: None,
                has_kinds: false,
            },
        ],
        facts: ThreadFacts {
            headed: true,
            kind: ThreadKind::Subagent,
            version: Some("2.1.280".to_owned()),
            created_at: Some(NOON - 3_600_000),
            forked: true,
            replaying: false,
            user_events: true,
            last_text: Some([17; 8]),
            replied: true,
        },
    }
}

fn digests(first_bytes: &[u8]) -> Digests {
    first_bytes
        .iter()
        .map(|byte| [*byte, 0, 0, 0, 0, 0, 0, 255])
        .collect()
}

/// A link nobody has reported on and nothing was delivered to.
pub(super) fn fresh_link() -> Link {
    Link {
        link: LinkId(3),
        revision: 0,
        catalog: Catalog::Codex,
        thread_id: thread(),
        path: "/home/ada/.codex/sessions/2026/11/30/rollout-6f0d6a1e.jsonl".to_owned(),
        marker: Marker::at_start(NOON),
        echo: Echo {
            key: vec![9; 32],
            ..Echo::default()
        },
        last_look: Look::Good,
    }
}

/// A link with a long life behind it.
pub(super) fn old_link() -> Link {
    let delivery = |id: u64, at| Delivery {
        id,
        digest: [u8::try_from(id).expect("a small number"); 16],
        at,
    };
    Link {
        link: LinkId(u64::MAX),
        revision: 70_000,
        catalog: Catalog::Claude,
        thread_id: thread(),
        path: PATH.to_owned(),
        marker: full_marker(),
        echo: Echo {
            key: vec![8; 32],
            deliveries: vec![delivery(1, NOON - 5), delivery(2, NOON)],
            told_at: Some(NOON + 5),
        },
        last_look: Look::Inconclusive(Inconclusive::RootUnavailable),
    }
}
