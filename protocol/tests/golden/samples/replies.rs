//! The replies about sessions, watches, turns and signals; errors.

use tidings_protocol::report::LinkId;
use tidings_protocol::session_api::{
    Adopted, CatalogThread, CatalogThreads, CleanedStore, CleanedUp, CleanupAction, CronRun,
    CronRunRow, CronRuns, HookAnswer, HostError, LinkSummary, Notice, Notices, Recorded, Reply,
    SessionEntry, SessionRow, SessionStatus, Sessions, SignalEvidence, SignalRow, SignalWhy,
    Signals, StateChange, StateChanges, TurnBegun, TurnEnded, TurnMessage, TurnSettled,
    UpstreamState, UpstreamStatus, Wake, Wakes, Watch, WatchRemoved, Watched, Watches,
};
use tidings_protocol::signal::{Payload, RunOutcome};
use tidings_protocol::{ActorType, Catalog, Host, SignalKind};

use super::parts::{
    ERROR_TYPES, NOON, PATH, adopted_key, error, host_name, key, node_host, thread,
};

/// Samples of these replies.
pub(super) fn all() -> Vec<(&'static str, Reply)> {
    [
        catalog(),
        sessions(),
        stores(),
        changes(),
        watches(),
        turns(),
        signals(),
        errors(),
    ]
    .concat()
}

fn catalog() -> Vec<(&'static str, Reply)> {
    let thread = CatalogThread {
        catalog: Catalog::Claude,
        host: node_host(),
        node: host_name(),
        thread_id: thread(),
        path: PATH.to_owned(),
        cwd: Some("/home/ada/engine".into()),
        title: Some("The engine".into()),
        updated_at: NOON,
        size_bytes: 961_000,
        adopted_as: Some(adopted_key()),
    };
    let bare = CatalogThread {
        cwd: None,
        title: None,
        adopted_as: None,
        ..thread.clone()
    };
    vec![(
        "threads, and a host out of reach",
        Reply::CatalogList(CatalogThreads {
            threads: vec![thread, bare],
            errors: vec![HostError {
                host: node_host(),
                node: host_name(),
                message: "offline".to_owned(),
            }],
        }),
    )]
}

fn sessions() -> Vec<(&'static str, Reply)> {
    let adopted = |watched| {
        Reply::Adopt(Adopted {
            session_key: adopted_key(),
            link: LinkSummary {
                id: LinkId(3),
                catalog: Catalog::Claude,
                host: node_host(),
                thread_id: thread(),
                path: PATH.to_owned(),
                offset: 961_000,
                created: true,
            },
            watched,
        })
    };
    let entry = SessionEntry {
        session_key: adopted_key(),
        agent_id: "main".to_owned(),
        state_version: 42,
        archived: false,
        pinned: true,
        entry: "{\"sessionId\":\"6f0d6a1e\"}".to_owned(),
    };
    vec![
        ("not watched", adopted(None)),
        ("watched at once", adopted(Some(watched()))),
        ("sessions", Reply::SessionsList(rows())),
        ("session_show", Reply::SessionShow(Box::new(entry))),
    ]
}

fn stores() -> Vec<(&'static str, Reply)> {
    let of_an_entry = CleanupAction {
        agent_id: "main".to_owned(),
        session_key: Some(key("old")),
        files: vec!["6f0d6a1e.jsonl".to_owned()],
        bytes: 961_000,
        reason: "pruneAfter".to_owned(),
    };
    let of_a_file = CleanupAction {
        session_key: None,
        reason: "orphan".to_owned(),
        ..of_an_entry.clone()
    };
    let cleaned_up = CleanedUp {
        mode: "enforce".to_owned(),
        dry_run: true,
        before_count: 501,
        after_count: 499,
        pruned: 1,
        capped: 1,
        missing: 3,
        freed_bytes: 1_922_000,
        failed: 0,
        actions: vec![of_an_entry, of_a_file],
        stores: vec![CleanedStore {
            agent_id: "main".to_owned(),
            before_count: 501,
            after_count: 499,
        }],
    };
    let of_one = CleanedUp {
        stores: Vec::new(),
        ..cleaned_up.clone()
    };
    let run = CronRun {
        run_id: 7,
        session_key: key("cron"),
        session_id: "6f0d6a1e".to_owned(),
        is_new: true,
        started_at: NOON,
    };
    let open = CronRunRow {
        run_id: 8,
        job_id: "nightly".to_owned(),
        session_key: key("cron"),
        agent_id: "main".to_owned(),
        session_id: None,
        started_at: NOON,
        ended_at: None,
        outcome: None,
    };
    let ended = CronRunRow {
        run_id: 7,
        session_id: Some("6f0d6a1e".to_owned()),
        ended_at: Some(NOON + 1),
        outcome: Some("timeout".to_owned()),
        ..open.clone()
    };
    let runs = CronRuns {
        runs: vec![open, ended],
        before: Some(7),
    };
    vec![
        ("no runs", Reply::CronRunsList(CronRuns::default())),
        ("runs", Reply::CronRunsList(runs)),
        ("of all agents", Reply::SessionsCleanup(cleaned_up)),
        ("of one agent", Reply::SessionsCleanup(of_one)),
        ("cron_run_begin", Reply::CronRunBegin(run)),
    ]
}

fn rows() -> Sessions {
    let row = SessionRow {
        session_key: adopted_key(),
        agent_id: "main".to_owned(),
        session_id: "6f0d6a1e".to_owned(),
        label: Some("engine".into()),
        updated_at: NOON,
        archived: true,
        pinned: false,
        host: Some(Host::GatewayLocal),
        node: Some(host_name()),
        state_version: Some(42),
        context_tokens: Some(21_000),
        context_tokens_estimated: Some(true),
        compaction_count: Some(2),
    };
    let bare = SessionRow {
        label: None,
        host: None,
        node: None,
        state_version: None,
        context_tokens: None,
        context_tokens_estimated: None,
        compaction_count: None,
        ..row.clone()
    };
    Sessions {
        sessions: vec![row, bare],
        count: 402,
        has_more: true,
        next_offset: Some(202),
    }
}

fn changes() -> Vec<(&'static str, Reply)> {
    let status = |upstream, state_changes| {
        Reply::SessionStatus(SessionStatus {
            session_key: adopted_key(),
            state_version: 42,
            upstream,
            state_changes,
        })
    };
    let upstream = UpstreamStatus {
        state: UpstreamState::Live,
        observed_at: Some(NOON),
    };
    let nothing = StateChanges {
        events: Vec::new(),
        truncated: false,
        next_since: None,
        earliest_available_sequence: 0,
        history_gap: false,
    };
    vec![
        ("how it stands", status(None, None)),
        ("nothing changed", status(Some(upstream), Some(nothing))),
        (
            "a page of changes behind a gap",
            status(Some(upstream), Some(page_of_changes())),
        ),
    ]
}

fn page_of_changes() -> StateChanges {
    let full = StateChange {
        sequence: 42,
        kind: SignalKind::HumanDirectMessage,
        actor_type: ActorType::Agent,
        actor_id: Some("agent:main:main".into()),
        run_id: Some("run-1".into()),
        occurred_at: NOON,
        summary: "human message via claude".to_owned(),
        payload: Some(full_payload()),
    };
    let bare = StateChange {
        actor_type: ActorType::System,
        actor_id: None,
        run_id: None,
        payload: None,
        ..full.clone()
    };
    StateChanges {
        events: vec![full, bare],
        truncated: true,
        next_since: Some(42),
        earliest_available_sequence: 40,
        history_gap: true,
    }
}

fn full_payload() -> Payload {
    Payload {
        outcome: Some(RunOutcome::Timeout),
        channel: Some("telegram".into()),
        turns: Some(20),
        catalog: Some(Catalog::Claude),
        host: Some(node_host()),
    }
}

fn watched() -> Watched {
    Watched {
        watched: true,
        from_version: Some(42),
        reason: None,
    }
}

fn watches() -> Vec<(&'static str, Reply)> {
    let refused = Watched {
        watched: false,
        from_version: None,
        reason: Some("a session does not watch itself".into()),
    };
    let watch = Watch {
        watcher: key("main"),
        target: adopted_key(),
        target_agent_id: "main".to_owned(),
        provenance: "explicit".to_owned(),
        last_seen_sequence: 40,
        notified_sequence: 41,
        material_sequence: 42,
        pending: true,
        created_at: NOON,
        updated_at: NOON + 1,
    };
    let notice = Notice {
        target: adopted_key(),
        text: "Session … changed (other actor).".to_owned(),
        changes_since: 40,
    };
    vec![
        ("watched", Reply::WatchAdd(watched())),
        ("refused", Reply::WatchAdd(refused)),
        (
            "watch_remove",
            Reply::WatchRemove(WatchRemoved { removed: true }),
        ),
        (
            "watches",
            Reply::WatchList(Watches {
                watches: vec![watch],
            }),
        ),
        (
            "notices",
            Reply::Notices(Notices {
                notices: vec![notice],
            }),
        ),
    ]
}

fn turns() -> Vec<(&'static str, Reply)> {
    let notice = Notice {
        target: adopted_key(),
        text: "Session … changed (other actor).".to_owned(),
        changes_since: 40,
    };
    let message = TurnMessage {
        id: 7,
        sender: Some(key("main")),
        body: "Please rebase.\n".to_owned(),
        sent_at: NOON,
    };
    let by_an_operator = TurnMessage {
        id: u64::MAX,
        sender: None,
        ..message.clone()
    };
    let begun = TurnBegun {
        token: Some("00112233445566778899aabbccddeeff".into()),
        notices: vec![notice],
        messages: vec![message, by_an_operator],
    };
    let wake = Wake {
        watcher: key("main"),
        target: adopted_key(),
    };
    vec![
        (
            "with nothing to take",
            Reply::TurnBegin(TurnBegun::default()),
        ),
        ("with all it can take", Reply::TurnBegin(begun.clone())),
        ("of no session", Reply::HookEvent(HookAnswer::default())),
        (
            "with what a turn takes",
            Reply::HookEvent(HookAnswer {
                adopted: true,
                turn: begun,
            }),
        ),
        (
            "turn_settled",
            Reply::TurnSettled(TurnSettled {
                notices: 1,
                messages: 2,
            }),
        ),
        ("turn_end", Reply::TurnEnd(TurnEnded { ended: true })),
        ("none yet", Reply::Wakes(Wakes::default())),
        ("one", Reply::Wakes(Wakes { wakes: vec![wake] })),
    ]
}

fn signals() -> Vec<(&'static str, Reply)> {
    let evidence = SignalEvidence {
        node: host_name(),
        catalog: Catalog::Claude,
        file: "6f0d6a1e.jsonl".to_owned(),
        byte_start: 1_000,
        byte_end: 1_200,
        record_id: Some("2c1c6a7e".into()),
        rule: "typed-prompt".to_owned(),
    };
    let nameless = SignalEvidence {
        record_id: None,
        ..evidence.clone()
    };
    let recorded = |recorded, sequence, reason| {
        Reply::SignalsRecord(Recorded {
            recorded,
            sequence,
            reason,
        })
    };
    let page = Reply::Signals(Signals {
        earliest_available_sequence: Some(7),
        signals: signal_rows(),
    });
    vec![
        ("one of every kind", page.clone()),
        ("of signals", Reply::Part(Box::new(page))),
        (
            "signals_why",
            Reply::SignalsWhy(SignalWhy {
                sequence: 42,
                evidence: vec![evidence, nameless],
            }),
        ),
        ("recorded", recorded(true, Some(42), None)),
        (
            "not recorded",
            recorded(false, None, Some("nobody watches".into())),
        ),
    ]
}

fn signal_rows() -> Vec<SignalRow> {
    let full = SignalRow {
        sequence: 42,
        session_key: adopted_key(),
        agent_id: "main".to_owned(),
        kind: SignalKind::HumanDirectMessage,
        actor_type: ActorType::Human,
        actor_id: Some("agent:main:main".into()),
        run_id: Some("run-1".into()),
        occurred_at: NOON,
        recorded_at: NOON + 2,
        summary: "human message via claude".to_owned(),
        payload: Some(full_payload()),
    };
    let bare = |kind| SignalRow {
        kind,
        actor_id: None,
        run_id: None,
        payload: Some(Payload::default()),
        ..full.clone()
    };
    let mut rows: Vec<_> = SignalKind::ALL.into_iter().map(bare).collect();
    rows.push(SignalRow {
        payload: None,
        ..bare(SignalKind::Compacted)
    });
    rows.push(full);
    rows
}

fn errors() -> Vec<(&'static str, Reply)> {
    let without_hint = tidings_protocol::session_api::ApiError {
        hint: None,
        ..error(ERROR_TYPES[0].1)
    };
    let mut replies = vec![("without a hint", Reply::Error(without_hint))];
    replies.extend(ERROR_TYPES.map(|(case, kind)| (case, Reply::Error(error(kind)))));
    replies
}
