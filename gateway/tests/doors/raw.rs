//! A node that speaks the protocol by hand, so that it can say what no agent would.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connecting, Connection, ConnectionError, Endpoint, RecvStream, SendStream};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};
use tidings_gateway::Gateway;
use tidings_gateway::nodes::authority::Authority;
use tidings_node::clock::{Clock, SystemClock};
use tidings_node::connection::{crypto_provider, transport_config};
use tidings_node::framed::{self, StreamError};
use tidings_protocol::identity::GATEWAY_SERVER_NAME;
use tidings_protocol::report::{Link, Report};
use tidings_protocol::session_api::{ApiError, Caller, Reply, Request};
use tidings_protocol::wire::frame::FrameMessage;
use tidings_protocol::wire::messages::{Hello, Refused, Relay, Thread, ThreadOpened};
use tidings_protocol::wire::{ALPN_NODE, MAX_FRAME_BYTES, Message};
use tidings_protocol::{Catalog, EpochMs, Host, Marker, NodeId, ThreadId};
use tokio::time::timeout;

use crate::nodes::join;
use crate::served::PATIENCE;

/// A key and what is shown for it.
pub(crate) struct Papers {
    pub(crate) key: KeyPair,
    /// The certificate, if any is shown.
    pub(crate) certificate: Option<Vec<u8>>,
    pub(crate) authority: CertificateDer<'static>,
}

impl Papers {
    /// Those of a machine that joins `gateway` under `name`; its folder is below `scratch`.
    pub(crate) async fn joined(gateway: &Gateway, scratch: &Path, name: &str) -> Self {
        let dir = scratch.join(name);
        let identity = join(gateway, &dir, name).await;
        let pem = std::fs::read_to_string(dir.join("node.key")).expect("a key");
        Self {
            key: KeyPair::from_pem(&pem).expect("a key"),
            certificate: Some(identity.certificate),
            authority: identity.authority.into(),
        }
    }

    /// A new key with a certificate that the authority in `authority_dir` signs at `now`,
    /// shown to `gateway`.
    pub(crate) fn signed_by(authority_dir: &Path, now: EpochMs, gateway: &Gateway) -> Self {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
        Self::signed_for(key, authority_dir, now, gateway)
    }

    /// The same for this key.
    pub(crate) fn signed_for(
        key: KeyPair,
        authority_dir: &Path,
        now: EpochMs,
        gateway: &Gateway,
    ) -> Self {
        let signer = Authority::load_or_create(authority_dir, now).expect("authority");
        let request = CertificateParams::default().serialize_request(&key);
        let issued = signer.sign_node(request.expect("a request").der(), now);
        let own = Authority::load_or_create(gateway.state_dir(), now).expect("authority");
        Self {
            certificate: Some(issued.expect("a certificate").certificate.der),
            authority: own.certificate().clone(),
            key,
        }
    }

    /// Its host, as the gateway names it.
    pub(crate) fn host(&self) -> Host {
        let key = rcgen::PublicKeyData::subject_public_key_info(&self.key);
        Host::Node(NodeId::of_public_key(&key))
    }

    fn client_config(&self, alpn: &[u8]) -> quinn::ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.clone()).expect("an authority");
        let builder = ClientConfig::builder_with_provider(crypto_provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_root_certificates(roots);
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let key = crypto_provider().key_provider.load_private_key(key);
        let mut config = match &self.certificate {
            None => builder.with_no_client_auth(),
            // Nobody checks that the two belong together: the gateway has to.
            Some(certificate) => {
                let chain = vec![CertificateDer::from(certificate.clone())];
                let shown = CertifiedKey::new(chain, key.expect("a key"));
                let resolver = SingleCertAndKey::from(shown);
                builder.with_client_cert_resolver(Arc::new(resolver))
            }
        };
        config.alpn_protocols = vec![alpn.to_vec()];
        let crypto = QuicClientConfig::try_from(config).expect("a QUIC suite");
        let mut config = quinn::ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(transport_config()));
        config
    }
}

/// A connection that these papers open; with TLS 1.3 a refusal may only show later.
pub(crate) async fn connect(
    papers: &Papers,
    address: SocketAddr,
    alpn: &[u8],
) -> Result<Connection, ConnectionError> {
    let endpoint = endpoint("127.0.0.1");
    let connecting = begin(&endpoint, papers, address, alpn);
    timeout(PATIENCE, connecting).await.expect("in time")
}

/// A socket of this address of the loopback.
pub(crate) fn endpoint(ip: &str) -> Endpoint {
    let address = format!("{ip}:0").parse().expect("address");
    Endpoint::client(address).expect("a socket")
}

/// Begins a connection.
pub(crate) fn begin(
    endpoint: &Endpoint,
    papers: &Papers,
    address: SocketAddr,
    alpn: &[u8],
) -> Connecting {
    endpoint
        .connect_with(papers.client_config(alpn), address, GATEWAY_SERVER_NAME)
        .expect("a connection")
}

/// What a node says first, as a process of this instance.
pub(crate) fn hello(instance: u8) -> Hello {
    Hello {
        oldest_version: 1,
        newest_version: 1,
        agent_version: "raw".to_owned(),
        instance: [instance; 16],
        catalogs: Catalog::ALL.to_vec(),
    }
}

/// What comes of showing papers and saying hello.
pub(crate) async fn answer_to_hello(
    connection: &Connection,
    hello: Hello,
) -> Result<(Message, (SendStream, RecvStream)), StreamError> {
    let (mut send, mut receive) = connection.open_bi().await.map_err(std::io::Error::from)?;
    framed::write(&mut send, &Message::Hello(hello)).await?;
    let answer = timeout(PATIENCE, framed::read(&mut receive, MAX_FRAME_BYTES)).await;
    let answer = answer.expect("in time")?.ok_or(StreamError::Torn)?;
    Ok((answer, (send, receive)))
}

/// A node that the gateway has welcomed.
pub(crate) struct RawNode {
    pub(crate) connection: Connection,
    pub(crate) control: (SendStream, RecvStream),
    /// Its links, as they come.
    pub(crate) links: RecvStream,
}

impl RawNode {
    /// Connects and is welcomed. It answers every look for a thread with one that is there.
    pub(crate) async fn welcomed(papers: &Papers, gateway: &Gateway) -> Self {
        let connection = connect(papers, gateway.listen(), ALPN_NODE).await;
        let connection = connection.expect("a connection");
        let (answer, control) = answer_to_hello(&connection, hello(1))
            .await
            .expect("answer");
        assert!(matches!(answer, Message::Welcome(_)), "{answer:?}");
        tokio::spawn(answer_looks(connection.clone()));
        let links = timeout(PATIENCE, connection.accept_uni()).await;
        Self {
            links: links.expect("in time").expect("a stream of links"),
            connection,
            control,
        }
    }

    /// The next of its links, as the gateway sends them.
    pub(crate) async fn next_link(&mut self) -> Link {
        loop {
            let next = timeout(PATIENCE, framed::read(&mut self.links, MAX_FRAME_BYTES)).await;
            match next.expect("in time").expect("a message") {
                Some(Message::Link(link)) => return *link,
                Some(_) => {}
                None => panic!("no more links"),
            }
        }
    }

    /// Asks on a stream of its own.
    pub(crate) async fn ask(&self, request: &Message) -> Result<Message, StreamError> {
        let (mut send, receive) = self.stream().await?;
        framed::write(&mut send, request).await?;
        let _ = send.finish();
        read(receive).await
    }

    /// Relays a request, as an agent does for a program of its machine.
    pub(crate) async fn relay(
        &self,
        caller: Option<Caller>,
        request: &Request,
    ) -> Result<Reply, ApiError> {
        match self.relayed(caller, request).await.expect("a reply") {
            Reply::Error(error) => Err(error),
            reply => Ok(reply),
        }
    }

    /// The same without a caller, where the connection may end meanwhile: false then, and
    /// for a refusal.
    pub(crate) async fn is_answered(&self, request: &Request) -> bool {
        let reply = self.relayed(None, request).await;
        reply.is_ok_and(|reply| !matches!(reply, Reply::Error(_)))
    }

    async fn relayed(
        &self,
        caller: Option<Caller>,
        request: &Request,
    ) -> Result<Reply, StreamError> {
        let (mut send, receive) = self.stream().await?;
        let relay = Message::Relay(Relay { caller });
        framed::write(&mut send, &relay).await?;
        framed::write(&mut send, request).await?;
        read(receive).await
    }

    /// Writes these bytes on a stream of its own and ends it.
    pub(crate) async fn write_raw(&self, bytes: &[u8]) -> Result<RecvStream, StreamError> {
        let (mut send, receive) = self.stream().await?;
        framed::write_encoded(&mut send, bytes).await?;
        let _ = send.finish();
        Ok(receive)
    }

    /// Sends one report, and waits for its answer.
    pub(crate) async fn report(&self, report: Report) -> Result<Message, StreamError> {
        let (mut send, receive) = self.stream().await?;
        framed::write(&mut send, &Message::Report(Box::new(report))).await?;
        read(receive).await
    }

    /// Waits until the gateway has ended the connection: why it did.
    pub(crate) async fn sent_away(&self) -> String {
        let closed = timeout(PATIENCE, self.connection.closed()).await;
        closed.expect("in time").to_string()
    }

    async fn stream(&self) -> Result<(SendStream, RecvStream), StreamError> {
        let opened = self.connection.open_bi().await;
        Ok(opened.map_err(std::io::Error::from)?)
    }
}

async fn read<M: FrameMessage>(mut receive: RecvStream) -> Result<M, StreamError> {
    let answer = timeout(PATIENCE, framed::read(&mut receive, MAX_FRAME_BYTES)).await;
    answer.expect("in time")?.ok_or(StreamError::Torn)
}

async fn answer_looks(connection: Connection) {
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let answer = match framed::read(&mut receive, MAX_FRAME_BYTES).await {
            Ok(Some(Message::OpenThread(open))) => {
                Message::ThreadOpened(Box::new(opened(open.catalog, open.thread_id)))
            }
            Ok(Some(Message::Ping {})) => Message::Pong {},
            _ => return,
        };
        if framed::write(&mut send, &answer).await.is_ok() {
            let _ = send.finish();
        }
    }
}

fn opened(catalog: Catalog, thread_id: ThreadId) -> ThreadOpened {
    ThreadOpened {
        thread: Thread {
            catalog,
            path: format!("/root/{thread_id}.jsonl"),
            thread_id,
            cwd: None,
            title: None,
            updated_at: 1,
            size_bytes: 0,
        },
        marker: Marker::at_start(SystemClock::new().now()),
    }
}

/// The conversation with this id, of Claude Code.
pub(crate) fn caller(thread: &str) -> Caller {
    Caller {
        catalog: Catalog::Claude,
        thread_id: ThreadId::parse(thread).expect("an id"),
    }
}

/// What an expected refusal says.
pub(crate) fn refused(answer: Message) -> Refused {
    match answer {
        Message::Refused(refused) => refused,
        other => panic!("{other:?}"),
    }
}
