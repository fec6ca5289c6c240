//! Adopting threads and applying reports.

use tidings_protocol::report::{Inconclusive, Link, Look};
use tidings_protocol::session_api::UpstreamState;

use super::*;
use crate::state::{NodeStanding, StateError};
use crate::upstream::trust::{NodePresence, upstream_status};

const W: &str = "agent:main:w";
const A: &str = "agent:main:adopted:claude:local:t1";
const MINUTE: EpochMs = 60_000;

/// A gateway with one adopted thread; answers its link.
async fn adopted() -> (Fixture, LinkId) {
    let fixture = Fixture::new();
    fixture.local_node().await;
    let link = fixture.adopt("t1").await.link.id;
    (fixture, link)
}

impl Fixture {
    async fn link(&self, link: LinkId) -> Link {
        let link = self.state.link(link).await.expect("read");
        link.expect("a link")
    }

    fn events(&self) -> i64 {
        self.number("SELECT count(*) FROM events")
    }
}

#[tokio::test]
async fn adopting_makes_entry_signal_and_link_and_again_keeps_key_and_marker() {
    let fixture = Fixture::new();
    fixture.local_node().await;
    let mut effects = fixture.state.subscribe();
    let first = fixture.adopt("t1").await;
    assert_eq!(first.session_key, key(A));
    assert!(first.link.created);
    assert_eq!(first.link.offset, 100);
    let mut told = Vec::new();
    while let Ok(effect) = effects.try_recv() {
        told.push(effect);
    }
    assert_eq!(
        told,
        [
            Effect::EntriesChanged {
                agent: agent("main")
            },
            Effect::EntryAdded {
                agent: agent("main")
            },
            Effect::LinkChanged {
                host: Host::GatewayLocal,
                link: first.link.id
            },
        ]
    );
    let entry = fixture
        .state
        .session_entry(address(A))
        .await
        .expect("entry");
    assert!(
        entry.entry.contains(r#""sessionId":"t1""#),
        "{}",
        entry.entry
    );
    assert_eq!(entry.state_version, 1);
    let changes = fixture.state.session_status(since(A, 0, None)).await;
    let changes = changes.expect("status").status.state_changes;
    let events = changes.expect("changes").events;
    assert_eq!(events[0].summary, "adopted from claude");

    fixture
        .report(report(first.link.id, 1, Outcome::Quiet))
        .await;
    let again = fixture.adopt("t1").await;
    assert!(!again.link.created);
    assert_eq!(again.link.id, first.link.id);
    assert_eq!(again.link.offset, 110, "the marker is where it was");
    assert_eq!(fixture.events(), 1);
    let other = fixture.adopt("t2").await;
    assert_ne!(other.session_key, first.session_key);
}

#[tokio::test]
async fn a_watcher_named_at_adoption_watches_from_after_it() {
    let fixture = Fixture::new();
    fixture.local_node().await;
    let adopt = async |watcher: &str| {
        let adoption = NewAdoption {
            agent: agent("main"),
            host: Host::GatewayLocal,
            opened: opened("t1"),
            watch_by: Some(key(watcher)),
        };
        let adopted = fixture.state.adopt(adoption).await.expect("adopted");
        adopted.watched.expect("an answer")
    };
    assert_eq!(adopt(W).await.from_version, Some(1));
    assert!(!adopt(A).await.watched, "not by itself");
    assert_eq!(fixture.pending(W).await, []);
}

#[tokio::test]
async fn only_the_host_of_an_active_node_is_adopted_from_and_reported_on() {
    let (fixture, link) = adopted().await;
    let stranger = Host::Node(NodeId::of_public_key(b"stranger"));
    let adoption = NewAdoption {
        agent: agent("main"),
        host: stranger.clone(),
        opened: opened("t1"),
        watch_by: None,
    };
    let refused = StateError::NodeNotActive(stranger.to_string());
    assert_eq!(fixture.state.adopt(adoption).await, Err(refused.clone()));
    let quiet = report(link, 1, Outcome::Quiet);
    let answer = fixture.state.apply_report(stranger, quiet.clone()).await;
    assert_eq!(answer, Err(refused));
    // Another active node knows nothing of the link.
    let other = fixture.paired("other").await;
    let answer = fixture
        .state
        .apply_report(other.host.clone(), quiet.clone())
        .await;
    let stale = ReportVerdict::Stale { current: None };
    assert_eq!(answer.expect("answered").verdict, stale);
    // A revoked one is not heard at all.
    let revoked = fixture
        .state
        .set_node_standing(other.node, NodeStanding::Revoked);
    assert_eq!(revoked.await, Ok(true));
    let answer = fixture.state.apply_report(other.host, quiet).await;
    assert!(matches!(answer, Err(StateError::NodeNotActive(_))));
}

#[tokio::test]
async fn activity_on_a_watched_session_is_one_signal_with_its_evidence() {
    let (fixture, link) = adopted().await;
    fixture.watch(W, A).await;
    let turns = spoken(&[START - 3_000, START - 1_000, START - 2_000]);
    let verdict = fixture.report(report(link, 1, turns)).await;
    assert_eq!(verdict, ReportVerdict::Applied { revision: 2 });
    let answer = fixture.state.session_status(since(A, 1, None)).await;
    let answer = answer.expect("status");
    let changes = answer.status.state_changes.expect("changes");
    assert_eq!(changes.events.len(), 1);
    let event = &changes.events[0];
    assert_eq!(event.kind, SignalKind::HumanDirectMessage);
    assert_eq!(event.summary, "human message via claude");
    assert_eq!(event.occurred_at, START - 1_000);
    let payload = event.payload.clone().expect("payload");
    assert_eq!(payload.turns, Some(3));
    assert_eq!(payload.catalog, Some(Catalog::Claude));
    assert_eq!(payload.host, Some(Host::GatewayLocal));
    let why = fixture.state.signal_why(event.sequence).await.expect("why");
    assert_eq!(why.evidence.len(), 3);
    assert_eq!(why.evidence[0].node.as_str(), "local");
    assert_eq!(why.evidence[0].file, "t.jsonl");
    assert_eq!(
        (why.evidence[0].byte_start, why.evidence[0].byte_end),
        (100, 110)
    );
    assert_eq!(why.evidence[0].rule, "typed-prompt");
    assert_eq!(fixture.pending(W).await.len(), 1);
    assert_eq!(fixture.link(link).await.marker.offset, 110);
    assert_eq!(answer.link.expect("a link").last_report_at, Some(START));
}

#[tokio::test]
async fn who_speaks_upstream_makes_the_session_recent_watched_or_not() {
    let (fixture, link) = adopted().await;
    let entry = async || {
        let entry = fixture
            .state
            .session_entry(address(A))
            .await
            .expect("entry")
            .entry;
        serde_json::from_str::<serde_json::Value>(&entry).expect("JSON")
    };
    let before = entry().await["lastInteractionAt"].clone();
    assert_ne!(before, START - 1_000);
    fixture
        .report(report(link, 1, spoken(&[START - 1_000])))
        .await;
    let after = entry().await;
    assert_eq!(after["lastInteractionAt"], START - 1_000);
    assert_eq!(after["updatedAt"], START);
    fixture.report(report(link, 2, Outcome::Quiet)).await;
    assert_eq!(
        entry().await,
        after,
        "a quiet report says nothing about anybody"
    );
}

#[tokio::test]
async fn one_turn_needs_no_count() {
    let (fixture, link) = adopted().await;
    fixture.watch(W, A).await;
    fixture.report(report(link, 1, spoken(&[START]))).await;
    let answer = fixture.state.session_status(since(A, 1, None)).await;
    let changes = answer.expect("status").status.state_changes;
    let payload = changes.expect("changes").events[0].payload.clone();
    assert_eq!(payload.expect("payload").turns, None);
}

#[tokio::test]
async fn activity_nobody_watches_advances_the_link_and_a_later_watch_starts_clean() {
    let (fixture, link) = adopted().await;
    let verdict = fixture.report(report(link, 1, spoken(&[START]))).await;
    assert_eq!(verdict, ReportVerdict::Applied { revision: 2 });
    assert_eq!(fixture.link(link).await.marker.offset, 110);
    assert_eq!(fixture.events(), 1, "adopted, and nothing else");
    fixture.watch(W, A).await;
    assert_eq!(fixture.pending(W).await, []);
}

#[tokio::test]
async fn a_report_counts_once_however_often_it_is_sent() {
    let (fixture, link) = adopted().await;
    fixture.watch(W, A).await;
    let spoken = report(link, 1, spoken(&[START]));
    fixture.report(spoken.clone()).await;
    let fixture = fixture.reopened().await;
    let ReportVerdict::Stale { current } = fixture.report(spoken).await else {
        panic!("applied twice");
    };
    let current = current.expect("the link as it stands");
    assert_eq!(current.revision, 2);
    assert_eq!(current.marker.offset, 110);
    assert_eq!(fixture.events(), 2);
    // A link that is gone is nobody's.
    let gone = report(LinkId(99), 1, Outcome::Quiet);
    let stale = ReportVerdict::Stale { current: None };
    assert_eq!(fixture.report(gone).await, stale);
}

#[tokio::test]
async fn two_sessions_on_one_thread_are_told_independently() {
    let (fixture, first) = adopted().await;
    let adoption = NewAdoption {
        agent: agent("ops"),
        host: Host::GatewayLocal,
        opened: opened("t1"),
        watch_by: Some(key(W)),
    };
    let second = fixture.state.adopt(adoption).await.expect("adopted");
    fixture.report(report(first, 1, spoken(&[START]))).await;
    assert_eq!(fixture.pending(W).await, [], "nobody watches the first");
    fixture
        .report(report(second.link.id, 1, spoken(&[START])))
        .await;
    assert_eq!(fixture.pending(W).await.len(), 1);
}

#[tokio::test]
async fn three_misses_apart_end_the_link_with_one_signal() {
    let (fixture, link) = adopted().await;
    fixture.watch(W, A).await;
    let mut effects = fixture.state.subscribe();
    let mut revision = 1;
    let miss = async |revision: u64| {
        fixture
            .report(report(link, revision, Outcome::Missing))
            .await
    };
    for pass in [0, MINUTE, 1_000] {
        fixture.clock.pass(pass);
        let verdict = miss(revision).await;
        revision += 1;
        assert_eq!(verdict, ReportVerdict::Applied { revision });
    }
    assert_eq!(fixture.number("SELECT misses FROM links"), 2);
    fixture.clock.pass(MINUTE);
    assert_eq!(miss(revision).await, ReportVerdict::Unlinked);
    let mut removed = 0;
    while let Ok(effect) = effects.try_recv() {
        removed += usize::from(matches!(effect, Effect::LinkRemoved { .. }));
    }
    assert_eq!(removed, 1);
    let answer = fixture.state.session_status(since(A, 1, None)).await;
    let answer = answer.expect("status");
    let changes = answer.status.state_changes.expect("changes");
    assert_eq!(changes.events.len(), 1);
    assert_eq!(changes.events[0].summary, "upstream missing via claude");
    let upstream = upstream_status(&key(A), answer.link.as_ref(), NodePresence::Away);
    let state = upstream.expect("upstream").state;
    assert_eq!(state, UpstreamState::Unlinked);
    assert_eq!(fixture.pending(W).await.len(), 1);
    // Continuing makes a fresh link under the same key.
    let again = fixture.adopt("t1").await;
    assert!(again.link.created);
    assert_ne!(again.link.id, link);
}

#[tokio::test]
async fn a_good_look_and_a_node_that_was_away_start_the_count_anew() {
    let (fixture, link) = adopted().await;
    let node = NodeId::of_public_key(b"local");
    let misses = async |fixture: &Fixture| fixture.number("SELECT misses FROM links");
    assert_eq!(fixture.link(link).await.last_look, Look::Good);
    fixture.report(report(link, 1, Outcome::Missing)).await;
    assert_eq!(misses(&fixture).await, 1);
    assert_eq!(fixture.link(link).await.last_look, Look::Missing);
    let unknown = Inconclusive::RootUnavailable;
    fixture
        .report(report(link, 2, Outcome::Inconclusive(unknown)))
        .await;
    let fixture = fixture.reopened().await;
    assert_eq!(misses(&fixture).await, 1, "it is in the database");
    let last_look = fixture.link(link).await.last_look;
    assert_eq!(last_look, Look::Inconclusive(unknown));
    fixture.report(report(link, 3, Outcome::Quiet)).await;
    assert_eq!(misses(&fixture).await, 0);
    assert_eq!(fixture.link(link).await.last_look, Look::Good);
    fixture.report(report(link, 4, Outcome::Missing)).await;
    assert_eq!(misses(&fixture).await, 1);
    let connected = fixture.state.node_connected(node, "1.1".to_owned()).await;
    assert_eq!(connected, Ok(()));
    assert_eq!(misses(&fixture).await, 0);
}

#[tokio::test]
async fn a_report_that_makes_no_sense_blocks_its_link_until_one_does() {
    let (fixture, link) = adopted().await;
    let nonsense = Outcome::Activity(Activity::default());
    let verdict = fixture.report(report(link, 1, nonsense.clone())).await;
    let ReportVerdict::Rejected { reason } = verdict else {
        panic!("{verdict:?}");
    };
    let fixture = fixture.reopened().await;
    let rows = fixture.state.link_rows().await.expect("rows");
    assert_eq!(rows[0].blocked.as_ref(), Some(&reason));
    assert_eq!(fixture.link(link).await.revision, 1);
    // Nonsense from an old revision is only old.
    fixture.report(report(link, 1, Outcome::Quiet)).await;
    let verdict = fixture.report(report(link, 1, nonsense)).await;
    assert!(matches!(verdict, ReportVerdict::Stale { .. }));
    let rows = fixture.state.link_rows().await.expect("rows");
    assert_eq!(rows[0].blocked, None);
}

#[tokio::test]
async fn a_link_says_how_it_stands() {
    let (fixture, link) = adopted().await;
    let row = async || fixture.state.link_rows().await.expect("rows").remove(0);
    let fresh = row().await;
    assert_eq!(fresh.last_outcome, "none");
    assert_eq!(fresh.last_report_at, None);
    let unreadable = Outcome::Inconclusive(Inconclusive::PermissionDenied);
    fixture.report(report(link, 1, unreadable)).await;
    let after = row().await;
    assert_eq!(after.last_outcome, "inconclusive");
    assert_eq!(after.last_report_at, Some(START));
    assert_eq!(after.lag_bytes, 500 - 110);
    assert_eq!(after.unclassified, 1);
    assert_eq!(after.session, key(A));
}

#[tokio::test]
async fn links_are_handed_out_page_by_page_to_their_own_host() {
    let fixture = Fixture::new();
    fixture.local_node().await;
    for n in 0..65 {
        fixture.adopt(&format!("t{n}")).await;
    }
    let page = async |after| {
        let page = fixture.state.links_of(Host::GatewayLocal, after).await;
        page.expect("a page")
    };
    let first = page(LinkId(0)).await;
    assert_eq!(first.len(), 64);
    assert_eq!(first[0].echo.key.len(), 32);
    assert_ne!(first[0].echo.key, first[1].echo.key);
    let rest = page(first[63].link).await;
    assert_eq!(rest.len(), 1);
    assert_eq!(page(rest[0].link).await, []);
    let nobody = Host::Node(NodeId::of_public_key(b"other"));
    let none = fixture.state.links_of(nobody, LinkId(0)).await;
    assert_eq!(none, Ok(Vec::new()));
}

#[tokio::test]
async fn a_delivery_is_handed_to_the_node_until_its_echo_is_reported() {
    let (fixture, link) = adopted().await;
    for message in 1..=12 {
        fixture
            .outside()
            .execute(
                "INSERT INTO deliveries (link, message, digest, delivered_at)
                 VALUES (?1, ?2, zeroblob(16), ?3)",
                (1, message, START),
            )
            .expect("delivered");
    }
    let delivered = async || {
        let deliveries = fixture.link(link).await.echo.deliveries;
        deliveries.iter().map(|d| d.id).collect::<Vec<_>>()
    };
    assert_eq!(delivered().await, (3..=12).collect::<Vec<_>>());
    let echoed = Outcome::Activity(Activity {
        turns: Vec::new(),
        echoed: vec![4, 12],
    });
    fixture.report(report(link, 1, echoed)).await;
    assert_eq!(delivered().await, [1, 2, 3, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(fixture.events(), 1, "an echo is no message");
}

#[tokio::test]
async fn upkeep_leaves_a_session_alone_as_long_as_its_thread_is_followed() {
    let fixture = Fixture::new();
    fixture.local_node().await;
    let session = fixture.adopt("t1").await.session_key;
    let stored = || fixture.state.stored_entries(agent("main"));
    let entry = stored().await.expect("entries").remove(0);
    assert!(entry.is_needed && entry.is_adopted);
    let address = address(session.as_str());
    let removed = fixture
        .state
        .remove_unneeded(address.clone(), entry.entry.updated_at);
    assert_eq!(removed.await, Ok(false));
    fixture
        .outside()
        .execute("DELETE FROM links", [])
        .expect("unlinked");
    assert!(!stored().await.expect("entries")[0].is_needed);
    let removed = fixture
        .state
        .remove_unneeded(address, entry.entry.updated_at);
    assert_eq!(removed.await, Ok(true));
}
