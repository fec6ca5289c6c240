//! What a program may see from its session, and what the global scope means.

use tidings_gateway::config::{Config, Session, SessionScope, Visibility};
use tidings_gateway::state::{AgentId, NewAdoption, NewCertificate};
use tidings_node::cli::Connection;
use tidings_protocol::session_api::{
    Adopt, CatalogList, ChildRuntime, CronRunBegin, ErrorType, Request, SessionsList,
    SessionsSpawn, Spawned, StatusQuery, WatchFilter, WatchPair,
};
use tidings_protocol::wire::messages::{Thread, ThreadOpened};
use tidings_protocol::{Catalog, Host, Marker, NodeId, SessionKey, ThreadId};

use crate::raw::caller;
use crate::served::{Served, ask, body, key, message, refused, session, speak, speaker, watch};

const OWN: &str = "agent:main:adopted:claude:local:mine";
const OF_AGENT: &str = "agent:main:main";
const FOREIGN: &str = "agent:ops:main";

fn configured(session: Session) -> Config {
    Config {
        session,
        ..Config::default()
    }
}

/// Takes the thread `mine` of this machine in, as its node would have opened it.
async fn adopt(served: &Served) {
    let certificate = NewCertificate {
        serial: "01".to_owned(),
        der: vec![1],
        not_before: 0,
        not_after: i64::MAX,
    };
    let node = NodeId::of_public_key(b"local");
    let ensured = served
        .state
        .ensure_local_node(node, "1.0".to_owned(), certificate);
    ensured.await.expect("a node");
    let opened = ThreadOpened {
        thread: Thread {
            catalog: Catalog::Claude,
            thread_id: ThreadId::parse("mine").expect("a thread"),
            path: "/home/ada/.claude/projects/p/mine.jsonl".to_owned(),
            cwd: None,
            title: None,
            updated_at: 0,
            size_bytes: 0,
        },
        marker: Marker::at_start(0),
    };
    let adoption = NewAdoption {
        agent: AgentId::parse("main").expect("an agent"),
        host: Host::GatewayLocal,
        opened,
        watch_by: None,
    };
    let adopted = served.state.adopt(adoption).await.expect("adopted");
    assert_eq!(adopted.session_key, key(OWN));
}

async fn spawn(door: &mut Connection, parent: Option<SessionKey>, agent: &str) -> Spawned {
    let spawn = Request::SessionsSpawn(SessionsSpawn {
        parent,
        agent: Some(agent.to_owned()),
        runtime: ChildRuntime::Subagent,
        label: None,
        task: "t".into(),
    });
    body!(ask(door, spawn).await, SessionsSpawn)
}

/// The keys that a list shows, sorted.
async fn listed(door: &mut Connection) -> Vec<String> {
    let list = Request::SessionsList(SessionsList::default());
    let page = body!(ask(door, list).await, SessionsList);
    assert_eq!(page.count, page.sessions.len() as u64);
    let mut keys: Vec<_> = page
        .sessions
        .iter()
        .map(|row| row.session_key.to_string())
        .collect();
    keys.sort();
    keys
}

#[tokio::test]
async fn a_program_sees_what_the_configuration_lets_it_see_and_the_operator_all() {
    for (visibility, foreign, of_agent, descendants) in [
        (Visibility::Own, false, false, false),
        (Visibility::Tree, false, false, true),
        (Visibility::Agent, false, true, true),
        (Visibility::All, true, true, true),
    ] {
        let served = Served::start_with(configured(Session {
            visibility,
            ..Session::default()
        }));
        adopt(&served).await;
        let mut operator = served.connect().await;
        watch(&mut operator, OF_AGENT, FOREIGN).await;
        let mut program = served.connect().await;
        program
            .introduce(&caller("mine"))
            .await
            .expect("introduced");
        let child = spawn(&mut program, None, "coder").await.session_key;
        let grandchild = spawn(&mut operator, Some(child.clone()), "coder").await;
        let grandchild = grandchild.session_key;

        let mut expected = vec![OWN.to_owned()];
        for (target, is_seen) in [
            (&key(OWN), true),
            (&child, descendants),
            (&grandchild, descendants),
            (&key(OF_AGENT), of_agent),
            (&key(FOREIGN), foreign),
        ] {
            let requests = [
                Request::SessionShow(session(target.as_str())),
                Request::SessionStatus(StatusQuery {
                    session_key: target.clone(),
                    agent: None,
                    changes_since: Some(0),
                    reader: None,
                }),
                Request::SessionsSend(message(target.as_str(), "m")),
                Request::WatchAdd(WatchPair {
                    watcher: None,
                    target: target.clone(),
                    target_agent: None,
                }),
            ];
            for request in requests {
                ask(&mut operator, as_operator(&request)).await;
                if is_seen {
                    ask(&mut program, request).await;
                } else {
                    let error = refused(&mut program, request).await;
                    assert_eq!(error.error_type, ErrorType::NotPermitted, "{visibility}");
                }
            }
            if is_seen && target.as_str() != OWN {
                expected.push(target.to_string());
            }
        }
        expected.sort();
        assert_eq!(listed(&mut program).await, expected, "{visibility}");
        assert_eq!(listed(&mut operator).await.len(), 5, "{visibility}");
    }
}

/// The same request, with the session that a program has from its conversation.
fn as_operator(request: &Request) -> Request {
    match request.clone() {
        Request::WatchAdd(pair) => Request::WatchAdd(WatchPair {
            watcher: Some(key(FOREIGN)),
            ..pair
        }),
        other => other,
    }
}

fn cron_run() -> Request {
    Request::CronRunBegin(CronRunBegin {
        job_id: "nightly".to_owned(),
        force: false,
        agent: None,
    })
}

#[tokio::test]
async fn a_program_that_sees_all_begins_cron_runs() {
    let served = Served::start_with(configured(Session {
        visibility: Visibility::All,
        ..Session::default()
    }));
    adopt(&served).await;
    let mut program = served.connect().await;
    program
        .introduce(&caller("mine"))
        .await
        .expect("introduced");
    let begun = body!(ask(&mut program, cron_run()).await, CronRunBegin);
    assert!(begun.is_new);
    assert_eq!(begun.session_key, key("cron:nightly"));
}

#[tokio::test]
async fn threads_and_cron_runs_are_only_for_who_sees_all_and_a_stranger_sees_nothing() {
    let served = Served::start_with(configured(Session {
        visibility: Visibility::Agent,
        ..Session::default()
    }));
    adopt(&served).await;
    let mut program = served.connect().await;
    program
        .introduce(&caller("mine"))
        .await
        .expect("introduced");
    let adopt_other = Adopt {
        catalog: Catalog::Claude,
        host: "local".to_owned(),
        thread_id: ThreadId::parse("other").expect("a thread"),
        agent: None,
        watch_by: None,
    };
    for request in [
        Request::CatalogList(CatalogList::default()),
        Request::Adopt(adopt_other),
        cron_run(),
    ] {
        let error = refused(&mut program, request).await;
        assert_eq!(error.error_type, ErrorType::NotPermitted);
    }
    let mut stranger = served.connect().await;
    let unknown = caller("never-adopted");
    stranger.introduce(&unknown).await.expect("introduced");
    assert_eq!(listed(&mut stranger).await, Vec::<String>::new());
    let error = refused(&mut stranger, Request::SessionShow(session(OWN))).await;
    assert_eq!(error.error_type, ErrorType::NotPermitted);
}

#[tokio::test]
async fn under_the_global_scope_a_session_has_its_log_and_no_notices() {
    let served = Served::start_with(configured(Session {
        scope: SessionScope::Global,
        ..Session::default()
    }));
    let mut door = served.connect().await;
    // An agent's main session is the one that all its conversations share.
    ask(&mut door, Request::TurnBegin(speaker("agent:main:main"))).await;
    let shown = ask(&mut door, Request::SessionShow(session("agent:main:main"))).await;
    assert_eq!(body!(shown, SessionShow).session_key, key("global"));
    ask(&mut door, Request::TurnBegin(speaker("agent:main:other"))).await;

    for watcher in ["global", "agent:main:main"] {
        let watch = WatchPair {
            watcher: Some(key(watcher)),
            target: key("agent:main:other"),
            target_agent: None,
        };
        let watched = body!(ask(&mut door, Request::WatchAdd(watch)).await, WatchAdd);
        assert!(!watched.watched && watched.reason.is_some(), "{watched:?}");
    }
    let child = spawn(&mut door, Some(key("agent:main:main")), "main").await;
    let list = Request::WatchList(WatchFilter::default());
    assert_eq!(body!(ask(&mut door, list).await, WatchList).watches, []);

    // Others watch it, and its delta is exact.
    let watch = WatchPair {
        watcher: Some(child.session_key.clone()),
        target: key("agent:main:main"),
        target_agent: None,
    };
    let watched = body!(ask(&mut door, Request::WatchAdd(watch)).await, WatchAdd);
    assert!(watched.watched, "{watched:?}");
    speak(&mut door, "agent:main:main").await;
    let query = StatusQuery {
        session_key: key("global"),
        agent: None,
        changes_since: Some(0),
        reader: None,
    };
    let status = body!(
        ask(&mut door, Request::SessionStatus(query)).await,
        SessionStatus
    );
    let changes = status.state_changes.expect("changes");
    assert_eq!(changes.events.len(), 1);
    assert!(!changes.history_gap);
    // It is handed its messages, and no notices.
    ask(&mut door, Request::SessionsSend(message("global", "m"))).await;
    let begun = ask(&mut door, Request::TurnBegin(speaker("agent:main:main"))).await;
    let begun = body!(begun, TurnBegin);
    assert_eq!((begun.notices.len(), begun.messages.len()), (0, 1));
    let drained = ask(&mut door, Request::NoticesDrain(session("agent:main:main"))).await;
    assert_eq!(body!(drained, Notices).notices, []);
    let told = ask(
        &mut door,
        Request::NoticesList(session(child.session_key.as_str())),
    )
    .await;
    assert_eq!(body!(told, Notices).notices.len(), 1);
}

#[test]
fn visibility_is_spelled_as_in_the_configuration() {
    for (text, visibility) in [
        ("self", Visibility::Own),
        ("tree", Visibility::Tree),
        ("agent", Visibility::Agent),
        ("all", Visibility::All),
    ] {
        assert_eq!(visibility.to_string(), text);
        let read: Visibility = serde_json::from_str(&format!("\"{text}\"")).expect("a level");
        assert_eq!(read, visibility);
    }
}
