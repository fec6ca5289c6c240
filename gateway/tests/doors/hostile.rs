//! A hostile node: what it shows, what it sends, and what it is after.

use std::time::Duration;

use tidings_gateway::Gateway;
use tidings_gateway::nodes::authority::Authority;
use tidings_node::clock::{Clock, SystemClock};
use tidings_node::framed;
use tidings_protocol::Catalog;
use tidings_protocol::report::{Activity, Evidence, Link, LinkId, Outcome, Report, ReportVerdict};
use tidings_protocol::session_api::{
    Adopt, Adopted, ErrorType, NodeRef, Request, SessionsList, Status,
};
use tidings_protocol::wire::frame::encode;
use tidings_protocol::wire::messages::{Presence, RefusalCode, Renew};
use tidings_protocol::wire::{ALPN_JOIN, ALPN_NODE, MAX_FRAME_BYTES, Message};
use tokio::time::timeout;

use crate::clock::DAY_MS;
use crate::raw::{Papers, RawNode, answer_to_hello, caller, connect, hello, refused};
use crate::served::{self, PATIENCE, ask, body, gateway};

/// A gateway, a machine that has joined it, and a folder for more.
struct Ground {
    gateway: Gateway,
    victim: Papers,
    scratch: tempfile::TempDir,
}

impl Ground {
    async fn prepare() -> Self {
        let scratch = tempfile::tempdir().expect("scratch");
        let gateway = gateway(&scratch.path().join("state")).await;
        let victim = Papers::joined(&gateway, scratch.path(), "victim").await;
        Self {
            gateway,
            victim,
            scratch,
        }
    }

    async fn papers(&self, name: &str) -> Papers {
        Papers::joined(&self.gateway, self.scratch.path(), name).await
    }

    async fn adopt(&self, host: &str, thread: &str) -> Adopted {
        let mut operator = served::connect(self.gateway.state_dir()).await;
        let adopt = Request::Adopt(Adopt {
            catalog: Catalog::Claude,
            host: host.to_owned(),
            thread_id: caller(thread).thread_id,
            agent: None,
            watch_by: Some(served::key("agent:main:main")),
        });
        body!(ask(&mut operator, adopt).await, Adopt)
    }

    async fn status(&self) -> Status {
        let mut operator = served::connect(self.gateway.state_dir()).await;
        *body!(ask(&mut operator, Request::Status {}).await, Status)
    }

    /// The gateway goes on as before for those who behave.
    async fn unharmed(self) {
        let node = RawNode::welcomed(&self.victim, &self.gateway).await;
        let list = Request::SessionsList(SessionsList::default());
        node.relay(None, &list).await.expect("an answer");
        self.gateway.stop().await;
    }
}

/// A report that somebody spoke on a link.
fn spoken(link: &Link) -> Report {
    let mut marker = link.marker.clone();
    marker.offset += 10;
    Report {
        link: link.link,
        revision: link.revision,
        marker,
        path: link.path.clone(),
        size: 10,
        unclassified: 0,
        outcome: Outcome::Activity(Activity {
            turns: vec![Evidence {
                byte_start: 0,
                byte_end: 10,
                record_id: None,
                rule: "typed".to_owned(),
                at: 1,
            }],
            echoed: Vec::new(),
        }),
    }
}

fn verdict(answer: Message) -> ReportVerdict {
    match answer {
        Message::ReportAnswer(answer) => answer.verdict,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_on_anothers_link_changes_nothing_and_tells_nothing() {
    let ground = Ground::prepare().await;
    let mut victim = RawNode::welcomed(&ground.victim, &ground.gateway).await;
    let hostile = RawNode::welcomed(&ground.papers("hostile").await, &ground.gateway).await;
    ground.adopt("victim", "theirs").await;
    let link = victim.next_link().await;
    let signals = ground.status().await.counts.signals;

    for report in [
        spoken(&link),
        Report {
            outcome: Outcome::Missing,
            ..spoken(&link)
        },
        Report {
            link: LinkId(link.link.0 + 7),
            ..spoken(&link)
        },
    ] {
        let answer = hostile.report(report).await.expect("an answer");
        assert_eq!(verdict(answer), ReportVerdict::Stale { current: None });
    }
    assert_eq!(ground.status().await.counts.signals, signals);
    // Its own node is at the revision it was.
    let answer = victim.report(spoken(&link)).await.expect("an answer");
    let applied = ReportVerdict::Applied {
        revision: link.revision + 1,
    };
    assert_eq!(verdict(answer), applied);
    assert_eq!(ground.status().await.counts.signals, signals + 1);
    ground.unharmed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_revoked_node_sends_is_not_recorded() {
    let ground = Ground::prepare().await;
    let papers = ground.papers("hostile").await;
    let mut node = RawNode::welcomed(&papers, &ground.gateway).await;
    ground.adopt("hostile", "mine").await;
    let link = node.next_link().await;
    let signals = ground.status().await.counts.signals;
    let mut operator = served::connect(ground.gateway.state_dir()).await;
    let revoke = Request::NodesRevoke(NodeRef {
        node: "hostile".to_owned(),
    });
    // Without a pause between them: some of these are on their way when it is revoked.
    let (reported, (), _) = tokio::join!(
        async {
            ask(&mut operator, revoke).await;
            node.report(spoken(&link)).await
        },
        async {
            let list = Request::SessionsList(SessionsList::default());
            while node.is_answered(&list).await {}
        },
        node.sent_away()
    );
    assert!(reported.is_err(), "{reported:?}");
    assert_eq!(ground.status().await.counts.signals, signals);

    let connection = connect(&papers, ground.gateway.listen(), ALPN_NODE).await;
    let answer = answer_to_hello(&connection.expect("a connection"), hello(2)).await;
    let refused = refused(answer.expect("an answer").0);
    assert_eq!(refused.code, RefusalCode::Revoked);
    ground.unharmed().await;
}

/// What becomes of a node that shows these papers: the refusal's code, or the reason why the
/// handshake or the connection failed.
async fn shown(papers: &Papers, gateway: &Gateway) -> Result<RefusalCode, String> {
    let connection = connect(papers, gateway.listen(), ALPN_NODE).await;
    let connection = connection.map_err(|error| error.to_string())?;
    // TLS 1.3: the client is done before the server has looked at its certificate.
    match answer_to_hello(&connection, hello(1)).await {
        Ok((answer, _)) => Ok(refused(answer).code),
        Err(_) => Err(connection.closed().await.to_string()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_certificate_of_this_gateway_for_an_active_key_is_let_in() {
    let ground = Ground::prepare().await;
    let now = SystemClock::new().now();
    let state = ground.gateway.state_dir().to_owned();
    let foreign_authority = ground.scratch.path().join("foreign");
    std::fs::create_dir(&foreign_authority).expect("a folder");
    let signed =
        |authority: &std::path::Path, at| Papers::signed_by(authority, at, &ground.gateway);

    let nothing = Papers {
        certificate: None,
        ..signed(&state, now)
    };
    assert_eq!(
        shown(&nothing, &ground.gateway).await,
        Ok(RefusalCode::UnknownNode)
    );
    let never_paired = signed(&state, now);
    assert_eq!(
        shown(&never_paired, &ground.gateway).await,
        Ok(RefusalCode::UnknownNode)
    );
    let another = ground.papers("another").await;
    let server = Authority::load_or_create(&state, now)
        .and_then(|authority| authority.server_leaf(now))
        .expect("a leaf");
    let not_yet = signed(&state, now + 30 * DAY_MS);
    for (papers, what) in [
        (signed(&foreign_authority, now), "of a foreign authority"),
        (not_yet, "not valid yet"),
        (
            Papers {
                certificate: another.certificate.clone(),
                ..signed(&state, now)
            },
            "for another node's key",
        ),
        (
            Papers {
                certificate: Some(server.chain[0].to_vec()),
                key: rcgen::KeyPair::try_from(server.key.as_slice()).expect("a key"),
                ..signed(&state, now)
            },
            "the gateway's own, for servers",
        ),
    ] {
        let end = shown(&papers, &ground.gateway).await;
        let reason = end.expect_err(what);
        assert!(
            reason.contains("aborted by peer") && reason.contains("cryptographic"),
            "{what}: {reason}"
        );
    }
    assert_eq!(ground.status().await.counts.signals, 0);
    ground.unharmed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_certificate_is_good_for_its_own_renewal_and_for_nothing_else() {
    let ground = Ground::prepare().await;
    let state = ground.gateway.state_dir().to_owned();
    let long_ago = SystemClock::new().now() - 60 * DAY_MS;
    let papers = ground.papers("slept").await;
    let key = rcgen::KeyPair::from_pem(&papers.key.serialize_pem()).expect("the same key");
    let expired = Papers::signed_for(key, &state, long_ago, &ground.gateway);

    for (request, expected) in [
        (Message::Ping {}, None),
        (Message::Renew(renewal(&expired)), Some(true)),
        (Message::Renew(renewal(&ground.victim)), Some(false)),
    ] {
        let connection = connect(&expired, ground.gateway.listen(), ALPN_NODE).await;
        let connection = connection.expect("a connection");
        let (answer, _control) = answer_to_hello(&connection, hello(1))
            .await
            .expect("answer");
        assert_eq!(refused(answer).code, RefusalCode::CertificateExpired);
        let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
        framed::write(&mut send, &request).await.expect("written");
        let answer = timeout(PATIENCE, framed::read(&mut receive, MAX_FRAME_BYTES));
        let renewed = match answer.await.expect("in time") {
            Ok(Some(Message::Renewed(_))) => Some(true),
            Ok(Some(Message::Failed(error))) => {
                assert_eq!(error.error_type, ErrorType::NotPermitted);
                Some(false)
            }
            _ => None,
        };
        assert_eq!(renewed, expected, "{}", request.name());
        timeout(PATIENCE, connection.closed())
            .await
            .expect("it ends after one answer");
    }
    ground.unharmed().await;
}

fn renewal(papers: &Papers) -> Renew {
    let request = rcgen::CertificateParams::default().serialize_request(&papers.key);
    Renew {
        signing_request: request.expect("a request").der().to_vec(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_processes_with_one_key_the_one_that_answers_stays() {
    let ground = Ground::prepare().await;
    let address = ground.gateway.listen();
    let first = RawNode::welcomed(&ground.victim, &ground.gateway).await;
    let newer = connect(&ground.victim, address, ALPN_NODE)
        .await
        .expect("connection");
    let (answer, _control) = answer_to_hello(&newer, hello(2)).await.expect("answer");
    assert_eq!(refused(answer).code, RefusalCode::DuplicateIdentity);
    assert!(first.connection.close_reason().is_none());

    // The same process again: its older connection is a remainder.
    let again = connect(&ground.victim, address, ALPN_NODE)
        .await
        .expect("connection");
    let (answer, _control) = answer_to_hello(&again, hello(1)).await.expect("answer");
    assert!(matches!(answer, Message::Welcome(_)), "{answer:?}");
    let why = first.sent_away().await;
    assert!(why.contains("replaced by a newer connection"), "{why}");

    // This one does not answer pings: another process takes its place after a second.
    let third = connect(&ground.victim, address, ALPN_NODE)
        .await
        .expect("connection");
    let (answer, _third_control) = answer_to_hello(&third, hello(3)).await.expect("answer");
    assert!(matches!(answer, Message::Welcome(_)), "{answer:?}");
    again.closed().await;
    // And the late end of the older one changes nothing for it.
    let ping = async {
        let (mut send, mut receive) = third.open_bi().await.expect("a stream");
        framed::write(&mut send, &Message::Ping {})
            .await
            .expect("written");
        framed::read::<Message, _>(&mut receive, 1_024).await
    };
    let answer = timeout(PATIENCE, ping).await.expect("in time");
    assert_eq!(answer.expect("answer"), Some(Message::Pong {}));
    let mut operator = served::connect(ground.gateway.state_dir()).await;
    let node = NodeRef {
        node: "victim".to_owned(),
    };
    let shown = body!(ask(&mut operator, Request::NodesShow(node)).await, Node);
    assert_eq!(
        shown.status,
        tidings_protocol::session_api::NodeState::Connected
    );
    third.close(0u32.into(), b"done");
    drop(operator);
    ground.unharmed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_protocol_is_spoken_under_its_own_name() {
    let ground = Ground::prepare().await;
    let address = ground.gateway.listen();
    for alpn in [&b"h3"[..], b"tidings/2"] {
        let refused = connect(&ground.victim, address, alpn).await;
        let error = refused.expect_err("no such protocol").to_string();
        assert!(
            error.contains("cryptographic handshake failed: error 120"),
            "{error}"
        );
    }
    // The protocol of nodes, spoken where machines join.
    let joining = connect(&ground.victim, address, ALPN_JOIN)
        .await
        .expect("connection");
    let (answer, _) = answer_to_hello(&joining, hello(1))
        .await
        .expect("an answer");
    let refused = refused(answer);
    assert_eq!(refused.reason, "the join request cannot be read");
    timeout(PATIENCE, joining.closed()).await.expect("it ends");
    ground.unharmed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_begins_with_another_word_than_hello_is_sent_away() {
    let ground = Ground::prepare().await;
    let hello_frame = encode(&Message::Hello(hello(1))).expect("a frame");
    for first in [
        encode(&Message::Presence(Presence::default())).expect("a frame"),
        encode(&Message::Ping {}).expect("a frame"),
        b"\x00\x00\x00\x06\x81\xa3abc\xc0".to_vec(),
        b"\x00\x01\x00\x01".to_vec(),
        b"\xff\xff\xff\xff".to_vec(),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        hello_frame[..hello_frame.len() - 1].to_vec(),
        Vec::new(),
    ] {
        let connection = connect(&ground.victim, ground.gateway.listen(), ALPN_NODE).await;
        let connection = connection.expect("a connection");
        let (mut send, _receive) = connection.open_bi().await.expect("a stream");
        framed::write_encoded(&mut send, &first)
            .await
            .expect("written");
        let _ = send.finish();
        let closed = timeout(PATIENCE, connection.closed()).await;
        let why = closed.expect("in time").to_string();
        assert!(why.contains("no hello"), "{first:x?}: {why}");
    }
    ground.unharmed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_out_of_order_are_refused_and_the_connection_goes_on() {
    let ground = Ground::prepare().await;
    let mut node = RawNode::welcomed(&ground.victim, &ground.gateway).await;
    for message in [
        Message::Hello(hello(1)),
        Message::Presence(Presence::default()),
        Message::LinksEnd { count: 0 },
        Message::Pong {},
    ] {
        let answer = node.ask(&message).await.expect("an answer");
        let Message::Failed(error) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(error.error_type, ErrorType::NotPermitted);
        assert!(error.message.contains(message.name()), "{error}");
        // On the control stream they are passed over.
        framed::write(&mut node.control.0, &message)
            .await
            .expect("written");
    }
    let unknown = b"\x00\x00\x00\x06\x81\xa3abc\xc0";
    framed::write_encoded(&mut node.control.0, unknown)
        .await
        .expect("written");
    let mut receive = node.write_raw(unknown).await.expect("written");
    let answer = framed::read(&mut receive, MAX_FRAME_BYTES)
        .await
        .expect("an answer");
    let unsupported = Message::Unsupported {
        name: "abc".to_owned(),
    };
    assert_eq!(answer, Some(unsupported));
    assert_eq!(
        node.ask(&Message::Ping {}).await.expect("goes on"),
        Message::Pong {}
    );
    // Streams that a node never may open it cannot open.
    let opened = timeout(Duration::from_millis(1), node.connection.open_uni()).await;
    assert!(opened.is_err(), "{opened:?}");
    ground.unharmed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_beyond_its_limit_or_of_no_message_ends_the_connection_by_its_name() {
    let ground = Ground::prepare().await;
    for (bytes, reason) in [
        (
            &b"\x00\x04\x00\x01"[..],
            "a frame of 262145 bytes is over the limit of 262144",
        ),
        (
            b"\xff\xff\xff\xff",
            "a frame of 4294967295 bytes is over the limit",
        ),
        (
            b"\x00\x00\x00\x01\xc1",
            "a frame of 1 bytes cannot be decoded as a node protocol",
        ),
        (
            b"\x00\x00\x00\x08\x81\xa5hello\xc0",
            "a frame of 8 bytes cannot be decoded",
        ),
    ] {
        let node = RawNode::welcomed(&ground.victim, &ground.gateway).await;
        node.write_raw(bytes).await.expect("written");
        let why = node.sent_away().await;
        assert!(why.contains(reason), "{bytes:x?}: {why}");
        let mut node = RawNode::welcomed(&ground.victim, &ground.gateway).await;
        let control = [&b"\x00\x01\x00\x01"[..], &[0; 16]].concat();
        framed::write_encoded(&mut node.control.0, &control)
            .await
            .expect("written");
        let why = node.sent_away().await;
        assert!(why.contains("over the limit of 65536"), "{why}");
    }
    // A request cut short is one that somebody gave up.
    let node = RawNode::welcomed(&ground.victim, &ground.gateway).await;
    node.write_raw(b"\x00\x00\x00\x08\x81")
        .await
        .expect("written");
    node.write_raw(b"\x00").await.expect("written");
    assert_eq!(
        node.ask(&Message::Ping {}).await.expect("goes on"),
        Message::Pong {}
    );
    ground.unharmed().await;
}
