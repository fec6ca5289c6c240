//! The wakes of one conversation, as they come: read a piece at a time, so that whoever reads
//! looks after other things between.

use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use tidings_protocol::session_api::{ApiError, Caller, Reply, Request};
use tidings_protocol::wire::MAX_FRAME_BYTES;
use tidings_protocol::wire::frame::{HEADER_BYTES, body_length, decode};

use super::{Silent, ask};

/// A stream of wakes.
#[derive(Debug)]
pub(super) struct Wakes {
    stream: UnixStream,
    unread: Vec<u8>,
}

/// What a stream of wakes has to say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Nothing within the time that one look takes.
    Nothing,
    /// A notice is there to be taken.
    News,
    /// Why it ends.
    Error(ApiError),
}

impl Wakes {
    /// Asks for them; `look` is how long one look takes.
    pub(super) fn of(socket: &Path, caller: &Caller, look: Duration) -> Result<Self, Silent> {
        let stream = ask::begin(socket, caller, &Request::WakesFollow {}, look)?;
        Ok(Self {
            stream,
            unread: Vec::new(),
        })
    }

    /// What comes next. A stream that has ended is silence without a reason.
    pub(super) fn next(&mut self) -> Result<Said, Silent> {
        loop {
            if let Some(reply) = self.whole()? {
                match said(reply)? {
                    Said::Nothing => continue,
                    said => return Ok(said),
                }
            }
            let mut piece = [0; 4_096];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(Silent::Nothing),
                Ok(read) => self.unread.extend_from_slice(&piece[..read]),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Ok(Said::Nothing),
                    ErrorKind::Interrupted => {}
                    _ => return Err(Silent::Nothing),
                },
            }
        }
    }

    /// The first whole answer among what was read.
    fn whole(&mut self) -> Result<Option<Reply>, Silent> {
        let Some(header) = self.unread.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = body_length(*header, MAX_FRAME_BYTES).map_err(Silent::because)?;
        let end = HEADER_BYTES + length;
        let Some(body) = self.unread.get(HEADER_BYTES..end) else {
            return Ok(None);
        };
        let reply = decode(body).map_err(Silent::because)?;
        self.unread.drain(..end);
        Ok(Some(reply))
    }
}

/// What an answer says. The first has no wake in it where nothing is available.
fn said(reply: Reply) -> Result<Said, Silent> {
    match reply {
        Reply::Part(part) => said(*part),
        Reply::Wakes(wakes) if wakes.wakes.is_empty() => Ok(Said::Nothing),
        Reply::Wakes(_) => Ok(Said::News),
        Reply::Error(error) => Ok(Said::Error(error)),
        _ => Err(Silent::because("the answer is to another question")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tidings_protocol::SessionKey;
    use tidings_protocol::session_api::{ErrorType, Wake};
    use tidings_protocol::wire::frame::encode;

    use super::*;

    #[test]
    fn answers_are_read_in_whatever_pieces_they_come() {
        let (mut gateway, stream) = UnixStream::pair().expect("a pair");
        stream
            .set_read_timeout(Some(Duration::from_millis(1)))
            .expect("a limit");
        let mut wakes = Wakes {
            stream,
            unread: Vec::new(),
        };
        let key = SessionKey::parse("agent:main:a").expect("a key");
        let news = Wake {
            watcher: key.clone(),
            target: key,
        };
        let page = |wakes| {
            let wakes = tidings_protocol::session_api::Wakes { wakes };
            encode(&Reply::Wakes(wakes)).expect("a frame")
        };
        let refused = ApiError::new(ErrorType::NotFound, "nobody");
        let frames = [
            page(vec![]),
            page(vec![news]),
            encode(&Reply::Error(refused.clone())).expect("a frame"),
        ]
        .concat();
        let (first, rest) = frames.split_at(frames.len() / 2);
        gateway.write_all(&first[..3]).expect("sent");
        assert_eq!(wakes.next().expect("it stands"), Said::Nothing);
        gateway.write_all(&first[3..]).expect("sent");
        gateway.write_all(rest).expect("sent");
        assert_eq!(wakes.next().expect("it stands"), Said::News);
        assert_eq!(wakes.next().expect("it stands"), Said::Error(refused));
        assert_eq!(wakes.next().expect("it stands"), Said::Nothing);
        drop(gateway);
        assert!(matches!(wakes.next(), Err(Silent::Nothing)));
    }
}
