//! Sample values for replies.

use tidings_protocol::session_api::{
    ApiError, CatalogThread, ErrorType, Node, NodeState, Reply, SessionRow, Sessions, SignalRow,
};
use tidings_protocol::signal::Payload;
use tidings_protocol::{
    ActorType, Catalog, EpochMs, Host, HostName, NodeId, SessionKey, SignalKind, ThreadId,
};

/// 2026-11-30 21:05:03 UTC
pub(crate) const TIME: EpochMs = 1_796_072_703_123;
pub(crate) const DAY: EpochMs = 86_400_000;

pub(crate) fn key(text: &str) -> SessionKey {
    SessionKey::parse(text).expect("key")
}

pub(crate) fn thread(text: &str) -> ThreadId {
    ThreadId::parse(text).expect("thread")
}

pub(crate) fn laptop_id() -> NodeId {
    NodeId::parse("0123456789abcdef0123456789abcdef").expect("node id")
}

pub(crate) fn local() -> Node {
    Node {
        id: NodeId::parse("ffffffffffffffffffffffffffffffff").expect("node id"),
        name: "local".to_owned(),
        host_name: HostName::local(),
        host: Host::GatewayLocal,
        status: NodeState::Connected,
        last_seen_at: Some(TIME),
        version: Some("0.1.0".to_owned()),
        certificate_not_after: Some(TIME + 30 * DAY),
        warnings: vec![],
        roots: vec![],
        request: None,
        audit: vec![],
    }
}

pub(crate) fn laptop() -> Node {
    Node {
        id: laptop_id(),
        name: "Ada's laptop".to_owned(),
        host_name: HostName::parse("laptop").expect("name"),
        host: Host::Node(laptop_id()),
        status: NodeState::Offline,
        last_seen_at: None,
        version: None,
        certificate_not_after: Some(TIME + DAY),
        warnings: vec!["its certificate expires within a day".to_owned()],
        roots: vec![],
        request: None,
        audit: vec![],
    }
}

pub(crate) fn catalog_thread(id: &str) -> CatalogThread {
    CatalogThread {
        catalog: Catalog::Claude,
        host: Host::GatewayLocal,
        node: HostName::local(),
        thread_id: thread(id),
        path: format!("/home/ada/.claude/projects/x/{id}.jsonl"),
        cwd: None,
        title: None,
        updated_at: TIME,
        size_bytes: 999,
        adopted_as: None,
    }
}

pub(crate) fn session(text: &str) -> SessionRow {
    SessionRow {
        session_key: key(text),
        agent_id: "main".to_owned(),
        session_id: "0a1b".to_owned(),
        label: None,
        updated_at: TIME,
        archived: false,
        pinned: false,
        host: None,
        node: None,
        state_version: None,
        context_tokens: None,
        context_tokens_estimated: None,
        compaction_count: None,
    }
}

pub(crate) fn sessions(keys: &[&str]) -> Reply {
    Reply::SessionsList(Sessions {
        sessions: keys.iter().map(|key| session(key)).collect(),
        count: keys.len() as u64,
        has_more: false,
        next_offset: None,
    })
}

pub(crate) fn signal(sequence: u64) -> SignalRow {
    SignalRow {
        sequence,
        session_key: key("agent:main:adopted:claude:laptop:0a1b"),
        agent_id: "main".to_owned(),
        kind: SignalKind::HumanDirectMessage,
        actor_type: ActorType::Human,
        actor_id: None,
        run_id: None,
        occurred_at: TIME,
        recorded_at: TIME + 5,
        summary: "human message via claude".to_owned(),
        payload: Some(Payload {
            turns: Some(2),
            catalog: Some(Catalog::Claude),
            host: Some(Host::Node(laptop_id())),
            ..Payload::default()
        }),
    }
}

pub(crate) fn not_found(message: &str) -> Reply {
    Reply::Error(ApiError::new(ErrorType::NotFound, message))
}
