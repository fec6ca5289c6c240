//! The messages of the node protocol.

use tidings_protocol::report::{
    Activity, Evidence, Inconclusive, LinkId, Outcome, Report, ReportAnswer, ReportVerdict,
};
use tidings_protocol::session_api::{Caller, HistoryItems};
use tidings_protocol::wire::Message;
use tidings_protocol::wire::messages::{
    CatalogPage, CatalogThreads, Goaway, Hello, HistoryPage, Join, Joined, OpenThread, Presence,
    RefusalCode, Refused, Relay, Renew, Renewed, RootPresence, RootState, Thread, ThreadOpened,
    Welcome,
};
use tidings_protocol::{Catalog, Marker};

use super::given_replies::history_items;
use super::parts::{
    ERROR_TYPES, NOON, PATH, error, fresh_link, full_marker, host_name, node_id, old_link, thread,
};

/// Samples of every message.
pub(super) fn all() -> Vec<(&'static str, Message)> {
    [
        connection(),
        links(),
        reports(),
        answers(),
        catalog(),
        pairing(),
    ]
    .concat()
}

fn connection() -> Vec<(&'static str, Message)> {
    let refusal = |(case, code)| {
        let refused = Refused {
            code,
            reason: "why".to_owned(),
            hint: "what to do".to_owned(),
        };
        (case, Message::Refused(refused))
    };
    let mut messages = vec![
        ("a node with every catalog", Message::Hello(hello())),
        ("welcome", Message::Welcome(welcome())),
        ("with everything", Message::Presence(presence())),
        (
            "with nothing to tell",
            Message::Presence(Presence::default()),
        ),
        (
            "goaway",
            Message::Goaway(Goaway {
                reason: "the gateway is stopping".to_owned(),
            }),
        ),
        (
            "unsupported",
            Message::Unsupported {
                name: "tomorrow".to_owned(),
            },
        ),
    ];
    messages.extend(
        [
            ("version", RefusalCode::Version),
            ("unknown node", RefusalCode::UnknownNode),
            ("revoked", RefusalCode::Revoked),
            ("duplicate identity", RefusalCode::DuplicateIdentity),
            ("join code", RefusalCode::JoinCode),
            ("signing request", RefusalCode::SigningRequest),
            ("name taken", RefusalCode::NameTaken),
            ("too many", RefusalCode::TooMany),
            ("not listening", RefusalCode::NotListening),
            ("rejected", RefusalCode::Rejected),
            ("timed out", RefusalCode::TimedOut),
            ("certificate revoked", RefusalCode::CertificateRevoked),
            ("other", RefusalCode::Other),
        ]
        .map(refusal),
    );
    messages
}

fn hello() -> Hello {
    Hello {
        oldest_version: 1,
        newest_version: 300,
        agent_version: "0.1.0".to_owned(),
        instance: *b"instance-of-node",
        catalogs: Catalog::ALL.to_vec(),
    }
}

fn welcome() -> Welcome {
    Welcome {
        version: 1,
        gateway_version: "0.1.0".to_owned(),
        gateway_time: NOON,
        host_name: host_name(),
        max_reports_in_flight: 64,
    }
}

fn presence() -> Presence {
    let root = |catalog, state| RootPresence {
        catalog,
        path: "/home/ada/.codex/sessions".to_owned(),
        state,
    };
    Presence {
        node_time: NOON,
        sweeps: 129,
        roots: vec![
            root(Catalog::Claude, RootState::Watched),
            root(Catalog::Codex, RootState::Polled),
            root(Catalog::Openclaw, RootState::Unavailable),
        ],
        pending: vec![LinkId(3), LinkId(u64::MAX)],
        pending_truncated: true,
        warnings: vec!["fs.inotify.max_user_watches is too small".to_owned()],
    }
}

fn links() -> Vec<(&'static str, Message)> {
    vec![
        ("fresh", Message::Link(Box::new(fresh_link()))),
        (
            "with a long life behind it",
            Message::Link(Box::new(old_link())),
        ),
        (
            "link_removed",
            Message::LinkRemoved {
                link: LinkId(70_000),
            },
        ),
        ("links_end", Message::LinksEnd { count: 1_000 }),
    ]
}

fn reports() -> Vec<(&'static str, Message)> {
    let report = |(case, outcome)| {
        let report = Report {
            link: LinkId(3),
            revision: 41,
            marker: full_marker(),
            path: PATH.to_owned(),
            size: 2_097_152,
            unclassified: 2,
            outcome,
        };
        (case, Message::Report(Box::new(report)))
    };
    let activity = |turns, echoed| Outcome::Activity(Activity { turns, echoed });
    [
        ("activity", activity(turns(), vec![7])),
        ("activity without an echo", activity(turns(), Vec::new())),
        ("an echo alone", activity(Vec::new(), vec![7, 8])),
        ("quiet", Outcome::Quiet),
        ("missing", Outcome::Missing),
        (
            "root unavailable",
            Outcome::Inconclusive(Inconclusive::RootUnavailable),
        ),
        ("never seen", Outcome::Inconclusive(Inconclusive::NeverSeen)),
        (
            "permission denied",
            Outcome::Inconclusive(Inconclusive::PermissionDenied),
        ),
        (
            "read failed",
            Outcome::Inconclusive(Inconclusive::ReadFailed),
        ),
        ("timed out", Outcome::Inconclusive(Inconclusive::TimedOut)),
    ]
    .map(report)
    .to_vec()
}

fn turns() -> Vec<Evidence> {
    vec![
        Evidence {
            byte_start: 1_000,
            byte_end: 1_200,
            record_id: Some("2c1c6a7e-0001-4000-8000-000000000001".to_owned()),
            rule: "typed-prompt".to_owned(),
            at: NOON,
        },
        Evidence {
            byte_start: 70_000,
            byte_end: 70_100,
            record_id: None,
            rule: "queue-absorbed".to_owned(),
            at: -1,
        },
    ]
}

fn answers() -> Vec<(&'static str, Message)> {
    let answer = |(case, verdict)| {
        let link = LinkId(3);
        (case, Message::ReportAnswer(ReportAnswer { link, verdict }))
    };
    [
        ("applied", ReportVerdict::Applied { revision: 42 }),
        ("unlinked", ReportVerdict::Unlinked),
        (
            "stale, the link has moved on",
            ReportVerdict::Stale {
                current: Some(Box::new(old_link())),
            },
        ),
        (
            "stale, the link is gone",
            ReportVerdict::Stale { current: None },
        ),
        (
            "rejected",
            ReportVerdict::Rejected {
                reason: "a byte range of a report ends before it begins".to_owned(),
            },
        ),
    ]
    .map(answer)
    .to_vec()
}

fn catalog() -> Vec<(&'static str, Message)> {
    let page = |catalog, titles, listing| {
        Message::CatalogPage(CatalogPage {
            catalog,
            offset: 200,
            limit: 100,
            titles,
            listing,
        })
    };
    let bare = Thread {
        catalog: Catalog::Openclaw,
        cwd: None,
        title: None,
        ..full_thread()
    };
    let mut messages = vec![
        ("of every catalog", page(None, false, None)),
        (
            "of one, with titles",
            page(Some(Catalog::Claude), true, Some(3)),
        ),
        (
            "threads",
            Message::CatalogThreads(CatalogThreads {
                threads: vec![full_thread(), bare],
                more: true,
                listing: Some(3),
                left_out: 7,
            }),
        ),
        (
            "no threads",
            Message::CatalogThreads(CatalogThreads::default()),
        ),
        (
            "open_thread",
            Message::OpenThread(OpenThread {
                catalog: Catalog::Codex,
                thread_id: thread(),
            }),
        ),
        (
            "the newest",
            Message::HistoryPage(HistoryPage {
                catalog: Catalog::Claude,
                thread_id: thread(),
                limit: 50,
                before: None,
                tools: false,
            }),
        ),
        (
            "with tools, before a place",
            Message::HistoryPage(HistoryPage {
                catalog: Catalog::Claude,
                thread_id: thread(),
                limit: 10,
                before: Some(961_000),
                tools: true,
            }),
        ),
        ("every role", Message::HistoryItems(history_items())),
        ("nothing", Message::HistoryItems(HistoryItems::default())),
        (
            "thread_opened",
            Message::ThreadOpened(Box::new(ThreadOpened {
                thread: full_thread(),
                marker: Marker::at_start(NOON),
            })),
        ),
    ];
    messages.push(("ping", Message::Ping {}));
    messages.push(("pong", Message::Pong {}));
    messages.push((
        "renew",
        Message::Renew(Renew {
            signing_request: vec![0x30, 0x03, 0x02, 0x01],
        }),
    ));
    messages.push((
        "renewed",
        Message::Renewed(Renewed {
            certificate: vec![0x30, 0x03, 0x02, 0x05],
        }),
    ));
    messages.push(("of nobody in particular", Message::Relay(Relay::default())));
    messages.extend(Catalog::ALL.map(|catalog| {
        let caller = Caller {
            catalog,
            thread_id: thread(),
        };
        let relay = Relay {
            caller: Some(caller),
        };
        (catalog.as_str(), Message::Relay(relay))
    }));
    messages.extend(ERROR_TYPES.map(|(case, kind)| (case, Message::Failed(error(kind)))));
    messages
}

fn full_thread() -> Thread {
    Thread {
        catalog: Catalog::Claude,
        thread_id: thread(),
        path: PATH.to_owned(),
        cwd: Some("/home/ada/engine".to_owned()),
        title: Some("The engine".to_owned()),
        updated_at: NOON,
        size_bytes: 961_000,
    }
}

fn pairing() -> Vec<(&'static str, Message)> {
    vec![
        (
            "join",
            Message::Join(Join {
                code: *b"sixteen-bytes-ok",
                signing_request: vec![0x30, 0x82, 0x00, 0xff],
                machine_name: "Ada's laptop".to_owned(),
                agent_version: "0.1.0".to_owned(),
            }),
        ),
        (
            "joined",
            Message::Joined(Joined {
                node_id: node_id(),
                host_name: host_name(),
                certificate: vec![0x30, 0x03, 0x02, 0x01, 0x05],
                authority: vec![0x30; 300],
            }),
        ),
    ]
}
