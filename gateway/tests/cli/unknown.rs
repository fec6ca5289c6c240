//! Names that do not exist: the answer names what does, and the nearest.

use insta::assert_snapshot;
use tidings_protocol::session_api::{
    AgentRow, Agents, CatalogThreads, Nodes, Notices, Reply, Request, Signals, Spawned, Watches,
};

use crate::fake::{Does, Fake, frame};
use crate::run::{alone, with};
use crate::values::{TIME, catalog_thread, key, laptop, local, not_found, sessions};

/// Has two sessions, two nodes and two threads, and never what was asked for.
fn without_it() -> Fake {
    Fake::that(|request| {
        let reply = match request {
            Request::SessionsList(list) if list.host.is_none() => {
                sessions(&["agent:main:main", "agent:main:adopted:claude:local:0a1b"])
            }
            Request::NodesList {} => Reply::NodesList(Nodes {
                nodes: vec![local(), laptop()],
                invitations: vec![],
            }),
            Request::CatalogList(list) if list.host.as_deref() == Some("local") => {
                Reply::CatalogList(CatalogThreads {
                    threads: vec![
                        catalog_thread("0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"),
                        catalog_thread("ffffffff-4e5f-6071-8293-a4b5c6d7e8f9"),
                    ],
                    errors: vec![],
                })
            }
            _ => not_found("there is no such thing"),
        };
        Does::Sends(vec![frame(&reply)])
    })
}

#[test]
fn an_unknown_session_names_the_nearest_and_the_others() {
    let fake = without_it();
    assert_snapshot!(with(&fake, "sessions show agent:main:mian"), @"
    exit 1
    --- stdout
    --- stderr
    error: there is no such thing
    hint: did you mean agent:main:main? the sessions are agent:main:main, agent:main:adopted:claude:local:0a1b (`tidings sessions list`)
    --- asked
    SessionShow(SessionRef { session_key: agent:main:mian, agent: None })
    SessionsList(SessionsList { agent: None, kind: None, host: None, active_minutes: None, archived: false, limit: Some(200), offset: 0 })
    ");
    assert_snapshot!(with(&fake, "sessions status agent:main:mian --json"), @r#"
    exit 1
    --- stdout
    {"schemaVersion":1,"ok":false,"error":{"type":"not_found","message":"there is no such thing","hint":"did you mean agent:main:main? the sessions are agent:main:main, agent:main:adopted:claude:local:0a1b (`tidings sessions list`)"}}
    --- stderr
    --- asked
    SessionStatus(StatusQuery { session_key: agent:main:mian, agent: None, changes_since: None, reader: None })
    SessionsList(SessionsList { agent: None, kind: None, host: None, active_minutes: None, archived: false, limit: Some(200), offset: 0 })
    "#);
    assert_snapshot!(with(&fake, "watch add agent:main:main agent:zzz:zzzzzzzzzzzz"), @"
    exit 1
    --- stdout
    --- stderr
    error: there is no such thing
    hint: the sessions are agent:main:main, agent:main:adopted:claude:local:0a1b (`tidings sessions list`)
    --- asked
    WatchAdd(WatchPair { watcher: Some(agent:main:main), target: agent:zzz:zzzzzzzzzzzz, target_agent: None })
    SessionsList(SessionsList { agent: None, kind: None, host: None, active_minutes: None, archived: false, limit: Some(200), offset: 0 })
    ");
}

#[test]
fn an_unknown_host_names_the_nearest_and_the_others() {
    let fake = without_it();
    assert_snapshot!(with(&fake, "catalog list --host latpop"), @r#"
    exit 1
    --- stdout
    --- stderr
    error: there is no such thing
    hint: did you mean laptop? the hosts are local, laptop (`tidings nodes list`)
    --- asked
    CatalogList(CatalogList { host: Some("latpop"), catalog: None, titles: false })
    NodesList
    "#);
    assert_snapshot!(with(&fake, "sessions list --host latpop --json"), @r#"
    exit 1
    --- stdout
    {"schemaVersion":1,"ok":false,"error":{"type":"not_found","message":"there is no such thing","hint":"did you mean laptop? the hosts are local, laptop (`tidings nodes list`)"}}
    --- stderr
    --- asked
    SessionsList(SessionsList { agent: None, kind: None, host: Some("latpop"), active_minutes: None, archived: false, limit: None, offset: 0 })
    NodesList
    "#);
    assert_snapshot!(with(&fake, "sessions adopt claude latpop 0a1b"), @r#"
    exit 1
    --- stdout
    --- stderr
    error: there is no such thing
    hint: did you mean laptop? the hosts are local, laptop (`tidings nodes list`)
    --- asked
    Adopt(Adopt { catalog: Claude, host: "latpop", thread_id: 0a1b, agent: None, watch_by: None })
    NodesList
    "#);
}

#[test]
fn an_unknown_node_names_the_nearest_and_the_others() {
    let fake = without_it();
    assert_snapshot!(with(&fake, "nodes show latpop"), @r#"
    exit 1
    --- stdout
    --- stderr
    error: there is no such thing
    hint: did you mean laptop? the nodes are local, laptop (`tidings nodes list`)
    --- asked
    NodesShow(NodeRef { node: "latpop" })
    NodesList
    "#);
    assert_snapshot!(with(&fake, "nodes revoke latpop --json"), @r#"
    exit 1
    --- stdout
    {"schemaVersion":1,"ok":false,"error":{"type":"not_found","message":"there is no such thing","hint":"did you mean laptop? the nodes are local, laptop (`tidings nodes list`)"}}
    --- stderr
    --- asked
    NodesRevoke(NodeRef { node: "latpop" })
    NodesList
    "#);
    assert_snapshot!(with(&fake, "nodes rename zzzzzzzz Z"), @r#"
    exit 1
    --- stdout
    --- stderr
    error: there is no such thing
    hint: the nodes are local, laptop (`tidings nodes list`)
    --- asked
    NodesRename(NodesRename { node: "zzzzzzzz", name: "Z" })
    NodesList
    "#);
    assert_snapshot!(with(&fake, "nodes remove latpop"), @r#"
    exit 1
    --- stdout
    --- stderr
    error: there is no such thing
    hint: did you mean laptop? the nodes are local, laptop (`tidings nodes list`)
    --- asked
    NodesRemove(NodeRef { node: "latpop" })
    NodesList
    "#);
}

#[test]
fn an_unknown_thread_names_the_nearest_and_the_others() {
    let line = "sessions adopt claude local 0a1b2c3d";
    assert_snapshot!(with(&without_it(), line), @r#"
    exit 1
    --- stdout
    --- stderr
    error: there is no such thing
    hint: did you mean 0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9? the threads are 0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9, ffffffff-4e5f-6071-8293-a4b5c6d7e8f9 (`tidings catalog list --host local`)
    --- asked
    Adopt(Adopt { catalog: Claude, host: "local", thread_id: 0a1b2c3d, agent: None, watch_by: None })
    NodesList
    CatalogList(CatalogList { host: Some("local"), catalog: Some(Claude), titles: false })
    "#);
}

#[test]
fn where_there_is_nothing_the_hint_says_that() {
    let fake = Fake::that(|request| {
        let reply = match request {
            Request::SessionsList(_) => sessions(&[]),
            _ => not_found("there is no session global"),
        };
        Does::Sends(vec![frame(&reply)])
    });
    assert_snapshot!(with(&fake, "sessions show global"), @"
    exit 1
    --- stdout
    --- stderr
    error: there is no session global
    hint: there are no sessions (`tidings sessions list`)
    --- asked
    SessionShow(SessionRef { session_key: global, agent: None })
    SessionsList(SessionsList { agent: None, kind: None, host: None, active_minutes: None, archived: false, limit: Some(200), offset: 0 })
    ");
}

/// Answers everything with nothing, and knows one session and one agent.
fn with_nothing() -> Fake {
    Fake::that(|request| {
        let reply = match request {
            Request::SessionsList(list) if list.agent.is_none() => sessions(&["agent:main:main"]),
            Request::SessionsList(_) => sessions(&[]),
            Request::NoticesList(_) | Request::NoticesDrain(_) => {
                Reply::Notices(Notices { notices: vec![] })
            }
            Request::WatchList(_) => Reply::WatchList(Watches { watches: vec![] }),
            Request::SignalsList(_) => Reply::Signals(Signals {
                signals: vec![],
                earliest_available_sequence: None,
            }),
            Request::AgentsList {} => Reply::AgentsList(Agents {
                agents: vec![AgentRow {
                    agent_id: "main".to_owned(),
                    sessions: 1,
                    updated_at: Some(TIME),
                }],
            }),
            Request::SessionsSpawn(_) => Reply::SessionsSpawn(Spawned {
                watched: true,
                session_key: key("agent:main:subagent:0a1b"),
                session_id: "9f8e".to_owned(),
                message_id: 8,
                sequence: 12,
                queued: true,
                ran: false,
            }),
            _ => not_found("there is no such session"),
        };
        Does::Sends(vec![frame(&reply)])
    })
}

#[test]
fn an_empty_answer_about_a_name_that_nobody_knows_says_so_beside_it() {
    let fake = with_nothing();
    let of_session = "warning: there is no session agent:main:mian: did you mean agent:main:main?";
    for line in [
        "notices list agent:main:mian",
        "notices drain agent:main:mian",
        "watch list --watcher agent:main:mian",
        "watch list --target agent:main:mian",
        "signals list --session agent:main:mian",
    ] {
        let said = with(&fake, line);
        assert!(
            said.starts_with("exit 0\n--- stdout\n--- stderr\n"),
            "{said}"
        );
        assert!(said.contains(of_session), "{line}: {said}");
        let json = with(&fake, &format!("{line} --json"));
        assert!(json.starts_with("exit 0\n--- stdout\n{"), "{json}");
        assert!(json.contains(of_session), "{line}: {json}");
    }
    let said = with(&fake, "sessions list --agent mian");
    assert!(said.starts_with("exit 0\n"), "{said}");
    let of_agent = "warning: there is no agent mian: did you mean main?";
    assert!(said.contains(of_agent), "{said}");
    let said = with(&fake, "sessions list --agent main");
    assert!(!said.contains("warning"), "{said}");
}

#[test]
fn a_session_that_only_exists_because_somebody_speaks_as_it_is_named() {
    assert_snapshot!(with(&with_nothing(), "sessions spawn agent:main:mian Test."), @"
    exit 0
    --- stdout
    agent:main:subagent:0a1b
    --- stderr
    warning: there was no session agent:main:mian, and there is now; did you mean agent:main:main? the sessions are agent:main:main (`tidings sessions list`)
    its task waits for its first turn; its parent watches it from version 12
    --- asked
    SessionStatus(StatusQuery { session_key: agent:main:mian, agent: None, changes_since: None, reader: None })
    SessionsList(SessionsList { agent: None, kind: None, host: None, active_minutes: None, archived: false, limit: Some(200), offset: 0 })
    SessionsSpawn(SessionsSpawn { parent: Some(agent:main:mian), agent: None, runtime: Subagent, label: None, task: PrivateText(5 bytes) })
    ");
}

#[test]
fn what_is_no_sequence_is_told_what_one_is() {
    for line in [
        "signals why abc",
        "signals why -1",
        "signals list --after 1.5",
        "signals follow --after x",
    ] {
        let said = alone(line);
        assert!(said.starts_with("exit 2\n"), "{said}");
        assert!(!said.contains("digit"), "{said}");
    }
    let said = alone("signals why abc");
    assert!(said.contains("a sequence is a whole number"), "{said}");
}

#[test]
fn an_unknown_signal_has_nothing_like_it() {
    assert_snapshot!(with(&without_it(), "signals why 999"), @"
    exit 1
    --- stdout
    --- stderr
    error: there is no such thing
    hint: tidings signals list
    --- asked
    SignalsWhy { sequence: 999 }
    ");
}

#[test]
fn a_failing_second_request_leaves_the_first_error_as_it_is() {
    let fake = Fake::answering(not_found("there is no session global"));
    assert_snapshot!(with(&fake, "sessions show global"), @"
    exit 1
    --- stdout
    --- stderr
    error: there is no session global
    --- asked
    SessionShow(SessionRef { session_key: global, agent: None })
    SessionsList(SessionsList { agent: None, kind: None, host: None, active_minutes: None, archived: false, limit: Some(200), offset: 0 })
    ");
}
