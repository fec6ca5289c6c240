//! Names that do not exist: the answer names what does, and the nearest.

use insta::assert_snapshot;
use tidings_protocol::session_api::{CatalogThreads, Nodes, Reply, Request};

use crate::fake::{Does, Fake, frame};
use crate::run::with;
use crate::values::{catalog_thread, laptop, local, not_found, sessions};

/// Has two sessions, two nodes and two threads, and never what was asked for.
fn without_it() -> Fake {
    Fake::that(|request| {
        let reply = match request {
            Request::SessionsList(list) if list.host.is_none() => {
                sessions(&["agent:main:main", "agent:main:adopted:claude:local:0a1b"])
            }
            Request::NodesList {} => Reply::NodesList(Nodes {
                nodes: vec![local(), laptop()],
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
    SessionsList(SessionsList { agent: None, host: None, active_minutes: None, archived: false, limit: Some(200), offset: 0 })
    ");
    assert_snapshot!(with(&fake, "sessions status agent:main:mian --json"), @r#"
    exit 1
    --- stdout
    {"schemaVersion":1,"ok":false,"error":{"type":"not_found","message":"there is no such thing","hint":"did you mean agent:main:main? the sessions are agent:main:main, agent:main:adopted:claude:local:0a1b (`tidings sessions list`)"}}
    --- stderr
    --- asked
    SessionStatus(StatusQuery { session_key: agent:main:mian, agent: None, changes_since: None, reader: None })
    SessionsList(SessionsList { agent: None, host: None, active_minutes: None, archived: false, limit: Some(200), offset: 0 })
    "#);
    assert_snapshot!(with(&fake, "watch add agent:main:main agent:zzz:zzzzzzzzzzzz"), @"
    exit 1
    --- stdout
    --- stderr
    error: there is no such thing
    hint: the sessions are agent:main:main, agent:main:adopted:claude:local:0a1b (`tidings sessions list`)
    --- asked
    WatchAdd(WatchPair { watcher: Some(agent:main:main), target: agent:zzz:zzzzzzzzzzzz, target_agent: None })
    SessionsList(SessionsList { agent: None, host: None, active_minutes: None, archived: false, limit: Some(200), offset: 0 })
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
    SessionsList(SessionsList { agent: None, host: Some("latpop"), active_minutes: None, archived: false, limit: None, offset: 0 })
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
    SessionsList(SessionsList { agent: None, host: None, active_minutes: None, archived: false, limit: Some(200), offset: 0 })
    ");
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
    SessionsList(SessionsList { agent: None, host: None, active_minutes: None, archived: false, limit: Some(200), offset: 0 })
    ");
}
