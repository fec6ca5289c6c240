//! Resets and deletions over a real socket.

use tidings_protocol::session_api::{
    AgentRef, ErrorType, Request, SpeakerRef, StatusQuery, WatchFilter,
};

use crate::served::{Served, ask, body, key, message, refused, session, speak, speaker, watch};

const WATCHER: &str = "agent:main:main";
const TARGET: &str = "agent:ops:main";

#[tokio::test]
async fn a_reset_ends_what_the_session_watches_and_gives_it_a_new_transcript() {
    let served = Served::start();
    let mut door = served.connect().await;
    watch(&mut door, WATCHER, TARGET).await;
    watch(&mut door, TARGET, WATCHER).await;
    let reset = Request::SessionReset(speaker(WATCHER));
    let first = body!(ask(&mut door, reset.clone()).await, SessionReset);
    assert_eq!(first.watches_ended, 1);
    let second = body!(ask(&mut door, reset).await, SessionReset);
    assert_eq!(second.watches_ended, 0);
    assert_ne!(second.session_id, first.session_id);
    let list = Request::WatchList(WatchFilter::default());
    let watches = body!(ask(&mut door, list).await, WatchList).watches;
    assert_eq!(watches.len(), 1);
    assert_eq!(watches[0].target, key(WATCHER));
}

#[tokio::test]
async fn a_deleted_session_is_gone_from_both_ends_of_its_watches_and_reports_its_gap() {
    let served = Served::start();
    let mut door = served.connect().await;
    watch(&mut door, WATCHER, TARGET).await;
    watch(&mut door, TARGET, WATCHER).await;
    speak(&mut door, TARGET).await;
    let send = Request::SessionsSend(message(TARGET, "never read"));
    ask(&mut door, send).await;

    let delete = Request::SessionDelete(session(TARGET));
    let deleted = body!(ask(&mut door, delete.clone()).await, SessionDelete);
    assert_eq!(deleted.agent_id, "ops");
    let error = refused(&mut door, delete).await;
    assert_eq!(error.error_type, ErrorType::NotFound);

    let list = Request::WatchList(WatchFilter::default());
    let watches = body!(ask(&mut door, list).await, WatchList).watches;
    assert_eq!(watches, []);
    let begun = ask(&mut door, Request::TurnBegin(speaker(TARGET))).await;
    assert_eq!(body!(begun, TurnBegin).messages, []);
    let query = StatusQuery {
        session_key: key(TARGET),
        agent: None,
        changes_since: Some(0),
        reader: None,
    };
    let status = ask(&mut door, Request::SessionStatus(query)).await;
    let changes = body!(status, SessionStatus).state_changes.expect("changes");
    assert!(changes.history_gap);
}

#[tokio::test]
async fn what_does_not_exist_is_neither_reset_nor_deleted() {
    let served = Served::start();
    let mut door = served.connect().await;
    let agent = AgentRef {
        agent: "nobody".to_owned(),
    };
    for request in [
        Request::SessionReset(speaker("agent:main:nobody")),
        Request::SessionDelete(session("agent:main:nobody")),
        Request::AgentsDelete(agent),
    ] {
        let error = refused(&mut door, request).await;
        assert_eq!(error.error_type, ErrorType::NotFound);
    }
}

#[tokio::test]
async fn an_agent_goes_with_its_sessions_and_another_of_the_same_bare_key_stays() {
    let served = Served::start();
    let mut door = served.connect().await;
    let global = |agent: &str| SpeakerRef {
        session_key: Some(key("global")),
        agent: Some(agent.to_owned()),
    };
    for agent in ["ops", "coder"] {
        ask(&mut door, Request::TurnBegin(global(agent))).await;
    }
    watch(&mut door, WATCHER, TARGET).await;
    let delete = Request::AgentsDelete(AgentRef {
        agent: "ops".to_owned(),
    });
    let deleted = body!(ask(&mut door, delete).await, AgentsDelete);
    assert_eq!((deleted.agent_id.as_str(), deleted.sessions), ("ops", 2));
    let agents = body!(ask(&mut door, Request::AgentsList {}).await, AgentsList).agents;
    let names: Vec<_> = agents
        .iter()
        .map(|agent| (agent.agent_id.as_str(), agent.sessions))
        .collect();
    assert_eq!(names, [("coder", 1), ("main", 1)]);
}
