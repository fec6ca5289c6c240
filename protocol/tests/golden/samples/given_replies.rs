//! The replies about what a session is given, and about its end.

use tidings_protocol::session_api::{
    AgentDeleted, AgentRow, Agents, GoalChanged, History, HistoryItem, HistoryItems, HistoryRole,
    Recorded, Reply, RunEnded, Sent, SessionDeleted, SessionResetDone, Spawned,
};

use super::parts::{NOON, adopted_key, key};

/// Samples of these replies.
pub(super) fn all() -> Vec<(&'static str, Reply)> {
    [changes(), sending(), endings(), history()].concat()
}

fn changes() -> Vec<(&'static str, Reply)> {
    let recorded = Recorded {
        recorded: true,
        sequence: Some(42),
        reason: None,
    };
    let repeated = Recorded {
        recorded: false,
        sequence: None,
        reason: Some("nobody watches this session".into()),
    };
    let goal = |changed, sequence| Reply::Goal(GoalChanged { changed, sequence });
    vec![
        ("recorded", Reply::Recorded(recorded)),
        ("not recorded", Reply::Recorded(repeated)),
        ("changed", goal(true, Some(42))),
        ("the same as before", goal(false, None)),
    ]
}

fn sending() -> Vec<(&'static str, Reply)> {
    let sent = Sent {
        session_key: adopted_key(),
        message_id: 7,
        queued: true,
        ran: false,
        watched: None,
        reason: None,
    };
    let unwatched = Sent {
        queued: false,
        ran: true,
        watched: Some(false),
        reason: Some("a session does not watch itself".into()),
        ..sent.clone()
    };
    let spawned = Spawned {
        session_key: key("subagent:1"),
        session_id: "6f0d6a1e".to_owned(),
        message_id: 7,
        sequence: 42,
        watched: true,
        queued: true,
        ran: false,
    };
    let ended = |sequence, parent| Reply::RunFinished(RunEnded { sequence, parent });
    vec![
        ("queued", Reply::SessionsSend(sent)),
        ("run, not watched", Reply::SessionsSend(unwatched)),
        ("sessions_spawn", Reply::SessionsSpawn(spawned)),
        ("with a parent", ended(Some(43), Some(key("main")))),
        ("whose parent is gone", ended(Some(43), None)),
        ("of a cron job", ended(None, None)),
    ]
}

fn endings() -> Vec<(&'static str, Reply)> {
    let reset = SessionResetDone {
        session_key: adopted_key(),
        session_id: "6f0d6a1e".to_owned(),
        watches_ended: 2,
    };
    let deleted = SessionDeleted {
        session_key: adopted_key(),
        agent_id: "main".to_owned(),
    };
    let agent = |agent_id: &str, updated_at| AgentRow {
        agent_id: agent_id.to_owned(),
        sessions: 3,
        updated_at,
    };
    let agents = Agents {
        agents: vec![agent("coder", Some(NOON)), agent("main", None)],
    };
    let agent_deleted = AgentDeleted {
        agent_id: "coder".to_owned(),
        sessions: 3,
    };
    vec![
        ("session_reset", Reply::SessionReset(reset)),
        ("session_delete", Reply::SessionDelete(deleted)),
        ("agents_list", Reply::AgentsList(agents)),
        ("agents_delete", Reply::AgentsDelete(agent_deleted)),
    ]
}

fn history() -> Vec<(&'static str, Reply)> {
    let empty = History {
        session_key: adopted_key(),
        items: Vec::new(),
        before: None,
    };
    let HistoryItems { items, before } = history_items();
    let full = History {
        items,
        before,
        ..empty.clone()
    };
    vec![
        ("nothing", Reply::SessionsHistory(empty)),
        ("every role", Reply::SessionsHistory(full)),
    ]
}

/// One item of every role.
pub(super) fn history_items() -> HistoryItems {
    let item = |role| HistoryItem {
        role,
        text: "All green.".into(),
        at: Some(NOON),
        cut: true,
    };
    let nameless = HistoryItem {
        at: None,
        cut: false,
        ..item(HistoryRole::Assistant)
    };
    HistoryItems {
        items: vec![
            item(HistoryRole::User),
            item(HistoryRole::Assistant),
            item(HistoryRole::Tool),
            item(HistoryRole::Summary),
            nameless,
        ],
        before: Some(961_000),
    }
}
