//! One question and its answer over a local socket, without a runtime: a hook is a whole
//! process for it.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use tidings_protocol::session_api::{
    Caller, HookAnswer, HookEvent, HookMoment, Introduction, Reply, Request,
};
use tidings_protocol::wire::MAX_FRAME_BYTES;
use tidings_protocol::wire::frame::{HEADER_BYTES, body_length, decode, encode};

use super::Silent;

/// A question that was answered.
pub(super) struct Asked {
    stream: UnixStream,
    /// What it was answered.
    pub(super) told: HookAnswer,
}

impl Asked {
    /// Says that the program has been handed the answer, and waits until that is noted: what
    /// the program does next confirms it.
    pub(super) fn shown(mut self) {
        let event = HookEvent {
            lease: self.told.turn.token,
            ..HookEvent::new(HookMoment::AnswerShown)
        };
        if let Ok(frame) = encode(&Request::HookEvent(event)) {
            // Where it does not arrive, the program is told once more.
            let _ = self
                .stream
                .write_all(&frame)
                .map(|()| read(&mut self.stream));
        }
    }
}

/// Says what happened in the caller's conversation.
pub(super) fn ask(
    socket: &Path,
    caller: &Caller,
    event: HookEvent,
    limit: Duration,
) -> Result<Asked, Silent> {
    let mut stream = begin(socket, caller, &Request::HookEvent(event), limit)?;
    match read(&mut stream)? {
        Reply::HookEvent(told) => Ok(Asked { stream, told }),
        Reply::Error(error) => Err(Silent::because(error)),
        _ => Err(Silent::because("the answer is to another question")),
    }
}

/// Asks, each read and write of it limited. A socket where nobody answers is silence without
/// a reason: most machines have none most of the time.
pub(super) fn begin(
    socket: &Path,
    caller: &Caller,
    request: &Request,
    limit: Duration,
) -> Result<UnixStream, Silent> {
    let mut stream = UnixStream::connect(socket).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => Silent::Nothing,
        _ => Silent::because(error),
    })?;
    stream
        .set_read_timeout(Some(limit))
        .and_then(|()| stream.set_write_timeout(Some(limit)))
        .map_err(Silent::because)?;
    let introduction = encode(&Introduction::Caller(caller.clone())).map_err(Silent::because)?;
    let request = encode(request).map_err(Silent::because)?;
    stream
        .write_all(&[introduction, request].concat())
        .map_err(Silent::because)?;
    Ok(stream)
}

fn read(stream: &mut UnixStream) -> Result<Reply, Silent> {
    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header).map_err(Silent::because)?;
    let length = body_length(header, MAX_FRAME_BYTES).map_err(Silent::because)?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).map_err(Silent::because)?;
    decode(&body).map_err(Silent::because)
}
