//! Signals of sixteen nodes: connections with certificates of their own, that report what
//! they would have found, as fast as they are answered. No file is read: it is about the wire
//! and what is behind it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::{Connection, Endpoint, RecvStream, SendStream};
use tidings_node::clock::{Clock, SystemClock};
use tidings_node::connection::{NodeIdentity, join, paired};
use tidings_node::framed;
use tidings_protocol::identity::GATEWAY_SERVER_NAME;
use tidings_protocol::marker::{Digests, Marker};
use tidings_protocol::report::{Activity, Evidence, Link, Outcome, Report, ReportVerdict};
use tidings_protocol::session_api::{Adopt, Request};
use tidings_protocol::wire::messages::{Hello, Thread, ThreadOpened};
use tidings_protocol::wire::{MAX_FRAME_BYTES, Message, OLDEST_PROTOCOL_VERSION, PROTOCOL_VERSION};
use tidings_protocol::{Catalog, JoinLink, SessionKey, ThreadId};
use tidings_tests::{DoorClient, Gateway, Scratch, Setup};
use tokio::task::JoinSet;

use crate::spec::{Comparison, Figure};
use crate::table::{Figures, percentiles};

const NODES: usize = 16;
/// Links of each node: all together as many as there are producers elsewhere.
const LINKS: usize = 4;
/// Reports of each link: one is under way at a time.
const REPORTS: usize = 600;
/// Record ids that a marker remembers once a conversation has been going on for a while.
const REMEMBERED: u64 = 64;

/// How many signals per second become durable through 16 nodes; a part of `without` is what
/// they are to be at the least.
pub(crate) fn nodes(figures: &mut Figures, without: Option<f64>) {
    let scratch = Scratch::new();
    let gateway = Gateway::start_as(&scratch, Setup::without_local_node().quiet());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let times = runtime.block_on(async {
        let mut nodes = Vec::new();
        for number in 0..NODES {
            nodes.push(Node::start(&gateway, &format!("node-{number}")).await);
        }
        let began = Instant::now();
        let mut reporting = JoinSet::new();
        for node in nodes {
            reporting.spawn(node.report());
        }
        let times: Vec<Duration> = reporting.join_all().await.concat();
        (began.elapsed(), times)
    });
    let (took, times) = times;
    let count = u32::try_from(times.len()).expect("a small number");
    let rate = f64::from(count) / took.as_secs_f64();
    figures.add(
        "durable signals per second, 16 nodes over QUIC, 64 links",
        format!("{rate:.0} per s"),
        "see the ratio",
    );
    if let Some(without) = without {
        figures.add(
            "the same as a part of 64 producers beside the database",
            format!("{:.2}", rate / without),
            ">= 0.25",
        );
        figures.result(
            Figure::NodesRatio,
            rate / without,
            Comparison::with("64 producers beside the database", without, "per s"),
        );
    }
    figures.add(
        "acknowledgement of a report, 16 nodes over QUIC",
        percentiles(&times),
        "-",
    );
}

/// A machine that has joined, with its connection.
struct Node {
    connection: Connection,
    /// Where the links come from, and how they stand.
    links: Vec<Link>,
    // Kept open: the gateway takes their end for the end of the node.
    _control: (SendStream, RecvStream),
    _endpoint: Endpoint,
}

impl Node {
    async fn start(gateway: &Gateway, name: &str) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let identity = joined(gateway, name, &clock).await;
        let (endpoint, connection) = connect(&identity, gateway.address(), &clock).await;
        let control = greet(&connection).await;
        let mut from_gateway = connection.accept_uni().await.expect("a stream of links");
        let adopting = adopt_all(gateway.state_dir(), name);
        let answering = answer_requests(connection.clone());
        let links = async {
            let mut links = Vec::new();
            while links.len() < LINKS {
                if let Message::Link(link) = next(&mut from_gateway).await {
                    links.push(*link);
                }
            }
            links
        };
        let (links, ()) = tokio::select! {
            done = async { tokio::join!(links, adopting) } => done,
            () = answering => panic!("the gateway closed the connection"),
        };
        Self {
            connection,
            links,
            _control: control,
            _endpoint: endpoint,
        }
    }

    /// Reports on all links, on each as soon as its last report is answered. How long each
    /// answer took.
    async fn report(self) -> Vec<Duration> {
        let (mut send, mut receive) = self.connection.open_bi().await.expect("a stream");
        let mut waiting: Vec<Waiting> = Vec::new();
        for link in self.links {
            let mut link = Waiting::new(link);
            link.send(&mut send).await;
            waiting.push(link);
        }
        let mut times = Vec::with_capacity(LINKS * REPORTS);
        while times.len() < LINKS * REPORTS {
            let Message::ReportAnswer(answer) = next(&mut receive).await else {
                panic!("no answer to a report");
            };
            let link = waiting
                .iter_mut()
                .find(|link| link.report.link == answer.link);
            let link = link.expect("a link of this node");
            let ReportVerdict::Applied { revision } = answer.verdict else {
                panic!("not applied: {answer:?}");
            };
            times.push(link.sent.elapsed());
            link.report.revision = revision;
            if link.left > 0 {
                link.send(&mut send).await;
            }
        }
        times
    }
}

/// A link with its next report, or the one that is under way.
struct Waiting {
    report: Report,
    left: usize,
    sent: Instant,
}

impl Waiting {
    fn new(link: Link) -> Self {
        let mut marker = Marker {
            records: remembered(0),
            human_records: remembered(REMEMBERED),
            ..link.marker
        };
        marker.newest_record_at = Some(SystemClock::new().now());
        Self {
            report: Report {
                link: link.link,
                revision: link.revision,
                marker,
                path: link.path,
                size: 0,
                unclassified: 0,
                outcome: Outcome::Quiet,
            },
            left: REPORTS,
            sent: Instant::now(),
        }
    }

    /// Somebody has said one thing more.
    async fn send(&mut self, stream: &mut SendStream) {
        let report = &mut self.report;
        let byte_start = report.marker.offset;
        report.marker.offset += 400;
        report.size = report.marker.offset;
        report.outcome = Outcome::Activity(Activity {
            turns: vec![Evidence {
                byte_start,
                byte_end: report.marker.offset,
                record_id: Some(format!("4d3c2b1a-0000-4000-8000-{byte_start:012}")),
                rule: "typed-prompt".to_owned(),
                at: SystemClock::new().now(),
            }],
            echoed: Vec::new(),
        });
        self.left -= 1;
        self.sent = Instant::now();
        let message = Message::Report(Box::new(report.clone()));
        framed::write(stream, &message).await.expect("a report");
    }
}

fn remembered(first: u64) -> Digests {
    (first..first + REMEMBERED).map(u64::to_be_bytes).collect()
}

async fn joined(gateway: &Gateway, name: &str, clock: &Arc<dyn Clock>) -> NodeIdentity {
    let address = gateway.address();
    let invitation = gateway.ask(&["nodes", "invite", "--name", name, "--address", address]);
    let link = invitation["link"].as_str().expect("a link");
    let link = JoinLink::parse(link).expect("a link");
    let dir = gateway.scratch().path().join(name);
    join(&link, name, &dir, clock).await.expect("joined")
}

async fn connect(
    identity: &NodeIdentity,
    address: &str,
    clock: &Arc<dyn Clock>,
) -> (Endpoint, Connection) {
    let config = paired(identity, clock).expect("credentials");
    let gateway: SocketAddr = address.parse().expect("an address");
    let local = "127.0.0.1:0".parse().expect("an address");
    let endpoint = Endpoint::client(local).expect("a UDP socket");
    let connecting = endpoint.connect_with(config, gateway, GATEWAY_SERVER_NAME);
    let connection = connecting.expect("connecting").await.expect("connected");
    (endpoint, connection)
}

async fn greet(connection: &Connection) -> (SendStream, RecvStream) {
    let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
    let hello = Message::Hello(Hello {
        oldest_version: OLDEST_PROTOCOL_VERSION,
        newest_version: PROTOCOL_VERSION,
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        instance: [7; 16],
        catalogs: vec![Catalog::Claude],
    });
    framed::write(&mut send, &hello).await.expect("hello");
    let welcome = next(&mut receive).await;
    assert!(matches!(welcome, Message::Welcome(_)), "{welcome:?}");
    (send, receive)
}

/// Asks the gateway to adopt this node's threads, each watched.
async fn adopt_all(state_dir: &Path, host: &str) {
    let (state_dir, host) = (state_dir.to_owned(), host.to_owned());
    let adopting = tokio::task::spawn_blocking(move || {
        let mut door = DoorClient::connect(&state_dir);
        for number in 0..LINKS {
            let watcher = format!("agent:main:watcher-{host}-{number}");
            door.ask(&Request::Adopt(Adopt {
                catalog: Catalog::Claude,
                host: host.clone(),
                thread_id: ThreadId::parse(&format!("thread-{number}")).expect("a thread id"),
                agent: None,
                watch_by: Some(SessionKey::parse(&watcher).expect("a key")),
            }));
        }
    });
    adopting.await.expect("adopted");
}

/// Answers what the gateway asks about threads.
async fn answer_requests(connection: Connection) {
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let Message::OpenThread(open) = next(&mut receive).await else {
            panic!("not asked before");
        };
        let now = SystemClock::new().now();
        let opened = Message::ThreadOpened(Box::new(ThreadOpened {
            thread: Thread {
                catalog: open.catalog,
                path: format!("/home/u/.claude/projects/p/{}.jsonl", open.thread_id),
                thread_id: open.thread_id,
                cwd: None,
                title: None,
                updated_at: now,
                size_bytes: 0,
            },
            marker: Marker::at_start(now),
        }));
        framed::write(&mut send, &opened).await.expect("an answer");
        send.finish().expect("the end of it");
    }
}

async fn next(stream: &mut RecvStream) -> Message {
    let message = framed::read(stream, MAX_FRAME_BYTES).await;
    message
        .expect("a message")
        .expect("a message before the end")
}
