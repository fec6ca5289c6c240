//! A flood of strangers, on the loopback: it is bounded, and whoever is paired gets through.
//!
//! The strangers have addresses of their own (127.0.0.2 and on), as on a network.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use quinn::Connection;
use tidings_gateway::Gateway;
use tidings_node::clock::{Clock, SystemClock};
use tidings_node::framed;
use tidings_protocol::report::{LinkId, Outcome, Report};
use tidings_protocol::session_api::{Request, SessionsList};
use tidings_protocol::wire::messages::{Join, RefusalCode};
use tidings_protocol::wire::{ALPN_JOIN, ALPN_NODE, Message};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use crate::raw::{Papers, RawNode, begin, endpoint};
use crate::served::{self, ask, gateway};

/// Strangers that never say hello, from one address: more than it may have at once.
const SILENT: usize = 200;
/// Datagrams of rubbish.
const RUBBISH: usize = 10_000;
/// Attempts to join with a wrong code, from one address: more than it may make.
const GUESSES: usize = 80;

/// Machines that join meanwhile.
const JOINS: usize = 3;

/// What becomes of the strangers, as they find out.
#[derive(Default)]
struct Tally {
    let_in: AtomicUsize,
    turned_away: AtomicUsize,
    ended: AtomicBool,
}

impl Tally {
    fn count(&self, let_in: bool) {
        let counter = if let_in {
            &self.let_in
        } else {
            &self.turned_away
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn counts(&self) -> (usize, usize) {
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        (count(&self.let_in), count(&self.turned_away))
    }
}

/// Opens connections that show no certificate and say nothing, and holds those it gets.
async fn be_silent(papers: &Papers, gateway: &Gateway, tally: &Tally) -> Vec<Connection> {
    let endpoint = endpoint("127.0.0.2");
    let mut attempts = JoinSet::new();
    for _ in 0..SILENT {
        attempts.spawn(begin(&endpoint, papers, gateway.listen(), ALPN_NODE).into_future());
    }
    let mut held = Vec::new();
    while let Some(attempt) = attempts.join_next().await {
        let attempt = attempt.expect("no panic");
        tally.count(attempt.is_ok());
        held.extend(attempt);
    }
    held
}

/// Sends what is no QUIC at all, and what begins like it.
async fn send_rubbish(gateway: &Gateway) {
    let socket = UdpSocket::bind("127.0.0.3:0").await.expect("a socket");
    let mut datagram = [0_u8; 1_200];
    for n in 0..RUBBISH {
        // Long header, version 1, lengths that differ: some look like a first packet.
        datagram[0] = if n % 3 == 0 { 0xc3 } else { 0x40 };
        datagram[1..5].copy_from_slice(&[0, 0, 0, u8::from(n % 2 == 0)]);
        datagram[5..13].copy_from_slice(&n.to_be_bytes());
        // A full buffer loses datagrams; that is all they may do.
        let _ = socket.send_to(&datagram, gateway.listen()).await;
    }
}

/// Guesses codes of join links; how many guesses were not even looked at.
async fn guess_codes(papers: &Papers, gateway: &Gateway, tally: &Tally) {
    let endpoint = endpoint("127.0.0.4");
    for n in 0..GUESSES {
        let attempt = begin(&endpoint, papers, gateway.listen(), ALPN_JOIN).await;
        let Ok(connection) = attempt else {
            tally.count(false);
            continue;
        };
        let join = Message::Join(Join {
            code: [u8::try_from(n).expect("few"); 16],
            signing_request: vec![0x30; 200],
            machine_name: "guesser".to_owned(),
            agent_version: "raw".to_owned(),
        });
        let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
        // The refusal may come before all of it was read.
        let _ = framed::write(&mut send, &join).await;
        match framed::read(&mut receive, 64 * 1024).await {
            Ok(Some(Message::Refused(refused))) => {
                let is_no_code = refused.code == RefusalCode::JoinCode;
                assert!(
                    is_no_code || refused.code == RefusalCode::TooMany,
                    "{refused:?}"
                );
                tally.count(is_no_code);
            }
            other => panic!("{other:?}"),
        }
        connection.close(0u32.into(), b"next");
    }
}

fn report() -> Report {
    Report {
        link: LinkId(7),
        revision: 1,
        marker: tidings_protocol::Marker::at_start(0),
        path: "/root/t.jsonl".to_owned(),
        size: 0,
        unclassified: 0,
        outcome: Outcome::Quiet,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_flood_of_strangers_a_paired_node_reports_and_another_one_joins() {
    let scratch = tempfile::tempdir().expect("scratch");
    let gateway = gateway(&scratch.path().join("state")).await;
    let paired = Papers::joined(&gateway, scratch.path(), "paired").await;
    let node = RawNode::welcomed(&paired, &gateway).await;
    let stranger = Papers {
        certificate: None,
        ..Papers::signed_by(gateway.state_dir(), SystemClock::new().now(), &gateway)
    };
    let (silent, guesses) = (Arc::new(Tally::default()), Arc::new(Tally::default()));

    let flood = async {
        let (held, (), ()) = tokio::join!(
            be_silent(&stranger, &gateway, &silent),
            send_rubbish(&gateway),
            guess_codes(&stranger, &gateway, &guesses),
        );
        silent.ended.store(true, Ordering::Relaxed);
        held
    };
    let reporting = async {
        let mut reports = 0;
        while reports == 0 || !silent.ended.load(Ordering::Relaxed) {
            // Each is answered, although with nothing: the link is not there.
            node.report(report()).await.expect("a report gets through");
            reports += 1;
        }
        reports
    };
    let joining = async {
        for n in 0..JOINS {
            let papers = Papers::joined(&gateway, scratch.path(), &format!("new{n}")).await;
            RawNode::welcomed(&papers, &gateway).await;
        }
    };
    let (held, reports, ()) = tokio::join!(flood, reporting, joining);

    let ((let_in, turned_away), (looked_at, not_looked_at)) = (silent.counts(), guesses.counts());
    println!(
        "{reports} reports and {JOINS} joins while {let_in} of {SILENT} silent strangers were \
         let in, {looked_at} of {GUESSES} guesses were looked at"
    );
    // One address has 16 places before it has proved itself and 64 afterwards; those that are
    // sent away meanwhile make room for as many again.
    assert!(let_in < SILENT && turned_away > 0, "{let_in} let in");
    assert!(not_looked_at > 0, "{not_looked_at} not looked at");
    assert!(node.connection.close_reason().is_none());
    // Those that never said hello are sent away by and by, without anybody's help.
    for connection in held {
        connection.closed().await;
    }
    let list = Request::SessionsList(SessionsList::default());
    assert!(node.is_answered(&list).await);
    let mut operator = served::connect(gateway.state_dir()).await;
    ask(&mut operator, Request::Status {}).await;
    drop(operator);
    gateway.stop().await;
}
