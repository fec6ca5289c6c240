//! Two thousand nodes of one gateway: what each costs while it is idle, and how soon all are
//! back after the gateway was killed. They speak the real protocol from one process; the
//! gateway is a process of its own.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tidings_node::connection::back_off::{self, Ending};
use tidings_node::connection::{crypto_provider, transport_config};
use tidings_node::framed;
use tidings_protocol::identity::GATEWAY_SERVER_NAME;
use tidings_protocol::session_api::{Adopt, NodesInvite, Reply, Request};
use tidings_protocol::wire::messages::{Hello, Join, Presence, Thread, ThreadOpened};
use tidings_protocol::wire::{ALPN_JOIN, ALPN_NODE, MAX_FRAME_BYTES, Message};
use tidings_protocol::{Catalog, JoinLink, Marker, ThreadId};
use tidings_tests::{DoorClient, Gateway, Scratch, resident_kib};
use tokio::sync::mpsc;

use crate::spec::{Comparison, Figure};
use crate::table::Figures;

/// Nodes.
const NODES: u32 = 2_000;
/// Nodes behind one address: less than a gateway lets one address join in a row.
const NODES_PER_ADDRESS: u32 = 50;
/// Longer than anything here should take.
const PATIENCE: Duration = Duration::from_mins(2);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A node, as it is paired.
struct Node {
    number: u32,
    endpoint: Endpoint,
    config: ClientConfig,
}

pub(crate) fn fleet(figures: &mut Figures) {
    let mut gateway = Gateway::start_alone_to_measure(&Scratch::new());
    let address: SocketAddr = gateway.address().parse().expect("an address");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let nodes = runtime.block_on(pair(&gateway, address));
    let before = resident_kib(gateway.id());
    let own_before = resident_kib(std::process::id());
    let (arrivals, mut arrived) = mpsc::channel(1_024);
    for node in nodes {
        runtime.spawn(live(node, address, arrivals.clone()));
    }
    let mut all_arrive = || {
        let all = async {
            let mut here = HashSet::new();
            let mut times = Vec::new();
            while here.len() < NODES as usize {
                if here.insert(arrived.recv().await.expect("a node")) {
                    times.push(Instant::now());
                }
            }
            times
        };
        runtime.block_on(async { tokio::time::timeout(PATIENCE, all).await })
    };
    all_arrive().expect("every node connects");
    let each = (resident_kib(gateway.id()) - before) / f64::from(NODES);
    figures.add(
        "gateway, 2 000 idle connected nodes: memory of each",
        format!("{each:.0} KB"),
        "<= 120 KB",
    );
    figures.result(
        Figure::ConnectedMemory,
        each,
        Comparison::with(
            "the other end of the same connections, 2 000 of them in one process",
            (resident_kib(std::process::id()) - own_before) / f64::from(NODES),
            "KB",
        ),
    );
    follow_one_thread_each(&gateway);
    gateway.kill();
    gateway.restart();
    let ready = Instant::now();
    let times = all_arrive().expect("every node comes back");
    let after = |at: usize| (times[at] - ready).as_secs_f64();
    figures.add(
        "gateway killed and ready again: 2 000 nodes are back with their links",
        format!(
            "half {:.1} s, all {:.1} s",
            after(times.len() / 2),
            after(times.len() - 1)
        ),
        "all <= 10 s",
    );
    figures.result(
        Figure::Reconnect,
        after(times.len() - 1),
        Comparison::with("half of them", after(times.len() / 2), "s"),
    );
}

/// Joins all nodes, each by a link of its own.
async fn pair(gateway: &Gateway, address: SocketAddr) -> Vec<Node> {
    let authority = std::fs::read(gateway.state_dir().join("authority/ca.crt"));
    let authority = CertificateDer::from(authority.expect("the authority's certificate"));
    let mut door = DoorClient::connect(gateway.state_dir());
    let mut endpoint = None;
    let mut nodes = Vec::new();
    for number in 0..NODES {
        if number % NODES_PER_ADDRESS == 0 {
            let ip = [
                127,
                0,
                1,
                u8::try_from(1 + number / NODES_PER_ADDRESS).expect("few"),
            ];
            endpoint = Some(Endpoint::client((ip, 0).into()).expect("a socket"));
        }
        let endpoint = endpoint.clone().expect("made above");
        let invite = Request::NodesInvite(NodesInvite {
            name: Some(format!("n{number}")),
            address: Some(address.to_string()),
        });
        let Reply::NodesInvite(invitation) = door.ask(&invite) else {
            panic!("no link");
        };
        let link = JoinLink::parse(&invitation.link).expect("a link");
        let (key, certificate) = join(&endpoint, &link, address, &authority)
            .await
            .expect("joined");
        nodes.push(Node {
            number,
            endpoint,
            config: config(&authority, Some((&key, certificate)), ALPN_NODE),
        });
    }
    nodes
}

async fn join(
    endpoint: &Endpoint,
    link: &JoinLink,
    address: SocketAddr,
    authority: &CertificateDer<'static>,
) -> Result<(KeyPair, Vec<u8>), Failure> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let join = Message::Join(Join {
        code: *link.code.as_bytes(),
        signing_request: CertificateParams::default()
            .serialize_request(&key)?
            .der()
            .to_vec(),
        machine_name: "fleet".to_owned(),
        agent_version: "0.1.0".to_owned(),
    });
    let config = config(authority, None, ALPN_JOIN);
    let connection = endpoint
        .connect_with(config, address, GATEWAY_SERVER_NAME)?
        .await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    framed::write(&mut send, &join).await?;
    let Some(Message::Joined(joined)) = framed::read(&mut receive, MAX_FRAME_BYTES).await? else {
        return Err("not joined".into());
    };
    connection.close(0u32.into(), b"done");
    Ok((key, joined.certificate))
}

fn config(
    authority: &CertificateDer<'static>,
    papers: Option<(&KeyPair, Vec<u8>)>,
    alpn: &[u8],
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).expect("an authority");
    let builder = rustls::ClientConfig::builder_with_provider(crypto_provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots);
    let mut config = match papers {
        None => builder.with_no_client_auth(),
        Some((key, certificate)) => {
            let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
            let shown = builder.with_client_auth_cert(vec![certificate.into()], key);
            shown.expect("a key and its certificate")
        }
    };
    config.alpn_protocols = vec![alpn.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    let crypto = QuicClientConfig::try_from(config).expect("a QUIC suite");
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport_config()));
    config
}

/// Connects and comes back for ever, as an agent does; says each time that it has its links.
async fn live(node: Node, address: SocketAddr, arrivals: mpsc::Sender<u32>) {
    let mut failures = 0;
    loop {
        let deadline = back_off::attempt_deadline(failures);
        let attempt = tokio::time::timeout(deadline, connect(&node, address)).await;
        if let Ok(Ok((connection, _control))) = attempt {
            failures = 0;
            if arrivals.send(node.number).await.is_err() {
                return;
            }
            answer_looks(connection).await;
        }
        failures += 1;
        let jitter = u8::try_from(node.number % 256).expect("a byte");
        tokio::time::sleep(back_off::wait(Ending::Lost, failures, jitter)).await;
    }
}

async fn connect(
    node: &Node,
    address: SocketAddr,
) -> Result<(Connection, quinn::SendStream), Failure> {
    let connecting =
        node.endpoint
            .connect_with(node.config.clone(), address, GATEWAY_SERVER_NAME)?;
    let connection = connecting.await?;
    let (mut control, mut said) = connection.open_bi().await?;
    let mut instance = [0; 16];
    instance[..4].copy_from_slice(&node.number.to_be_bytes());
    let hello = Message::Hello(Hello {
        oldest_version: 1,
        newest_version: 1,
        agent_version: "0.1.0".to_owned(),
        instance,
        catalogs: vec![Catalog::Claude],
    });
    framed::write(&mut control, &hello).await?;
    let Some(Message::Welcome(_)) = framed::read(&mut said, MAX_FRAME_BYTES).await? else {
        return Err("not welcome".into());
    };
    framed::write(&mut control, &Message::Presence(Presence::default())).await?;
    let mut links = connection.accept_uni().await?;
    loop {
        match framed::read(&mut links, MAX_FRAME_BYTES).await? {
            Some(Message::LinksEnd { .. }) => break,
            Some(_) => {}
            None => return Err("no links".into()),
        }
    }
    // Streams are kept as long as the connection, by whoever reads them there.
    let kept = connection.clone();
    tokio::spawn(async move {
        kept.closed().await;
        drop((links, said));
    });
    Ok((connection, control))
}

/// Answers the gateway until the connection ends.
async fn answer_looks(connection: Connection) {
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let answer = match framed::read(&mut receive, MAX_FRAME_BYTES).await {
            Ok(Some(Message::OpenThread(open))) => Message::ThreadOpened(Box::new(ThreadOpened {
                thread: Thread {
                    catalog: open.catalog,
                    path: format!("/home/ada/.claude/projects/p/{}.jsonl", open.thread_id),
                    thread_id: open.thread_id,
                    cwd: None,
                    title: None,
                    updated_at: 1,
                    size_bytes: 0,
                },
                marker: Marker::at_start(1),
            })),
            Ok(Some(Message::Ping {})) => Message::Pong {},
            _ => continue,
        };
        if framed::write(&mut send, &answer).await.is_ok() {
            let _ = send.finish();
        }
    }
}

/// Every node has a thread to follow.
fn follow_one_thread_each(gateway: &Gateway) {
    let mut door = DoorClient::connect(gateway.state_dir());
    for number in 0..NODES {
        door.ask(&Request::Adopt(Adopt {
            catalog: Catalog::Claude,
            host: format!("n{number}"),
            thread_id: ThreadId::parse(&format!("thread-{number}")).expect("an id"),
            agent: None,
            watch_by: None,
        }));
    }
}
