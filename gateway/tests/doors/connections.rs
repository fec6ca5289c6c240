//! A node's connection in the course of its life: versions, silence, goodbyes, addresses,
//! and what is not read.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use tidings_gateway::Gateway;
use tidings_node::framed::{self, StreamError};
use tidings_protocol::Marker;
use tidings_protocol::report::{LinkId, Outcome, Report};
use tidings_protocol::session_api::{Node, NodeRef, NodeState, Request};
use tidings_protocol::wire::messages::{Goaway, Hello, Presence, RefusalCode};
use tidings_protocol::wire::{ALPN_NODE, MAX_FRAME_BYTES, Message};
use tokio::time::timeout;

use crate::clock::Shifted;
use crate::raw::{Papers, RawNode, answer_to_hello, begin, connect, endpoint, hello, refused};
use crate::served::{self, PATIENCE, ask, body, gateway, gateway_by};

async fn show(gateway: &Gateway) -> Node {
    let mut operator = served::connect(gateway.state_dir()).await;
    let node = NodeRef {
        node: "laptop".to_owned(),
    };
    *body!(ask(&mut operator, Request::NodesShow(node)).await, Node)
}

/// Waits until the node stands so.
async fn until_it_is(gateway: &Gateway, state: NodeState) -> Node {
    let waiting = async {
        loop {
            let node = show(gateway).await;
            if node.status == state {
                return node;
            }
        }
    };
    timeout(PATIENCE, waiting).await.expect("in time")
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_that_overlap_are_welcome_and_others_are_told_what_to_do() {
    let scratch = tempfile::tempdir().expect("scratch");
    let gateway = gateway(&scratch.path().join("state")).await;
    let papers = Papers::joined(&gateway, scratch.path(), "laptop").await;
    for (oldest_version, newest_version, welcome) in [
        (1, 1, true),
        (0, 1, true),
        (1, u32::MAX, true),
        (0, 0, false),
        (2, 9, false),
        (9, 1, false),
    ] {
        let connection = connect(&papers, gateway.listen(), ALPN_NODE).await;
        let connection = connection.expect("a connection");
        let hello = Hello {
            oldest_version,
            newest_version,
            ..hello(1)
        };
        let (answer, _control) = answer_to_hello(&connection, hello).await.expect("answer");
        match answer {
            Message::Welcome(welcomed) => {
                assert!(welcome, "{oldest_version} to {newest_version}");
                assert_eq!(welcomed.version, 1);
            }
            other => {
                let refused = refused(other);
                assert!(!welcome, "{oldest_version} to {newest_version}");
                assert_eq!(refused.code, RefusalCode::Version);
                assert_eq!(refused.hint, "update the older of the two");
                let range = format!("speaks protocol {oldest_version} to {newest_version}");
                assert!(refused.reason.contains(&range), "{refused:?}");
            }
        }
    }
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_gives_no_sign_of_life_is_stalled_until_it_gives_one() {
    let scratch = tempfile::tempdir().expect("scratch");
    let clock = Arc::new(Shifted::default());
    let gateway = gateway_by(&scratch.path().join("state"), clock.clone()).await;
    let papers = Papers::joined(&gateway, scratch.path(), "laptop").await;
    let mut node = RawNode::welcomed(&papers, &gateway).await;
    assert_eq!(show(&gateway).await.status, NodeState::Connected);
    // Its connection is alive all the time: only the agent says nothing.
    clock.pass(Duration::from_secs(30));
    assert_eq!(show(&gateway).await.status, NodeState::Connected);
    clock.pass(Duration::from_secs(15));
    assert_eq!(show(&gateway).await.status, NodeState::Stalled);
    let presence = Message::Presence(Presence::default());
    framed::write(&mut node.control.0, &presence)
        .await
        .expect("written");
    until_it_is(&gateway, NodeState::Connected).await;
    assert!(node.connection.close_reason().is_none());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_say_goodbye() {
    let scratch = tempfile::tempdir().expect("scratch");
    let gateway = gateway(&scratch.path().join("state")).await;
    let papers = Papers::joined(&gateway, scratch.path(), "laptop").await;
    let mut node = RawNode::welcomed(&papers, &gateway).await;
    let goaway = Message::Goaway(Goaway {
        reason: "the lid closes".to_owned(),
    });
    framed::write(&mut node.control.0, &goaway)
        .await
        .expect("written");
    let why = node.sent_away().await;
    assert!(why.contains("the lid closes"), "{why}");
    let gone = until_it_is(&gateway, NodeState::Offline).await;
    assert!(gone.last_seen_at.is_some());

    let mut node = RawNode::welcomed(&papers, &gateway).await;
    let ((), said) = tokio::join!(gateway.stop(), async {
        let said = framed::read(&mut node.control.1, MAX_FRAME_BYTES).await;
        node.connection.close(0u32.into(), b"heard");
        said
    });
    let Some(Message::Goaway(goaway)) = said.expect("a message") else {
        panic!("no goodbye");
    };
    assert_eq!(goaway.reason, "the gateway stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_follows_its_node_to_another_address() {
    let scratch = tempfile::tempdir().expect("scratch");
    let gateway = gateway(&scratch.path().join("state")).await;
    let papers = Papers::joined(&gateway, scratch.path(), "laptop").await;
    let endpoint = endpoint("127.0.0.1");
    let connection = begin(&endpoint, &papers, gateway.listen(), ALPN_NODE).await;
    let connection = connection.expect("a connection");
    let (answer, _control) = answer_to_hello(&connection, hello(1))
        .await
        .expect("answer");
    assert!(matches!(answer, Message::Welcome(_)), "{answer:?}");
    for address in ["127.0.0.1:0", "127.0.0.5:0", "127.0.0.6:0"] {
        let socket = UdpSocket::bind(address).expect("a socket");
        endpoint.rebind(socket).expect("another socket");
        let ping = async {
            let (mut send, mut receive) =
                connection.open_bi().await.map_err(std::io::Error::from)?;
            framed::write(&mut send, &Message::Ping {}).await?;
            framed::read::<Message, _>(&mut receive, 1_024).await
        };
        let answer: Result<_, StreamError> = timeout(PATIENCE, ping).await.expect("in time");
        assert_eq!(
            answer.expect("an answer"),
            Some(Message::Pong {}),
            "{address}"
        );
    }
    assert_eq!(show(&gateway).await.status, NodeState::Connected);
    gateway.stop().await;
}

/// A report of about 4 KiB on a link that is not there.
fn large_report() -> Report {
    Report {
        link: LinkId(7),
        revision: 1,
        marker: Marker::at_start(0),
        path: "p".repeat(4_000),
        size: 0,
        unclassified: 0,
        outcome: Outcome::Quiet,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_node_that_reads_no_answers_no_more_is_read() {
    /// Far more than fits between the two: 400 MB of reports.
    const REPORTS: usize = 100_000;
    /// A write that takes so long waits for the other side.
    const STUCK: Duration = Duration::from_secs(3);

    let scratch = tempfile::tempdir().expect("scratch");
    let gateway = gateway(&scratch.path().join("state")).await;
    let papers = Papers::joined(&gateway, scratch.path(), "laptop").await;
    let node = RawNode::welcomed(&papers, &gateway).await;
    let (mut reports, mut answers) = node.connection.open_bi().await.expect("a stream");
    let report = Message::Report(Box::new(large_report()));
    let mut taken = 0;
    while taken < REPORTS {
        match timeout(STUCK, framed::write(&mut reports, &report)).await {
            Ok(written) => written.expect("written"),
            Err(_) => break,
        }
        taken += 1;
    }
    println!("{taken} reports were taken before the first answer was read");
    assert!(taken < REPORTS, "all were taken");
    // The rest of the connection is not held up, and nothing of it was lost.
    assert_eq!(
        node.ask(&Message::Ping {}).await.expect("an answer"),
        Message::Pong {}
    );
    for _ in 0..taken {
        let answer = timeout(PATIENCE, framed::read(&mut answers, MAX_FRAME_BYTES)).await;
        let answer = answer.expect("in time").expect("a frame");
        assert!(
            matches!(answer, Some(Message::ReportAnswer(_))),
            "{answer:?}"
        );
    }
    gateway.stop().await;
}
