//! `tidings sessions reset|delete` and `tidings agents`

use insta::assert_snapshot;
use tidings_protocol::session_api::{
    AgentDeleted, AgentRow, Agents, ApiError, ErrorType, Reply, Request, SessionDeleted,
    SessionResetDone,
};

use crate::fake::{Does, Fake, frame};
use crate::run::with;
use crate::values::{TIME, key};

#[test]
fn reset_prints_how_the_session_goes_on() {
    let reset = |watches_ended| {
        Fake::answering(Reply::SessionReset(SessionResetDone {
            session_key: key("agent:main:main"),
            session_id: "0a1b".to_owned(),
            watches_ended,
        }))
    };
    assert_snapshot!(with(&reset(0), "sessions reset agent:main:main"), @"
    exit 0
    --- stdout
    agent:main:main goes on as 0a1b
    --- stderr
    --- asked
    SessionReset(SpeakerRef { session_key: Some(agent:main:main), agent: None })
    ");
    assert_snapshot!(with(&reset(2), "sessions reset agent:main:main"), @"
    exit 0
    --- stdout
    agent:main:main goes on as 0a1b
    --- stderr
    2 watches of it ended
    --- asked
    SessionReset(SpeakerRef { session_key: Some(agent:main:main), agent: None })
    ");
    assert_snapshot!(with(&reset(1), "sessions reset global --agent ops --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"sessionKey":"agent:main:main","sessionId":"0a1b","watchesEnded":1}
    --- stderr
    --- asked
    SessionReset(SpeakerRef { session_key: Some(global), agent: Some("ops") })
    "#);
}

#[test]
fn delete_asks_nothing_and_says_what_it_did() {
    let fake = Fake::answering(Reply::SessionDelete(SessionDeleted {
        session_key: key("agent:main:main"),
        agent_id: "main".to_owned(),
    }));
    assert_snapshot!(with(&fake, "sessions delete agent:main:main"), @"
    exit 0
    --- stdout
    agent:main:main is deleted
    --- stderr
    --- asked
    SessionDelete(SessionRef { session_key: agent:main:main, agent: None })
    ");
    assert_snapshot!(with(&fake, "sessions delete agent:main:main --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"sessionKey":"agent:main:main","agentId":"main"}
    --- stderr
    --- asked
    SessionDelete(SessionRef { session_key: agent:main:main, agent: None })
    "#);
}

fn agents(names: &[&str]) -> Reply {
    let row = |name: &&str| AgentRow {
        agent_id: (*name).to_owned(),
        sessions: 3,
        updated_at: Some(TIME),
    };
    Reply::AgentsList(Agents {
        agents: names.iter().map(row).collect(),
    })
}

#[test]
fn agents_list_shows_how_much_each_has() {
    let fake = Fake::answering(agents(&["main", "ops"]));
    assert_snapshot!(with(&fake, "agents list"), @"
    exit 0
    --- stdout
    AGENT  SESSIONS  CHANGED (UTC)
    main          3  2026-11-30 21:05:03
    ops           3  2026-11-30 21:05:03
    --- stderr
    --- asked
    AgentsList
    ");
    assert_snapshot!(with(&fake, "agents list --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"agents":[{"agentId":"main","sessions":3,"updatedAt":1796072703123},{"agentId":"ops","sessions":3,"updatedAt":1796072703123}]}
    --- stderr
    --- asked
    AgentsList
    "#);
    assert_snapshot!(with(&Fake::answering(agents(&[])), "agents list"), @"
    exit 0
    --- stdout
    --- stderr
    no agents
    hint: tidings catalog list shows threads, tidings sessions adopt takes one in
    --- asked
    AgentsList
    ");
}

#[test]
fn agents_delete_says_how_many_sessions_went() {
    let deleted = |sessions| {
        Fake::answering(Reply::AgentsDelete(AgentDeleted {
            agent_id: "ops".to_owned(),
            sessions,
        }))
    };
    assert_snapshot!(with(&deleted(1), "agents delete ops"), @r#"
    exit 0
    --- stdout
    ops and its 1 session are deleted
    --- stderr
    --- asked
    AgentsDelete(AgentRef { agent: "ops" })
    "#);
    assert_snapshot!(with(&deleted(3), "agents delete ops --json"), @r#"
    exit 0
    --- stdout
    {"schemaVersion":1,"agentId":"ops","sessions":3}
    --- stderr
    --- asked
    AgentsDelete(AgentRef { agent: "ops" })
    "#);
}

#[test]
fn an_unknown_agent_is_answered_with_those_there_are() {
    let fake = Fake::that(|request| {
        let reply = match request {
            Request::AgentsList {} => agents(&["main", "ops"]),
            _ => Reply::Error(ApiError::new(ErrorType::NotFound, "there is no agent obs")),
        };
        Does::Sends(vec![frame(&reply)])
    });
    assert_snapshot!(with(&fake, "agents delete obs"), @r#"
    exit 1
    --- stdout
    --- stderr
    error: there is no agent obs
    hint: did you mean ops? the agents are main, ops (`tidings agents list`)
    --- asked
    AgentsDelete(AgentRef { agent: "obs" })
    AgentsList
    "#);
}
