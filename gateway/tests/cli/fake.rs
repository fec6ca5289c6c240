//! A gateway's socket with nothing behind it but the answers a test gives it.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tidings_protocol::session_api::{Reply, Request};
use tidings_protocol::wire::frame::{HEADER_BYTES, decode, encode};

/// What a fake gateway does with a request.
pub(crate) enum Does {
    /// Sends these frames, then waits for the next request.
    Sends(Vec<Vec<u8>>),
    /// Sends these frames and closes the connection.
    SendsAndCloses(Vec<Vec<u8>>),
}

/// A gateway that answers as it was told to.
pub(crate) struct Fake {
    state_dir: TempDir,
    asked: Arc<Mutex<Vec<Request>>>,
}

impl Fake {
    /// Does this with every request, on every connection.
    pub(crate) fn that(does: impl Fn(&Request) -> Does + Send + 'static) -> Self {
        let state_dir = tempfile::tempdir().expect("scratch directory");
        let listener = UnixListener::bind(state_dir.path().join("gateway.sock")).expect("bind");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.expect("connection"), &does, &log);
            }
        });
        Self { state_dir, asked }
    }

    /// Answers every request with this reply.
    pub(crate) fn answering(reply: Reply) -> Self {
        Self::that(move |_| Does::Sends(reply.clone().into_frames().expect("frames")))
    }

    /// Answers the first request with these replies, one after the other, and goes.
    pub(crate) fn streaming(replies: Vec<Reply>) -> Self {
        Self::that(move |_| Does::SendsAndCloses(replies.iter().map(frame).collect()))
    }

    /// The state directory whose socket this is.
    pub(crate) fn state_dir(&self) -> &Path {
        self.state_dir.path()
    }

    /// What was asked since the last time.
    pub(crate) fn asked(&self) -> Vec<Request> {
        std::mem::take(&mut *self.asked.lock().expect("log"))
    }
}

/// The frame of one reply.
pub(crate) fn frame(reply: &Reply) -> Vec<u8> {
    encode(reply).expect("frame")
}

fn serve(mut stream: UnixStream, does: &impl Fn(&Request) -> Does, log: &Mutex<Vec<Request>>) {
    while let Some(request) = read_request(&mut stream) {
        log.lock().expect("log").push(request.clone());
        let (frames, goes_on) = match does(&request) {
            Does::Sends(frames) => (frames, true),
            Does::SendsAndCloses(frames) => (frames, false),
        };
        for frame in frames {
            // The command may have gone, and then the connection ends by itself.
            let _ = stream.write_all(&frame);
        }
        if !goes_on {
            return;
        }
    }
}

fn read_request(stream: &mut UnixStream) -> Option<Request> {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).ok()?;
    let mut body = vec![0; u32::from_be_bytes(header) as usize];
    stream.read_exact(&mut body).ok()?;
    Some(decode(&body).expect("request"))
}
