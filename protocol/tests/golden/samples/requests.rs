//! The requests of the session interface.

use tidings_protocol::session_api::{
    Adopt, Backup, Caller, CatalogList, CleanupAgents, CleanupDoing, CompactionTrigger,
    CronRunBegin, CronRunsList, HookEvent, HookMoment, Introduction, LeaseRef, NodeRef,
    NodesInvite, NodesRename, Request, SessionKind, SessionRef, SessionsCleanup, SessionsList,
    SignalsQuery, SignalsRecord, SpeakerRef, StatusQuery, WatchFilter, WatchPair,
};
use tidings_protocol::signal::RunOutcome;
use tidings_protocol::{Catalog, SessionKey, SignalKind};

use super::given;
use super::parts::{adopted_key, host_name, key, node_id, thread};

/// Samples of what a program may say before it asks.
pub(super) fn introductions() -> Vec<(&'static str, Introduction)> {
    let caller = Caller {
        catalog: Catalog::Claude,
        thread_id: thread(),
    };
    vec![("caller", Introduction::Caller(caller))]
}

/// Samples of every request.
pub(super) fn all() -> Vec<(&'static str, Request)> {
    [
        machines(),
        sessions(),
        stores(),
        watches(),
        turns(),
        signals(),
        records(),
        given::all(),
    ]
    .concat()
}

pub(super) fn bare_key() -> SessionKey {
    SessionKey::parse("cron:nightly").expect("a bare key")
}

fn node(node: &str) -> NodeRef {
    NodeRef {
        node: node.to_owned(),
    }
}

fn machines() -> Vec<(&'static str, Request)> {
    vec![
        ("status", Request::Status {}),
        ("node_status", Request::NodeStatus {}),
        ("nodes_list", Request::NodesList {}),
        ("by its id", Request::NodesShow(node(node_id().as_str()))),
        (
            "nodes_rename",
            Request::NodesRename(NodesRename {
                node: host_name().to_string(),
                name: "Ada's laptop".into(),
            }),
        ),
        (
            "by its host name",
            Request::NodesRevoke(node(host_name().as_str())),
        ),
        (
            "by its host name",
            Request::NodesRemove(node(host_name().as_str())),
        ),
        (
            "backup",
            Request::Backup(Backup {
                file: "/var/backups/tidings.db".into(),
            }),
        ),
        ("check", Request::Check {}),
        (
            "of nothing but itself",
            Request::NodesInvite(NodesInvite::default()),
        ),
        (
            "with name and address",
            Request::NodesInvite(NodesInvite {
                name: Some("laptop-2".into()),
                address: Some("[2001:db8::1]:7430".into()),
            }),
        ),
        (
            "of everything",
            Request::CatalogList(CatalogList::default()),
        ),
        (
            "of one host and catalog, with titles",
            Request::CatalogList(CatalogList {
                host: Some("local".into()),
                catalog: Some(Catalog::Openclaw),
                titles: true,
            }),
        ),
    ]
}

fn cleanup(agents: CleanupAgents, doing: CleanupDoing) -> Request {
    Request::SessionsCleanup(SessionsCleanup { agents, doing })
}

fn stores() -> Vec<(&'static str, Request)> {
    vec![
        (
            "of one agent, only said",
            cleanup(
                CleanupAgents::One {
                    agent: "main".into(),
                },
                CleanupDoing::DryRun,
            ),
        ),
        (
            "of the default agent",
            cleanup(CleanupAgents::Default {}, CleanupDoing::Enforce),
        ),
        (
            "of all",
            cleanup(CleanupAgents::All {}, CleanupDoing::Enforce),
        ),
        (
            "in the standing conversation",
            Request::CronRunBegin(CronRunBegin {
                job_id: "nightly".into(),
                force: false,
                agent: None,
            }),
        ),
        (
            "in a new conversation",
            Request::CronRunBegin(CronRunBegin {
                job_id: "nightly".into(),
                force: true,
                agent: Some("ops".into()),
            }),
        ),
        (
            "of every job",
            Request::CronRunsList(CronRunsList::default()),
        ),
        (
            "of one job",
            Request::CronRunsList(CronRunsList {
                job_id: Some("nightly".into()),
                agent: Some("ops".into()),
                limit: Some(20),
                before: Some(7),
            }),
        ),
    ]
}

fn sessions() -> Vec<(&'static str, Request)> {
    let adopt = |agent, watch_by| {
        Request::Adopt(Adopt {
            catalog: Catalog::Claude,
            host: "laptop-2".to_owned(),
            thread_id: thread(),
            agent,
            watch_by,
        })
    };
    let status = |session_key, agent, changes_since| {
        Request::SessionStatus(StatusQuery {
            session_key,
            agent,
            changes_since,
            reader: None,
        })
    };
    let read_by_a_watcher = StatusQuery {
        session_key: adopted_key(),
        agent: None,
        changes_since: Some(42),
        reader: Some(key("main")),
    };
    vec![
        ("for the default agent", adopt(None, None)),
        (
            "for an agent, watched at once",
            adopt(Some("coder".into()), Some(key("main"))),
        ),
        ("of all", Request::SessionsList(SessionsList::default())),
        (
            "narrowed down",
            Request::SessionsList(SessionsList {
                agent: Some("main".into()),
                kind: Some(SessionKind::Adopted),
                host: Some("laptop-2".into()),
                active_minutes: Some(90),
                archived: true,
                limit: Some(200),
                offset: 400,
            }),
        ),
        ("of a qualified key", Request::SessionShow(session())),
        ("of a bare key", Request::SessionShow(bare_session())),
        ("out of the lists", Request::SessionArchive(session())),
        ("of a bare key", Request::SessionUnarchive(bare_session())),
        ("first in the lists", Request::SessionPin(session())),
        ("in its place", Request::SessionUnpin(bare_session())),
        ("how it stands", status(adopted_key(), None, None)),
        (
            "what changed",
            status(
                bare_key(),
                Some("main".into()),
                Some(i64::from(u32::MAX) + 1),
            ),
        ),
        (
            "what changed after less than nothing",
            status(adopted_key(), None, Some(-1)),
        ),
        (
            "what changed, read by a watcher",
            Request::SessionStatus(read_by_a_watcher),
        ),
    ]
}

pub(super) fn session() -> SessionRef {
    SessionRef {
        session_key: adopted_key(),
        agent: None,
    }
}

pub(super) fn bare_session() -> SessionRef {
    SessionRef {
        session_key: bare_key(),
        agent: Some("coder".into()),
    }
}

fn speaker(session: SessionRef) -> SpeakerRef {
    SpeakerRef {
        session_key: Some(session.session_key),
        agent: session.agent,
    }
}

fn watches() -> Vec<(&'static str, Request)> {
    let pair = WatchPair {
        watcher: Some(key("main")),
        target: adopted_key(),
        target_agent: None,
    };
    let bare_pair = WatchPair {
        target: bare_key(),
        target_agent: Some("coder".into()),
        ..pair.clone()
    };
    vec![
        ("a qualified target", Request::WatchAdd(pair.clone())),
        ("a bare target", Request::WatchAdd(bare_pair)),
        (
            "of the caller",
            Request::WatchAdd(WatchPair {
                watcher: None,
                ..pair.clone()
            }),
        ),
        ("watch_remove", Request::WatchRemove(pair)),
        ("all", Request::WatchList(WatchFilter::default())),
        (
            "of a watcher on a target",
            Request::WatchList(WatchFilter {
                watcher: Some(key("main")),
                target: Some(adopted_key()),
            }),
        ),
        ("notices_list", Request::NoticesList(session())),
        ("notices_drain", Request::NoticesDrain(bare_session())),
    ]
}

fn turns() -> Vec<(&'static str, Request)> {
    let lease = LeaseRef {
        token: "00112233445566778899aabbccddeeff".into(),
    };
    let hook = HookEvent {
        moment: HookMoment::PostCompact,
        prompt_id: Some("p-1".into()),
        agent_id: Some("a1b2".into()),
        agent_type: Some("Explore".into()),
        lease: Some("0011".into()),
        trigger: CompactionTrigger::Manual,
    };
    vec![
        ("of a qualified key", Request::TurnBegin(speaker(session()))),
        ("of a bare key", Request::TurnBegin(speaker(bare_session()))),
        ("of the caller", Request::TurnBegin(SpeakerRef::default())),
        ("turn_confirm", Request::TurnConfirm(lease.clone())),
        ("turn_release", Request::TurnRelease(lease)),
        ("turn_end", Request::TurnEnd(speaker(session()))),
        (
            "with nothing but its moment",
            Request::HookEvent(HookEvent::new(HookMoment::PreToolUse)),
        ),
        ("with all it can say", Request::HookEvent(hook)),
        ("wakes_follow", Request::WakesFollow {}),
    ]
}

fn signals() -> Vec<(&'static str, Request)> {
    let query = SignalsQuery {
        session: Some(adopted_key()),
        after: Some(u64::MAX),
        limit: Some(10_000),
    };
    vec![
        ("all", Request::SignalsList(SignalsQuery::default())),
        ("of a session", Request::SignalsList(query.clone())),
        (
            "from the head on",
            Request::SignalsFollow(SignalsQuery::default()),
        ),
        ("after a sequence", Request::SignalsFollow(query)),
        ("signals_why", Request::SignalsWhy { sequence: 129 }),
    ]
}

fn records() -> Vec<(&'static str, Request)> {
    let record = |kind| SignalsRecord {
        session: adopted_key(),
        kind,
        actor: "human".to_owned(),
        parent: None,
        channel: None,
        outcome: None,
        run_id: None,
        summary: None,
        dedupe_key: None,
    };
    let outcome = |outcome| SignalsRecord {
        outcome: Some(outcome),
        actor: "system".to_owned(),
        ..record(SignalKind::RunFailed)
    };
    let full = SignalsRecord {
        actor: "agent:main:main".to_owned(),
        parent: Some(key("main")),
        channel: Some("telegram".into()),
        run_id: Some("run-1".into()),
        summary: Some("child session spawned".into()),
        dedupe_key: Some("spawn:1".into()),
        ..record(SignalKind::ChildSpawned)
    };
    let kinds = [
        "human direct message",
        "upstream missing",
        "goal changed",
        "child spawned",
        "run completed",
        "run failed",
        "compacted",
        "adopted",
    ];
    let mut cases: Vec<_> = kinds
        .into_iter()
        .zip(SignalKind::ALL)
        .map(|(case, kind)| (case, record(kind)))
        .collect();
    cases.extend([
        ("with everything", full),
        ("an error", outcome(RunOutcome::Error)),
        ("a timeout", outcome(RunOutcome::Timeout)),
        ("cancelled", outcome(RunOutcome::Cancelled)),
    ]);
    cases
        .into_iter()
        .map(|(case, record)| (case, Request::SignalsRecord(record)))
        .collect()
}
