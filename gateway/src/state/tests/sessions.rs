//! Entries, and what goes with a session.

use tidings_protocol::session_api::SessionKind;

use super::*;
use crate::state::{SessionMark, SessionsPage, Shelf, StateError};

const W: &str = "agent:main:w";
const T: &str = "agent:main:t";

impl Fixture {
    async fn listed(&self, page: SessionsPage) -> Vec<String> {
        let sessions = self.state.sessions(page).await.expect("a page").sessions;
        sessions
            .iter()
            .map(|row| row.session_key.to_string())
            .collect()
    }

    async fn mark(&self, session: &str, mark: SessionMark) {
        let marked = self.state.mark_session(address(session), mark).await;
        assert_eq!(marked, Ok(()), "{session} {mark:?}");
    }
}

fn page() -> SessionsPage {
    SessionsPage {
        limit: 200,
        ..SessionsPage::default()
    }
}

#[tokio::test]
async fn pinned_sessions_come_first_then_the_newest_and_archived_ones_apart() {
    let fixture = Fixture::new();
    for name in ["a", "b", "c", "d"] {
        let session = address(&format!("agent:main:{name}"));
        fixture.state.ensure_session(session).await.expect("made");
        fixture.clock.pass(1);
    }
    fixture.mark("agent:main:b", SessionMark::Pin).await;
    fixture.mark("agent:main:c", SessionMark::Pin).await;
    fixture.mark("agent:main:c", SessionMark::Archive).await;
    assert_eq!(
        fixture.listed(page()).await,
        ["agent:main:b", "agent:main:d", "agent:main:a"]
    );
    let archived = SessionsPage {
        shelf: Shelf::Archived,
        ..page()
    };
    assert_eq!(fixture.listed(archived.clone()).await, ["agent:main:c"]);
    let entry = fixture.state.session_entry(address("agent:main:c")).await;
    let entry = entry.expect("entry");
    assert!(entry.archived && !entry.pinned, "archiving clears the pin");
    let pinned = fixture
        .state
        .mark_session(address("agent:main:c"), SessionMark::Pin)
        .await;
    assert!(matches!(pinned, Err(StateError::Invalid(_))));
    fixture.mark("agent:main:c", SessionMark::Unarchive).await;
    assert_eq!(fixture.listed(archived).await, Vec::<String>::new());
}

#[tokio::test]
async fn sessions_are_listed_page_by_page_and_by_what_was_asked() {
    let fixture = Fixture::new();
    fixture.local_node().await;
    for name in ["agent:main:a", "agent:ops:b"] {
        fixture
            .state
            .ensure_session(address(name))
            .await
            .expect("made");
        fixture.clock.pass(1_000);
    }
    fixture.adopt("t1").await;
    fixture.change("agent:main:a").await;
    let sessions = fixture
        .state
        .sessions(SessionsPage { limit: 2, ..page() })
        .await
        .expect("a page");
    assert_eq!((sessions.count, sessions.sessions.len()), (3, 2));
    assert!(sessions.has_more);
    assert_eq!(sessions.next_offset, Some(2));
    let rest = fixture
        .state
        .sessions(SessionsPage {
            offset: 2,
            ..page()
        })
        .await
        .expect("a page");
    assert!(!rest.has_more);
    assert_eq!(rest.sessions[0].state_version, Some(2));
    assert_eq!(sessions.sessions[1].state_version, None);
    for (asked, found) in [
        (
            SessionsPage {
                agent: Some(agent("ops")),
                ..page()
            },
            "agent:ops:b",
        ),
        (
            SessionsPage {
                host: Some(Host::GatewayLocal),
                ..page()
            },
            "agent:main:adopted:claude:local:t1",
        ),
        (
            SessionsPage {
                updated_since: Some(START + 2_000),
                ..page()
            },
            "agent:main:adopted:claude:local:t1",
        ),
    ] {
        assert_eq!(fixture.listed(asked.clone()).await, [found], "{asked:?}");
    }
}

#[tokio::test]
async fn a_projection_has_every_entry_of_its_agent_sorted_with_what_it_does_not_know() {
    let fixture = Fixture::new();
    for name in ["agent:main:b", "agent:main:a", "agent:ops:c"] {
        fixture
            .state
            .ensure_session(address(name))
            .await
            .expect("made");
    }
    fixture
        .outside()
        .execute("UPDATE entries SET extra = '{\"later\":{\"x\":1}}'", [])
        .expect("edited");
    let projection = fixture.state.projection(agent("main")).await;
    let json = projection.expect("projection").json;
    let map: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&json).expect("an object");
    assert_eq!(
        map.keys().collect::<Vec<_>>(),
        ["agent:main:a", "agent:main:b"]
    );
    let entry = &map["agent:main:a"];
    assert_eq!(entry["updatedAt"], START);
    assert_eq!(entry["later"]["x"], 1);
    assert!(json.find("agent:main:a") < json.find("agent:main:b"));
    assert_eq!(
        fixture.state.agents().await,
        Ok(vec![agent("main"), agent("ops")])
    );
}

#[tokio::test]
async fn an_unknown_session_is_named() {
    let fixture = Fixture::new();
    fixture.change(T).await;
    let unknown = StateError::UnknownSession(T.to_owned());
    let entry = fixture.state.session_entry(address(T)).await;
    assert_eq!(entry, Err(unknown.clone()), "events, but no entry");
    assert_eq!(fixture.state.session_exists(address(T)).await, Ok(true));
    let marked = fixture
        .state
        .mark_session(address(T), SessionMark::Pin)
        .await;
    assert_eq!(marked, Err(unknown));
    assert_eq!(fixture.state.session_exists(address(W)).await, Ok(false));
}

#[tokio::test]
async fn a_deleted_session_leaves_its_head_and_a_new_one_reports_the_gap() {
    let fixture = Fixture::new();
    fixture.local_node().await;
    let adopted = fixture.adopt("t1").await;
    let session = adopted.session_key.as_str();
    fixture.change(T).await;
    fixture.watch(session, T).await;
    fixture.watch(W, session).await;
    let last = fixture.change(session).await;
    fixture.queue(session, Some(T), "m").await;
    let mut effects = fixture.state.subscribe();
    assert_eq!(
        fixture.state.delete_session(address(session)).await,
        Ok(true)
    );
    assert_eq!(
        effects.try_recv(),
        Ok(Effect::LinkRemoved {
            host: Host::GatewayLocal,
            link: adopted.link.id
        })
    );
    for sql in [
        "SELECT count(*) FROM links",
        "SELECT count(*) FROM messages",
        "SELECT count(*) FROM cursors",
        "SELECT count(*) FROM session_state_events WHERE session_key LIKE '%adopted%'",
    ] {
        assert_eq!(fixture.number(sql), 0, "{sql}");
    }
    assert_eq!(fixture.pending(W).await, []);
    let gone = fixture.state.session_status(since(session, 0, None)).await;
    assert!(matches!(gone, Err(StateError::UnknownSession(_))));
    assert_eq!(
        fixture.state.delete_session(address(session)).await,
        Ok(false)
    );

    let again = fixture.change(session).await;
    assert!(again > last);
    let ask = async |version: u64| {
        let version = i64::try_from(version).expect("small");
        let answer = fixture
            .state
            .session_status(since(session, version, None))
            .await;
        answer
            .expect("status")
            .status
            .state_changes
            .expect("changes")
    };
    assert!(ask(last - 1).await.history_gap);
    assert!(!ask(last).await.history_gap);
    assert_eq!(ask(last).await.earliest_available_sequence, again);
}

#[tokio::test]
async fn deleting_a_bare_key_of_one_agent_leaves_the_other_agents_session() {
    let fixture = Fixture::new();
    let of = |name: &str| SessionAddress::resolve(key("global"), &agent(name)).expect("address");
    for name in ["a", "b"] {
        let signal = NewSignal::new(of(name), SignalKind::GoalChanged, Actor::Human);
        fixture.state.record(signal).await.expect("recorded");
        let watched = fixture.state.watch_add(key(W), of(name)).await;
        assert!(watched.expect("watched").watched);
    }
    assert_eq!(fixture.state.delete_session(of("a")).await, Ok(true));
    assert_eq!(fixture.state.session_exists(of("a")).await, Ok(false));
    assert_eq!(fixture.state.session_exists(of("b")).await, Ok(true));
    assert_eq!(fixture.number("SELECT count(*) FROM cursors"), 1);
}

#[tokio::test]
async fn a_list_has_only_sessions_of_the_kind_that_is_asked_for() {
    let fixture = Fixture::new();
    for (key, kind) in [
        ("agent:main:main", SessionKind::Main),
        ("global", SessionKind::Main),
        ("agent:main:telegram:direct:5", SessionKind::Direct),
        ("agent:main:direct:ada", SessionKind::Direct),
        ("agent:main:telegram:group:5:topic:7", SessionKind::Group),
        ("agent:main:slack:channel:c1:thread:9", SessionKind::Room),
        ("agent:main:matrix:room:r", SessionKind::Room),
        ("agent:main:subagent:1", SessionKind::Subagent),
        ("agent:main:subagent:1:subagent:2", SessionKind::Subagent),
        ("agent:main:acp:1", SessionKind::Acp),
        ("agent:main:adopted:claude:local:t", SessionKind::Adopted),
        ("cron:nightly", SessionKind::Cron),
        ("hook:1", SessionKind::Hook),
        ("agent:main:explicit:x", SessionKind::Other),
        ("agent:main:mainland", SessionKind::Other),
    ] {
        let made = fixture.state.ensure_session(address(key)).await;
        made.expect("an entry");
        for asked in SessionKind::ALL {
            let page = SessionsPage {
                kind: Some(asked),
                main_key: "main".to_owned(),
                limit: 100,
                ..SessionsPage::default()
            };
            let found = fixture.state.sessions(page).await.expect("a page");
            assert_eq!(found.count, found.sessions.len() as u64);
            let is_there = found
                .sessions
                .iter()
                .any(|row| row.session_key.as_str() == key);
            assert_eq!(is_there, asked == kind, "{key} {asked:?}");
        }
    }
}
