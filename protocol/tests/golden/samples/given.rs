//! The requests by which a session is given something: inputs, goals, messages, children,
//! and its end.

use tidings_protocol::session_api::{
    AgentRef, ChildRuntime, CompactionRecorded, CompactionTrigger, GoalClear, GoalSet,
    InputProvenance, MessageRecorded, Request, RunEnd, RunFinished, SessionsHistory, SessionsSend,
    SessionsSpawn, SpeakerRef,
};

use super::parts::{NOON, adopted_key, key};
use super::requests::{bare_key, bare_session, session};

/// Samples of these requests.
pub(super) fn all() -> Vec<(&'static str, Request)> {
    [inputs(), goals(), sending(), endings(), history()].concat()
}

fn inputs() -> Vec<(&'static str, Request)> {
    let message = |provenance| MessageRecorded {
        session_key: None,
        agent: None,
        provenance,
        channel: None,
        occurred_at: None,
        dedupe_key: None,
    };
    let sender = key("main");
    let full = MessageRecorded {
        session_key: Some(bare_key()),
        agent: Some("coder".into()),
        channel: Some("telegram".into()),
        occurred_at: Some(NOON),
        dedupe_key: Some("telegram:7".into()),
        ..message(InputProvenance::ExternalUser)
    };
    let compaction = CompactionRecorded {
        session_key: None,
        agent: None,
        trigger: CompactionTrigger::Automatic,
        dedupe_key: None,
    };
    let by_hand = CompactionRecorded {
        session_key: Some(bare_key()),
        agent: Some("coder".into()),
        trigger: CompactionTrigger::Manual,
        dedupe_key: Some("compaction:7".into()),
    };
    vec![
        ("a human's, with everything", Request::MessageRecorded(full)),
        (
            "another session's",
            Request::MessageRecorded(message(InputProvenance::InterSession { sender })),
        ),
        (
            "the system's",
            Request::MessageRecorded(message(InputProvenance::InternalSystem)),
        ),
        ("by itself", Request::CompactionRecorded(compaction)),
        ("by hand", Request::CompactionRecorded(by_hand)),
    ]
}

fn goals() -> Vec<(&'static str, Request)> {
    let set = GoalSet {
        session_key: adopted_key(),
        agent: None,
        goal: "The engine runs.".into(),
        caller: None,
    };
    let set_by_a_session = GoalSet {
        session_key: bare_key(),
        agent: Some("coder".into()),
        caller: Some(key("main")),
        ..set.clone()
    };
    let clear = GoalClear {
        session_key: adopted_key(),
        agent: None,
        caller: None,
    };
    let cleared_by_a_session = GoalClear {
        session_key: bare_key(),
        agent: Some("coder".into()),
        caller: Some(key("main")),
    };
    vec![
        ("by an operator", Request::GoalSet(set)),
        ("by a session", Request::GoalSet(set_by_a_session)),
        ("by an operator", Request::GoalClear(clear)),
        ("by a session", Request::GoalClear(cleared_by_a_session)),
    ]
}

fn sending() -> Vec<(&'static str, Request)> {
    let send = SessionsSend {
        session_key: adopted_key(),
        agent: None,
        message: "Please rebase.".into(),
        sender: None,
        watch: None,
        expected_session_id: None,
    };
    let full = SessionsSend {
        session_key: bare_key(),
        agent: Some("coder".into()),
        sender: Some(key("main")),
        watch: Some(true),
        expected_session_id: Some("6f0d6a1e".into()),
        ..send.clone()
    };
    let spawn = SessionsSpawn {
        parent: None,
        agent: None,
        runtime: ChildRuntime::Subagent,
        label: None,
        task: "Run the tests.".into(),
    };
    let labelled = SessionsSpawn {
        parent: Some(key("main")),
        agent: Some("coder".into()),
        runtime: ChildRuntime::Acp,
        label: Some("tests".into()),
        ..spawn.clone()
    };
    let mut requests = vec![
        ("by an operator", Request::SessionsSend(send)),
        ("by a session, with everything", Request::SessionsSend(full)),
        ("a sub-agent", Request::SessionsSpawn(spawn)),
        ("an ACP session", Request::SessionsSpawn(labelled)),
    ];
    requests.extend(runs());
    requests
}

fn runs() -> Vec<(&'static str, Request)> {
    let finished = |outcome| RunFinished {
        session_key: key("subagent:1"),
        agent: None,
        outcome,
        result: None,
        run_id: None,
        caller: None,
    };
    let full = RunFinished {
        session_key: bare_key(),
        agent: Some("coder".into()),
        result: Some("All green.".into()),
        run_id: Some("run-1".into()),
        caller: Some(key("main")),
        ..finished(RunEnd::Completed)
    };
    vec![
        ("with everything", Request::RunFinished(full)),
        ("an error", Request::RunFinished(finished(RunEnd::Error))),
        ("a timeout", Request::RunFinished(finished(RunEnd::Timeout))),
        (
            "cancelled",
            Request::RunFinished(finished(RunEnd::Cancelled)),
        ),
    ]
}

fn endings() -> Vec<(&'static str, Request)> {
    let bare_speaker = SpeakerRef {
        session_key: Some(bare_key()),
        agent: Some("coder".into()),
    };
    let agent = AgentRef {
        agent: "coder".into(),
    };
    vec![
        (
            "of the caller",
            Request::SessionReset(SpeakerRef::default()),
        ),
        ("of a bare key", Request::SessionReset(bare_speaker)),
        ("of a qualified key", Request::SessionDelete(session())),
        ("of a bare key", Request::SessionDelete(bare_session())),
        ("agents_list", Request::AgentsList {}),
        ("agents_delete", Request::AgentsDelete(agent)),
    ]
}

fn history() -> Vec<(&'static str, Request)> {
    let newest = SessionsHistory {
        session_key: adopted_key(),
        agent: None,
        limit: None,
        before: None,
        tools: false,
    };
    let full = SessionsHistory {
        session_key: bare_key(),
        agent: Some("coder".into()),
        limit: Some(50),
        before: Some(961_000),
        tools: true,
    };
    vec![
        ("the newest", Request::SessionsHistory(newest)),
        ("with everything", Request::SessionsHistory(full)),
    ]
}
