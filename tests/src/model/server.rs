//! The server: one thread a connection, one request a connection.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Play, Say, spoken};
use crate::clock::DEADLINE;

/// What is sent raw comes in pieces of so many bytes.
const RAW_PIECE: usize = 16 * 1024;
/// How long it is waited between two pieces of what has no end.
const BETWEEN_PIECES: Duration = Duration::from_millis(10);

/// What the model was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The path.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
}

impl Asked {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(given, _)| given == name);
        found.map(|(_, value)| value.as_str())
    }

    /// True where it was offered tools: a turn, and no summary.
    pub fn has_tools(&self) -> bool {
        self.body["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty())
    }

    /// True where a tool of this name was offered.
    pub fn offers(&self, tool: &str) -> bool {
        let tools = self.body["tools"].as_array().cloned().unwrap_or_default();
        tools
            .iter()
            .any(|offered| offered["name"] == tool || offered["function"]["name"] == tool)
    }

    /// The conversation as text, one message a line: for looking what is in it.
    pub fn conversation(&self) -> String {
        let messages = self.body["messages"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
        lines.join("\n")
    }

    /// The last message as text.
    pub fn last(&self) -> String {
        let messages = self.body["messages"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        messages.last().map(Value::to_string).unwrap_or_default()
    }
}

type Answering = Box<dyn FnMut(&Asked) -> Play + Send>;

/// A scripted model; dropping it ends it.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    stage: Mutex<Stage>,
    changed: Condvar,
}

#[derive(Default)]
struct Stage {
    script: VecDeque<Play>,
    otherwise: Option<Answering>,
    asked: Vec<Asked>,
    left: usize,
    is_over: bool,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage")
            .field("script", &self.script.len())
            .field("asked", &self.asked.len())
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl ModelServer {
    /// A model without a script: it refuses whatever it is asked.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.stage().is_over {
                    return;
                }
                let (Ok(stream), shared) = (stream, Arc::clone(&serving)) else {
                    return;
                };
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, shared }
    }

    /// A model that decides at each request.
    pub fn answering(answer: impl FnMut(&Asked) -> Play + Send + 'static) -> Self {
        let server = Self::start();
        server.shared.stage().otherwise = Some(Box::new(answer));
        server
    }

    /// A model that plays this, in order.
    pub fn playing(script: impl IntoIterator<Item = Play>) -> Self {
        let server = Self::start();
        server.shared.stage().script = script.into_iter().collect();
        server
    }

    /// Has it play this next, behind what is in its script.
    pub fn then(&self, play: impl Into<Play>) {
        self.shared.stage().script.push_back(play.into());
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its base address, with its `/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// A configuration by which a gateway runs turns against it: a window of so many tokens,
    /// and what else is to stand there.
    pub fn config(&self, kind: &str, window: u64, more: &str) -> String {
        format!(
            "[models.scripted]\nkind = \"{kind}\"\nbaseUrl = \"{}\"\nmodel = \"m\"\n\
             contextWindow = {window}\n\n[agents.defaults]\nmodel = \"scripted\"\n\n{more}",
            self.base_url()
        )
    }

    /// What it was asked, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.stage().asked.clone()
    }

    /// Waits until it was asked so often.
    #[track_caller]
    pub fn wait_for(&self, requests: usize) -> Vec<Asked> {
        let stage = self.wait_until(|stage| stage.asked.len() >= requests);
        stage.asked.clone()
    }

    /// Waits until whoever asked has left it in the middle of so many answers.
    #[track_caller]
    pub fn wait_until_left(&self, answers: usize) {
        drop(self.wait_until(|stage| stage.left >= answers));
    }

    #[track_caller]
    fn wait_until(&self, is_so: impl Fn(&Stage) -> bool) -> MutexGuard<'_, Stage> {
        let began = Instant::now();
        let mut stage = self.shared.stage();
        while !is_so(&stage) {
            let left = DEADLINE.saturating_sub(began.elapsed());
            assert!(!left.is_zero(), "it has not come to that: {stage:?}");
            let waited = self.shared.changed.wait_timeout(stage, left);
            stage = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        stage
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.stage().is_over = true;
        // Its thread waits for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn play(&self, asked: &Asked) -> Play {
        let mut stage = self.stage();
        stage.asked.push(asked.clone());
        self.changed.notify_all();
        if let Some(play) = stage.script.pop_front() {
            return play;
        }
        match &mut stage.otherwise {
            Some(answer) => answer(asked),
            None => Play::refuse(404, "the_script_is_over"),
        }
    }
}

fn serve(stream: TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(stream);
    let Some(asked) = read_request(&mut reader) else {
        return;
    };
    let is_anthropic = asked.path.ends_with("/messages");
    let play = shared.play(&asked);
    let mut stream = reader.into_inner();
    // Whoever asked may have gone: then nobody misses anything.
    if act(&mut stream, is_anthropic, play).is_err() {
        shared.stage().left += 1;
        shared.changed.notify_all();
    }
    let _ = stream.shutdown(Shutdown::Both);
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?;
    let mut body = vec![0; length.1.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Asked {
        path,
        headers,
        body: serde_json::from_slice(&body).ok()?,
    })
}

fn act(stream: &mut TcpStream, is_anthropic: bool, play: Play) -> std::io::Result<()> {
    let events = |say: &Say| {
        if is_anthropic {
            spoken::anthropic(say)
        } else {
            spoken::openai(say)
        }
    };
    match play {
        Play::Say(say) => answer(stream, &events(&say)).and_then(|()| end(stream)),
        Play::Cut(say, after) => answer(stream, &events(&say)[..after]),
        Play::Stall(say, after) => {
            answer(stream, &events(&say)[..after])?;
            wait_until_gone(stream, DEADLINE)
        }
        Play::Silence => wait_until_gone(stream, DEADLINE),
        Play::Late(say, time) => {
            wait_until_gone(stream, time)?;
            answer(stream, &events(&say)).and_then(|()| end(stream))
        }
        Play::Raw(bytes) => {
            begin(stream)?;
            for piece in bytes.chunks(RAW_PIECE) {
                write!(stream, "{:x}\r\n", piece.len())?;
                stream.write_all(piece)?;
                stream.write_all(b"\r\n")?;
            }
            end(stream)
        }
        Play::Endless(piece) => {
            begin(stream)?;
            loop {
                write!(stream, "{:x}\r\n{piece}\r\n", piece.len())?;
                wait_until_gone(stream, BETWEEN_PIECES)?;
            }
        }
        Play::Break(say) => {
            let mut events = events(&say);
            events.truncate(2);
            events.push(spoken::broken(is_anthropic));
            answer(stream, &events).and_then(|()| end(stream))
        }
        Play::Refuse {
            status,
            body,
            retry_after,
        } => {
            let retry_after = retry_after.map(|seconds| format!("retry-after: {seconds}\r\n"));
            let head = format!(
                "HTTP/1.1 {status} No\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\n{}\r\n",
                body.len(),
                retry_after.unwrap_or_default(),
            );
            stream.write_all(head.as_bytes())?;
            stream.write_all(body.as_bytes())
        }
    }
}

fn begin(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
          transfer-encoding: chunked\r\n\r\n",
    )
}

fn answer(stream: &mut TcpStream, events: &[String]) -> std::io::Result<()> {
    begin(stream)?;
    for event in events {
        write!(stream, "{:x}\r\n{event}\r\n", event.len())?;
        stream.flush()?;
    }
    Ok(())
}

fn end(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"0\r\n\r\n")
}

/// Waits until the other side has closed the connection, or this time is over.
fn wait_until_gone(stream: &mut TcpStream, time: Duration) -> std::io::Result<()> {
    stream.set_read_timeout(Some(time.max(Duration::from_millis(1))))?;
    match stream.read(&mut [0]) {
        Ok(0) => Err(std::io::ErrorKind::ConnectionAborted.into()),
        Err(error) if is_late(&error) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Ok(()),
    }
}

/// True where nothing came in time.
fn is_late(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut)
}
