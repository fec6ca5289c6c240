//! `tidings sessions`

use insta::assert_snapshot;
use tidings_protocol::report::LinkId;
use tidings_protocol::session_api::{
    Adopted, LinkSummary, Reply, SessionEntry, SessionRow, SessionStatus, Sessions, StateChange,
    StateChanges, UpstreamState, UpstreamStatus, Watched,
};
use tidings_protocol::{ActorType, Catalog, Host, SignalKind};

use crate::fake::Fake;
use crate::run::with;
use crate::values::{TIME, key, laptop, laptop_id, session, sessions, thread};

const ADOPTED: &str = "agent:main:adopted:claude:local:0a1b";

fn adopted(watched: Option<Watched>) -> Adopted {
    Adopted {
        session_key: key(ADOPTED),
        link: LinkSummary {
            id: LinkId(5),
            catalog: Catalog::Claude,
            host: Host::GatewayLocal,
            thread_id: thread("0a1b"),
            path: "/home/ada/.claude/projects/x/0a1b.jsonl".to_owned(),
            offset: 4_096,
            created: true,
        },
        watched,
    }
}

#[test]
fn adopt_prints_the_new_key_and_what_is_followed() {
    let fake = Fake::answering(Reply::Adopt(adopted(None)));
    assert_snapshot!(with(&fake, "sessions adopt claude local 0a1b"), @r#"
    exit 0
    --- stdout
    agent:main:adopted:claude:local:0a1b
    --- stderr
    claude 0a1b on local is followed from byte 4096 of /home/ada/.claude/projects/x/0a1b.jsonl
    hint: tidings watch add WATCHER agent:main:adopted:claude:local:0a1b
    --- asked
    Adopt(Adopt { catalog: Claude, host: "local", thread_id: 0a1b, agent: None, watch_by: None })
    "#);
    assert_snapshot!(with(&fake, "sessions adopt claude local 0a1b --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"sessionKey":"agent:main:adopted:claude:local:0a1b","link":{"id":5,"catalog":"claude","host":"gateway:local","threadId":"0a1b","path":"/home/ada/.claude/projects/x/0a1b.jsonl","offset":4096,"created":true}}
    --- stderr
    --- asked
    Adopt(Adopt { catalog: Claude, host: "local", thread_id: 0a1b, agent: None, watch_by: None })
    "#);
}

#[test]
fn adopt_can_watch_at_once() {
    let fake = Fake::answering(Reply::Adopt(adopted(Some(Watched {
        watched: true,
        from_version: Some(9),
        reason: None,
    }))));
    let line = "sessions adopt claude local 0a1b --agent Main --watch-by agent:main:MAIN";
    assert_snapshot!(with(&fake, line), @r#"
    exit 0
    --- stdout
    agent:main:adopted:claude:local:0a1b
    --- stderr
    claude 0a1b on local is followed from byte 4096 of /home/ada/.claude/projects/x/0a1b.jsonl
    watched from version 9
    --- asked
    Adopt(Adopt { catalog: Claude, host: "local", thread_id: 0a1b, agent: Some("Main"), watch_by: Some(agent:main:main) })
    "#);
    assert_snapshot!(with(&fake, &format!("{line} --json")), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"sessionKey":"agent:main:adopted:claude:local:0a1b","link":{"id":5,"catalog":"claude","host":"gateway:local","threadId":"0a1b","path":"/home/ada/.claude/projects/x/0a1b.jsonl","offset":4096,"created":true},"watched":{"watched":true,"fromVersion":9}}
    --- stderr
    --- asked
    Adopt(Adopt { catalog: Claude, host: "local", thread_id: 0a1b, agent: Some("Main"), watch_by: Some(agent:main:main) })
    "#);
}

#[test]
fn a_host_may_be_given_as_documents_have_it() {
    let fake = Fake::answering(Reply::Adopt(adopted(None)));
    for (given, asked) in [
        ("gateway:local", "local".to_owned()),
        (&format!("node:{}", laptop_id()), laptop_id().to_string()),
        ("laptop", "laptop".to_owned()),
    ] {
        let output = with(&fake, &format!("sessions adopt claude {given} 0a1b"));
        let host = format!("host: \"{asked}\"");
        assert!(output.contains(&host), "{given}: {output}");
    }
}

#[test]
fn adopting_again_says_that_it_was_adopted() {
    let mut again = adopted(None);
    again.link.created = false;
    let fake = Fake::answering(Reply::Adopt(again));
    assert_snapshot!(with(&fake, "sessions adopt claude local 0a1b"), @r#"
    exit 0
    --- stdout
    agent:main:adopted:claude:local:0a1b
    --- stderr
    claude 0a1b on local was adopted before and is followed from byte 4096 of /home/ada/.claude/projects/x/0a1b.jsonl
    hint: tidings watch add WATCHER agent:main:adopted:claude:local:0a1b
    --- asked
    Adopt(Adopt { catalog: Claude, host: "local", thread_id: 0a1b, agent: None, watch_by: None })
    "#);
}

#[test]
fn list_shows_versions_hosts_and_marks() {
    let rows = vec![
        SessionRow {
            pinned: true,
            label: Some("release".to_owned()),
            state_version: Some(12),
            context_tokens: Some(21_000),
            context_tokens_estimated: Some(false),
            compaction_count: Some(2),
            host: Some(Host::GatewayLocal),
            ..session(ADOPTED)
        },
        SessionRow {
            archived: true,
            host: Some(Host::Node(laptop_id())),
            node: Some(laptop().host_name),
            ..session("global")
        },
    ];
    let fake = Fake::answering(Reply::SessionsList(Sessions {
        sessions: rows,
        count: 7,
        has_more: true,
        next_offset: Some(2),
    }));
    let line = "sessions list --agent main --kind adopted --host local --active-minutes 60 \
        --archived --limit 2 --offset 0";
    assert_snapshot!(with(&fake, line), @r#"
    exit 0
    --- stdout
    SESSION                               VERSION  CHANGED (UTC)        HOST    MARKS     LABEL
    agent:main:adopted:claude:local:0a1b       12  2026-11-30 21:05:03  local   pinned    release
    global (of main)                            -  2026-11-30 21:05:03  laptop  archived  -
    --- stderr
    hint: 2 of 7 shown; the next: tidings sessions list --offset 2
    --- asked
    SessionsList(SessionsList { agent: Some("main"), kind: Some(Adopted), host: Some("local"), active_minutes: Some(60), archived: true, limit: Some(2), offset: 0 })
    "#);
    assert_snapshot!(with(&fake, "sessions list --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"sessions":[{"sessionKey":"agent:main:adopted:claude:local:0a1b","agentId":"main","sessionId":"0a1b","label":"release","updatedAt":1796072703123,"archived":false,"pinned":true,"host":"gateway:local","stateVersion":12,"contextTokens":21000,"contextTokensEstimated":false,"compactionCount":2},{"sessionKey":"global","agentId":"main","sessionId":"0a1b","updatedAt":1796072703123,"archived":true,"pinned":false,"host":"node:0123456789abcdef0123456789abcdef","node":"laptop"}],"count":7,"hasMore":true,"nextOffset":2}
    --- stderr
    --- asked
    SessionsList(SessionsList { agent: None, kind: None, host: None, active_minutes: None, archived: false, limit: None, offset: 0 })
    "#);
}

#[test]
fn no_sessions_says_how_to_get_one() {
    assert_snapshot!(with(&Fake::answering(sessions(&[])), "sessions list"), @"
    exit 0
    --- stdout
    --- stderr
    no sessions
    hint: tidings catalog list shows threads, tidings sessions adopt takes one in
    --- asked
    SessionsList(SessionsList { agent: None, kind: None, host: None, active_minutes: None, archived: false, limit: None, offset: 0 })
    ");
}

#[test]
fn show_has_the_fields_of_the_entry_at_top_level() {
    let entry = r#"{"sessionId":"0a1b","updatedAt":1796072703123,"label":"two\nlines",
        "totalTokens":12,"x-by-hand":{"b":1,"a":[true]},"pinned":"hidden"}"#;
    let fake = Fake::answering(Reply::SessionShow(Box::new(SessionEntry {
        session_key: key("global"),
        agent_id: "main".to_owned(),
        state_version: 12,
        archived: false,
        pinned: true,
        entry: entry.to_owned(),
    })));
    assert_snapshot!(with(&fake, "sessions show GLOBAL --agent main"), @r#"
    exit 0
    --- stdout
    sessionKey    global
    agentId       main
    stateVersion  12
    archived      false
    pinned        true
    sessionId     0a1b
    updatedAt     2026-11-30 21:05:03 UTC
    label         two lines
    totalTokens   12
    x-by-hand     {"a":[true],"b":1}
    --- stderr
    --- asked
    SessionShow(SessionRef { session_key: global, agent: Some("main") })
    "#);
    assert_snapshot!(with(&fake, "sessions show global --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"sessionKey":"global","agentId":"main","stateVersion":12,"archived":false,"pinned":true,"sessionId":"0a1b","updatedAt":1796072703123,"label":"two\nlines","totalTokens":12,"x-by-hand":{"a":[true],"b":1}}
    --- stderr
    --- asked
    SessionShow(SessionRef { session_key: global, agent: None })
    "#);
}

#[test]
fn an_entry_that_is_no_object_is_an_error() {
    let fake = Fake::answering(Reply::SessionShow(Box::new(SessionEntry {
        session_key: key("global"),
        agent_id: "main".to_owned(),
        state_version: 12,
        archived: false,
        pinned: true,
        entry: "[1]".to_owned(),
    })));
    assert_snapshot!(with(&fake, "sessions show global"), @"
    exit 65
    --- stdout
    --- stderr
    error: the entry of global is not a JSON object
    --- asked
    SessionShow(SessionRef { session_key: global, agent: None })
    ");
}

#[test]
fn what_marks_a_session_says_how_it_stands_now() {
    let entry = |archived, pinned| SessionEntry {
        session_key: key("agent:main:main"),
        agent_id: "main".to_owned(),
        state_version: 12,
        archived,
        pinned,
        entry: r#"{"sessionId":"0a1b"}"#.to_owned(),
    };
    let answering =
        |archived, pinned| Fake::answering(Reply::SessionShow(Box::new(entry(archived, pinned))));
    let fake = answering(true, false);
    assert_snapshot!(with(&fake, "sessions archive agent:main:main"), @"
    exit 0
    --- stdout
    agent:main:main  archived
    --- stderr
    --- asked
    SessionArchive(SessionRef { session_key: agent:main:main, agent: None })
    ");
    assert_snapshot!(with(&fake, "sessions archive agent:main:main --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"sessionKey":"agent:main:main","agentId":"main","stateVersion":12,"archived":true,"pinned":false,"sessionId":"0a1b"}
    --- stderr
    --- asked
    SessionArchive(SessionRef { session_key: agent:main:main, agent: None })
    "#);
    let fake = answering(false, false);
    assert_snapshot!(with(&fake, "sessions unarchive agent:main:main"), @"
    exit 0
    --- stdout
    agent:main:main  active, not pinned
    --- stderr
    --- asked
    SessionUnarchive(SessionRef { session_key: agent:main:main, agent: None })
    ");
    assert_snapshot!(with(&fake, "sessions unpin global --agent ops"), @r#"
    exit 0
    --- stdout
    agent:main:main  active, not pinned
    --- stderr
    --- asked
    SessionUnpin(SessionRef { session_key: global, agent: Some("ops") })
    "#);
    let fake = answering(false, true);
    assert_snapshot!(with(&fake, "sessions pin agent:main:main"), @"
    exit 0
    --- stdout
    agent:main:main  active, pinned
    --- stderr
    --- asked
    SessionPin(SessionRef { session_key: agent:main:main, agent: None })
    ");
}

fn status(upstream: Option<UpstreamStatus>, state_changes: Option<StateChanges>) -> Fake {
    Fake::answering(Reply::SessionStatus(SessionStatus {
        session_key: key(ADOPTED),
        state_version: 12,
        upstream,
        state_changes,
    }))
}

#[test]
fn status_says_the_version_and_how_far_it_can_be_trusted() {
    let live = UpstreamStatus {
        state: UpstreamState::Live,
        observed_at: Some(TIME),
    };
    let fake = status(Some(live), None);
    assert_snapshot!(with(&fake, &format!("sessions status {ADOPTED}")), @"
    exit 0
    --- stdout
    agent:main:adopted:claude:local:0a1b  version 12
    upstream live, observed until 2026-11-30 21:05:03 UTC
    --- stderr
    hint: tidings sessions status agent:main:adopted:claude:local:0a1b --changes-since VERSION
    --- asked
    SessionStatus(StatusQuery { session_key: agent:main:adopted:claude:local:0a1b, agent: None, changes_since: None, reader: None })
    ");
    assert_snapshot!(with(&fake, &format!("sessions status {ADOPTED} --json")), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"sessionKey":"agent:main:adopted:claude:local:0a1b","stateVersion":12,"upstream":{"state":"live","observedAt":1796072703123}}
    --- stderr
    --- asked
    SessionStatus(StatusQuery { session_key: agent:main:adopted:claude:local:0a1b, agent: None, changes_since: None, reader: None })
    "#);
}

#[test]
fn status_shows_what_changed_since_a_version() {
    let event = |sequence, actor_id: Option<&str>| StateChange {
        sequence,
        kind: SignalKind::GoalChanged,
        actor_type: ActorType::Agent,
        actor_id: actor_id.map(str::to_owned),
        run_id: None,
        occurred_at: TIME,
        summary: "goal updated".to_owned(),
        payload: None,
    };
    let fake = status(
        Some(UpstreamStatus {
            state: UpstreamState::Offline,
            observed_at: None,
        }),
        Some(StateChanges {
            events: vec![event(8, Some("agent:ops:main")), event(11, None)],
            truncated: true,
            next_since: Some(11),
            earliest_available_sequence: 8,
            history_gap: true,
        }),
    );
    let line = format!("sessions status {ADOPTED} --changes-since 3");
    assert_snapshot!(with(&fake, &line), @"
    exit 0
    --- stdout
    agent:main:adopted:claude:local:0a1b  version 12
    upstream offline, not observed yet

    SEQUENCE  OCCURRED (UTC)       KIND          ACTOR           SUMMARY
           8  2026-11-30 21:05:03  goal_changed  agent:ops:main  goal updated
          11  2026-11-30 21:05:03  goal_changed  agent           goal updated
    --- stderr
    warning: events have been pruned: this is not all that changed (kept from 8 on)
    hint: there is more: --changes-since 11
    --- asked
    SessionStatus(StatusQuery { session_key: agent:main:adopted:claude:local:0a1b, agent: None, changes_since: Some(3), reader: None })
    ");
    assert_snapshot!(with(&fake, &format!("{line} --json")), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"sessionKey":"agent:main:adopted:claude:local:0a1b","stateVersion":12,"upstream":{"state":"offline"},"stateChanges":{"events":[{"sequence":8,"kind":"goal_changed","actorType":"agent","actorId":"agent:ops:main","occurredAt":1796072703123,"summary":"goal updated"},{"sequence":11,"kind":"goal_changed","actorType":"agent","occurredAt":1796072703123,"summary":"goal updated"}],"truncated":true,"nextSince":11,"earliestAvailableSequence":8,"historyGap":true}}
    --- stderr
    --- asked
    SessionStatus(StatusQuery { session_key: agent:main:adopted:claude:local:0a1b, agent: None, changes_since: Some(3), reader: None })
    "#);
}

#[test]
fn status_says_that_nothing_changed() {
    let fake = status(
        None,
        Some(StateChanges {
            events: vec![],
            truncated: false,
            next_since: None,
            earliest_available_sequence: 8,
            history_gap: false,
        }),
    );
    let line = format!("sessions status {ADOPTED} --changes-since 12");
    assert_snapshot!(with(&fake, &line), @"
    exit 0
    --- stdout
    agent:main:adopted:claude:local:0a1b  version 12
    nothing changed
    --- stderr
    --- asked
    SessionStatus(StatusQuery { session_key: agent:main:adopted:claude:local:0a1b, agent: None, changes_since: Some(12), reader: None })
    ");
}
