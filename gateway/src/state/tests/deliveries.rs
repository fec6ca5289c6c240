//! What is handed out to an upstream thread is known to its links before anybody reads it.

use tidings_node::classify::echo_digest;
use tidings_protocol::report::{Link, MAX_ECHO_DIGESTS};

use super::*;
use crate::state::TurnBegun;

const W: &str = "agent:main:w";
const A: &str = "agent:main:adopted:claude:local:t1";

impl Fixture {
    async fn followed(&self) -> Link {
        let links = self.state.links_of(Host::GatewayLocal, LinkId(0)).await;
        links.expect("links").remove(0)
    }

    async fn take(&self, session: &str) -> TurnBegun {
        let begun = self.state.turn_begin(address(session)).await;
        begun.expect("a turn")
    }
}

/// A gateway with one adopted thread that is watched.
async fn watched() -> (Fixture, LinkId) {
    let fixture = Fixture::new();
    fixture.local_node().await;
    let link = fixture.adopt("t1").await.link.id;
    fixture.watch(W, A).await;
    (fixture, link)
}

#[tokio::test]
async fn a_text_that_is_handed_out_is_a_digest_of_the_link() {
    let (fixture, link) = watched().await;
    fixture.queue(A, Some(W), "Please  rebase.\n").await;
    assert_eq!(fixture.followed().await.echo.deliveries, []);
    fixture.clock.pass(7);
    let mut effects = fixture.state.subscribe();

    fixture.take(A).await;

    let followed = fixture.followed().await;
    let [delivery] = followed.echo.deliveries.as_slice() else {
        panic!("{followed:?}");
    };
    let digest = echo_digest(&followed.echo.key, &["Please rebase."]);
    assert_eq!((delivery.digest, delivery.at), (digest, START + 7));
    let told = Effect::LinkChanged {
        host: Host::GatewayLocal,
        link,
    };
    assert_eq!(effects.try_recv(), Ok(told));
}

#[tokio::test]
async fn a_report_that_was_judged_without_a_delivery_is_stale_and_brings_it_along() {
    let (fixture, link) = watched().await;
    let before = fixture.followed().await.revision;
    fixture.queue(A, Some(W), "m").await;
    fixture.take(A).await;
    let verdict = fixture.report(report(link, before, spoken(&[START]))).await;
    let ReportVerdict::Stale {
        current: Some(current),
    } = verdict
    else {
        panic!("{verdict:?}");
    };
    assert_eq!(current.echo.deliveries.len(), 1);
    let echoed = Outcome::Activity(Activity {
        turns: Vec::new(),
        echoed: vec![current.echo.deliveries[0].id],
    });
    let applied = fixture.report(report(link, current.revision, echoed)).await;
    assert!(matches!(applied, ReportVerdict::Applied { .. }));
    assert_eq!(fixture.pending(W).await, []);
    assert_eq!(fixture.followed().await.echo.deliveries, []);
}

#[tokio::test]
async fn a_text_that_is_handed_out_again_is_another_delivery() {
    let (fixture, _) = watched().await;
    fixture.queue(A, Some(W), "m").await;
    let first = fixture.take(A).await;
    let token = first.token.expect("a lease");
    fixture.state.turn_release(token).await.expect("released");
    fixture.take(A).await;
    let deliveries = fixture.followed().await.echo.deliveries;
    assert_eq!(deliveries.len(), 2);
    assert_ne!(deliveries[0].id, deliveries[1].id);
    assert_eq!(deliveries[0].digest, deliveries[1].digest);
}

#[tokio::test]
async fn a_turn_of_a_thread_takes_no_more_than_its_links_remember() {
    let (fixture, _) = watched().await;
    for n in 0..MAX_ECHO_DIGESTS + 3 {
        fixture.queue(A, Some(W), &format!("message {n}")).await;
    }
    let begun = fixture.take(A).await;
    assert_eq!(begun.messages.len(), MAX_ECHO_DIGESTS);
    let followed = fixture.followed().await;
    let expected: Vec<_> = begun
        .messages
        .iter()
        .map(|message| echo_digest(&followed.echo.key, &[&message.body]))
        .collect();
    let known: Vec<_> = followed.echo.deliveries.iter().map(|d| d.digest).collect();
    assert_eq!(known, expected);

    let confirmed = fixture.state.turn_confirm(begun.token.expect("a lease"));
    confirmed.await.expect("confirmed");
    assert_eq!(fixture.take(A).await.messages.len(), 3);
    let newest = fixture.followed().await.echo.deliveries;
    assert_eq!(newest.len(), MAX_ECHO_DIGESTS);
    assert_eq!(newest[0].digest, expected[3], "the oldest are forgotten");
    let kept = i64::try_from(MAX_ECHO_DIGESTS).expect("small");
    assert_eq!(fixture.number("SELECT count(*) FROM deliveries"), kept);
}

#[tokio::test]
async fn each_link_of_a_thread_knows_what_was_handed_out_to_it_and_no_other_does() {
    let (fixture, _) = watched().await;
    fixture.adopt("t2").await;
    let ops = NewAdoption {
        agent: agent("ops"),
        host: Host::GatewayLocal,
        opened: opened("t1"),
        watch_by: None,
    };
    let ops = fixture.state.adopt(ops).await.expect("adopted").session_key;
    fixture.queue(ops.as_str(), Some(W), "m").await;
    fixture.queue(W, Some(A), "not for a thread").await;
    fixture.take(W).await;
    fixture.take(A).await;
    let links = fixture.state.links_of(Host::GatewayLocal, LinkId(0)).await;
    for link in links.expect("links") {
        let expected = match link.thread_id.as_str() {
            "t1" => vec![echo_digest(&link.echo.key, &["m"])],
            _ => Vec::new(),
        };
        let known: Vec<_> = link.echo.deliveries.iter().map(|d| d.digest).collect();
        assert_eq!(known, expected, "{:?}", link.thread_id);
    }
}
