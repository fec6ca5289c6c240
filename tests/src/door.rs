//! A blocking client of a gateway's socket, for whoever asks too often for a process each.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use tidings_protocol::session_api::{Reply, Request};
use tidings_protocol::wire::MAX_FRAME_BYTES;
use tidings_protocol::wire::frame::{HEADER_BYTES, body_length, decode, encode};

/// An open connection to a gateway's socket.
#[derive(Debug)]
pub struct DoorClient(UnixStream);

impl DoorClient {
    /// Connects to the gateway whose state directory this is, if one runs.
    pub fn try_connect(state_dir: &Path) -> Option<Self> {
        UnixStream::connect(state_dir.join("gateway.sock"))
            .ok()
            .map(Self)
    }

    /// Connects to the gateway whose state directory this is.
    #[track_caller]
    pub fn connect(state_dir: &Path) -> Self {
        Self(UnixStream::connect(state_dir.join("gateway.sock")).expect("the gateway's socket"))
    }

    /// Asks, and waits for the answer; `None` when the gateway has gone.
    pub fn try_ask(&mut self, request: &Request) -> Option<Reply> {
        self.try_send(request)?;
        self.next()
    }

    /// Sends a request that is answered again and again: see [`DoorClient::next`].
    #[track_caller]
    pub fn send(&mut self, request: &Request) {
        self.try_send(request).expect("the gateway");
    }

    /// The next whole answer; `None` when the gateway has gone.
    #[expect(
        clippy::should_implement_trait,
        reason = "there may be more after a None"
    )]
    pub fn next(&mut self) -> Option<Reply> {
        let mut whole: Option<Reply> = None;
        loop {
            let (reply, more) = match self.read()? {
                Reply::Part(part) => (*part, true),
                last => (last, false),
            };
            let merged = match whole.take() {
                Some(so_far) => so_far.merge(reply),
                None => reply,
            };
            if !more {
                return Some(merged);
            }
            whole = Some(merged);
        }
    }

    /// Asks a gateway that must answer, and with no error.
    #[track_caller]
    pub fn ask(&mut self, request: &Request) -> Reply {
        match self.try_ask(request).expect("an answer") {
            Reply::Error(error) => panic!("{error:?}"),
            reply => reply,
        }
    }

    fn try_send(&mut self, request: &Request) -> Option<()> {
        self.0.write_all(&encode(request).expect("a request")).ok()
    }

    fn read(&mut self) -> Option<Reply> {
        let mut header = [0; HEADER_BYTES];
        self.0.read_exact(&mut header).ok()?;
        let length = body_length(header, MAX_FRAME_BYTES).expect("a frame");
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).ok()?;
        Some(decode(&body).expect("a reply"))
    }
}
