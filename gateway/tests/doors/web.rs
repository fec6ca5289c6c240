//! HTTP as a client writes and reads it, byte by byte.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tidings_gateway::config::Config;
use tidings_gateway::doors::http::{HttpLimits, HttpOptions, Listening};
use tidings_gateway::{Gateway, GatewayOptions};
use tidings_node::clock::SystemClock;
use tidings_protocol::session_api::{Request, TokenCreate, TokenScope};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::served::{self, PATIENCE, Served, ask, body};

/// An HTTP door that is asked, and who asks.
#[derive(Clone)]
pub(crate) struct Web {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// One server-sent event; only a position where it has no data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: Option<u64>,
    pub(crate) name: Option<String>,
    pub(crate) data: Option<Value>,
}

/// A stream of events.
pub(crate) struct Events {
    stream: TcpStream,
    /// What came and was not read as chunks yet.
    raw: Vec<u8>,
    /// What the chunks held and was not read as events yet.
    text: String,
    ended: bool,
}

/// A service behind an HTTP door; it closes when this is dropped.
pub(crate) struct OpenDoor {
    pub(crate) web: Web,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) serving: tokio::task::JoinHandle<()>,
}

/// Opens a door with these bounds before a service, and gives an admin token for it.
pub(crate) async fn open(served: &Served, limits: HttpLimits) -> OpenDoor {
    let configured = watch::channel(Arc::new(Config::default())).1;
    let options = HttpOptions {
        listen: "127.0.0.1:0".parse().expect("address"),
        limits,
    };
    let listening = Listening::open(options, configured).await.expect("a port");
    let address = address_in(&listening.url());
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(listening.serve(served.service.clone(), stopped));
    let token = token(served.dir.path(), "admin", TokenScope::Admin).await;
    OpenDoor {
        web: Web { address, token },
        stop,
        serving,
    }
}

/// Starts a whole gateway with an HTTP door.
pub(crate) async fn gateway(state_dir: &Path, config: Config) -> Gateway {
    let options = GatewayOptions {
        http: Some(HttpOptions::at("127.0.0.1:0".parse().expect("address"))),
        config: watch::channel(Arc::new(config)).1,
        ..served::options(Arc::new(SystemClock::new()), state_dir, None)
    };
    Gateway::start(options).await.expect("gateway")
}

/// Makes a token at the gateway's socket.
pub(crate) async fn token(state_dir: &Path, name: &str, scope: TokenScope) -> String {
    let mut operator = served::connect(state_dir).await;
    let create = TokenCreate {
        name: name.to_owned(),
        scope,
        expires_in_ms: None,
    };
    let created = ask(&mut operator, Request::TokenCreate(create)).await;
    body!(created, TokenCreate).token.0
}

/// The address in `http://<address>`.
pub(crate) fn address_in(url: &str) -> SocketAddr {
    let address = url.split_once("://").expect("a scheme").1;
    address.parse().expect("an address")
}

impl Web {
    /// The door of a gateway.
    pub(crate) fn of(gateway: &Gateway, token: &str) -> Self {
        Self {
            address: address_in(gateway.http().expect("a door")),
            token: token.to_owned(),
        }
    }

    /// The same door, asked by whoever has this token.
    pub(crate) fn with(&self, token: &str) -> Self {
        Self {
            token: token.to_owned(),
            ..self.clone()
        }
    }

    /// The headers that every request here has.
    pub(crate) fn headers(&self) -> String {
        format!(
            "Host: {}\r\nAuthorization: Bearer {}\r\n",
            self.address, self.token
        )
    }

    /// Sends these bytes on a connection of their own and reads the answer.
    pub(crate) async fn exchange(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address)
            .await
            .expect("a connection");
        stream.write_all(request).await.expect("written");
        read_answer(&mut stream).await
    }

    /// A request with the usual headers.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        let headers = self.headers();
        let request = format!("GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
        self.exchange(request.as_bytes()).await
    }

    /// A request of the session interface.
    pub(crate) async fn post(&self, name: &str, body: &str) -> Answer {
        let headers = self.headers();
        let length = body.len();
        let request = format!(
            "POST /v1/{name} HTTP/1.1\r\n{headers}Content-Type: application/json\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        self.exchange(request.as_bytes()).await
    }

    /// What must be answered well.
    pub(crate) async fn asked(&self, name: &str, body: &str) -> Value {
        let answer = self.post(name, body).await;
        assert_eq!(answer.status, 200, "{name}: {answer:?}");
        answer.json()
    }

    /// Begins a stream that must be answered well.
    pub(crate) async fn events(&self, path: &str, last: Option<u64>) -> Events {
        let stream = TcpStream::connect(self.address)
            .await
            .expect("a connection");
        self.events_on(stream, path, last).await
    }

    /// A stream to a reader for whom hardly anything is kept on the way.
    pub(crate) async fn narrow_events(&self, path: &str) -> Events {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4_096).expect("a small buffer");
        let stream = socket.connect(self.address).await.expect("a connection");
        self.events_on(stream, path, None).await
    }

    async fn events_on(&self, mut stream: TcpStream, path: &str, last: Option<u64>) -> Events {
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n"));
        let (headers, last) = (self.headers(), last.unwrap_or_default());
        let request = format!("GET {path} HTTP/1.1\r\n{headers}{last}\r\n");
        stream.write_all(request.as_bytes()).await.expect("written");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            let read = timeout(PATIENCE, stream.read_exact(&mut byte)).await;
            read.expect("in time").expect("a head");
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).expect("text");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        Events {
            stream,
            raw: Vec::new(),
            text: String::new(),
            ended: false,
        }
    }

    /// The figure of this name and these labels.
    pub(crate) async fn figure(&self, name: &str) -> f64 {
        let text = self.get("/metrics").await.body;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let value = line.unwrap_or_else(|| panic!("no {name} in {text}"));
        value.trim().parse().expect("a number")
    }
}

/// Reads an answer until the other side closes the connection.
pub(crate) async fn read_answer<S: AsyncReadExt + Unpin>(stream: &mut S) -> Answer {
    let mut bytes = Vec::new();
    // A connection that is reset behind the answer has said all the same what it had to.
    let _ = timeout(PATIENCE * 3, stream.read_to_end(&mut bytes))
        .await
        .expect("an answer in time");
    let text = String::from_utf8(bytes).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Answer {
        status: status.unwrap_or(0),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Status, type, message and hint of a refusal.
    pub(crate) fn refusal(&self) -> (u16, String, String, String) {
        let json = self.json();
        assert_eq!(json["ok"], false, "{self:?}");
        let text = |name: &str| json["error"][name].as_str().unwrap_or_default().to_owned();
        (self.status, text("type"), text("message"), text("hint"))
    }
}

impl Events {
    /// The next event that says something; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            let event = self.next_of_any_kind().await?;
            if event.data.is_some() {
                return Some(event);
            }
        }
    }

    /// The next event, be it only a position.
    pub(crate) async fn next_of_any_kind(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let event = parse(&self.text[..end]);
                self.text.drain(..end + 2);
                if event != Event::default() {
                    return Some(event);
                }
                continue;
            }
            if self.ended {
                return None;
            }
            self.read().await;
        }
    }

    /// Reads until as many comments have come that say nothing else.
    pub(crate) async fn until_kept_alive(&mut self, times: usize) {
        while self.text.matches(": keep-alive\n\n").count() < times {
            assert!(!self.ended, "it goes on: {}", self.text);
            self.read().await;
        }
    }

    async fn read(&mut self) {
        let mut bytes = vec![0; 16 * 1024];
        let read = timeout(PATIENCE * 3, self.stream.read(&mut bytes)).await;
        match read.expect("in time") {
            Ok(0) | Err(_) => self.ended = true,
            Ok(count) => self.raw.extend_from_slice(&bytes[..count]),
        }
        while let Some((chunk, used)) = chunk(&self.raw) {
            if chunk.is_empty() {
                self.ended = true;
            }
            self.text
                .push_str(std::str::from_utf8(chunk).expect("text"));
            self.raw.drain(..used);
        }
    }
}

/// The first whole chunk, and how many bytes it takes.
fn chunk(raw: &[u8]) -> Option<(&[u8], usize)> {
    let line = raw.windows(2).position(|pair| pair == b"\r\n")?;
    let length = std::str::from_utf8(&raw[..line]).expect("a length");
    let length = usize::from_str_radix(length, 16).expect("a length");
    let begin = line + 2;
    let chunk = raw.get(begin..begin + length)?;
    let end = begin + length + 2;
    (raw.len() >= end).then_some((chunk, end))
}

fn parse(text: &str) -> Event {
    let mut event = Event::default();
    for line in text.lines() {
        match line.split_once(": ") {
            Some(("id", id)) => event.id = Some(id.parse().expect("a sequence")),
            Some(("event", name)) => event.name = Some(name.to_owned()),
            Some(("data", data)) => event.data = Some(serde_json::from_str(data).expect("JSON")),
            Some(("", _)) => {}
            _ => panic!("{line:?}"),
        }
    }
    event
}
