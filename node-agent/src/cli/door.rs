//! The caller's side of a local socket: one request at a time, each with its answer.

use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidings_protocol::session_api::{ApiError, Caller, ErrorType, Introduction, Reply, Request};
use tidings_protocol::wire::{FrameError, MAX_FRAME_BYTES};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::state_dir::check_socket_path;
use crate::framed::{self, StreamError};
use crate::local::replies::{ReplyError, whole_reply};

/// How long an answer may take. The longest asks every node for its threads, and each of
/// those requests has a shorter deadline of its own.
pub const ANSWER_DEADLINE: Duration = Duration::from_mins(1);
/// How many parts one answer may have: with frames of 256 KiB, 256 MiB. No list that the
/// interface answers comes near it.
const MAX_PARTS: usize = 1_024;

/// A process that runs already, and where it answers.
#[derive(Debug, Clone)]
pub struct Door {
    /// The socket.
    pub socket: PathBuf,
    /// What answers there, as in `the gateway is not running`.
    pub service: &'static str,
    /// The command that starts it.
    pub start: String,
    /// How long an answer may take.
    pub deadline: Duration,
}

/// An open connection through a [`Door`].
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    door: Door,
}

impl Door {
    /// Connects.
    pub async fn connect(self) -> Result<Connection, ApiError> {
        check_socket_path(&self.socket)?;
        match UnixStream::connect(&self.socket).await {
            Ok(stream) => Ok(Connection { stream, door: self }),
            Err(error) => Err(self.not_connected(&error)),
        }
    }

    fn not_connected(&self, error: &io::Error) -> ApiError {
        let socket = self.socket.display();
        let service = self.service;
        if is_other_file(&self.socket) {
            return ApiError::new(
                ErrorType::Configuration,
                format!("{socket} is not a socket, so no {service} can answer there"),
            )
            .with_hint("move that file away, or choose another --state-dir");
        }
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => ApiError::new(
                ErrorType::Unavailable,
                format!("the {service} is not running: nothing answers at {socket}"),
            )
            .with_hint(&self.start),
            ErrorKind::PermissionDenied => ApiError::new(
                ErrorType::NotPermitted,
                format!("this user may not use the {service} at {socket}"),
            )
            .with_hint(format!(
                "run the command as the user who runs the {service}"
            )),
            _ => ApiError::new(
                ErrorType::Unavailable,
                format!("the {service} cannot be reached at {socket}: {error}"),
            ),
        }
    }
}

impl Connection {
    /// Says who makes the requests that follow.
    pub async fn introduce(&mut self, caller: &Caller) -> Result<(), ApiError> {
        let introduction = Introduction::Caller(caller.clone());
        framed::write(&mut self.stream, &introduction)
            .await
            .map_err(|error| self.broken(&error))
    }

    /// Sends a request and waits for its whole answer; an error as answer is an error.
    pub async fn ask(&mut self, request: &Request) -> Result<Reply, ApiError> {
        let deadline = self.door.deadline;
        timeout(deadline, async {
            self.send(request).await?;
            self.whole_reply().await
        })
        .await
        .map_err(|_| self.late())?
    }

    /// Sends a request that is answered again and again: see [`Connection::next`].
    pub async fn send(&mut self, request: &Request) -> Result<(), ApiError> {
        framed::write(&mut self.stream, request)
            .await
            .map_err(|error| self.broken(&error))
    }

    /// The next answer of a stream, `None` once the other side has gone.
    pub async fn next(&mut self) -> Result<Option<Reply>, ApiError> {
        let reply = match framed::read(&mut self.stream, MAX_FRAME_BYTES).await {
            Ok(reply) => reply,
            Err(StreamError::Io(_) | StreamError::Torn) => return Ok(None),
            Err(error) => return Err(self.broken(&error)),
        };
        match reply {
            Some(Reply::Error(error)) => Err(error),
            Some(Reply::Part(part)) => Ok(Some(*part)),
            reply => Ok(reply),
        }
    }

    /// Waits for a reply and puts its parts together.
    async fn whole_reply(&mut self) -> Result<Reply, ApiError> {
        match whole_reply(&mut self.stream, MAX_PARTS).await {
            Ok(Reply::Error(error)) => Err(error),
            Ok(reply) => Ok(reply),
            Err(ReplyError::Stream(error)) => Err(self.broken(&error)),
            Err(ReplyError::Ended) => Err(self.gone()),
            Err(error @ ReplyError::TooManyParts) => Err(self.strange(&error.to_string())),
        }
    }

    /// The error for an answer to something that was not asked.
    pub fn unexpected(&self) -> ApiError {
        self.strange("the answer is to another question")
    }

    fn strange(&self, what: &str) -> ApiError {
        ApiError::new(
            ErrorType::InvalidData,
            format!(
                "what answers at {} does not speak as a Tidings {} does: {what}",
                self.door.socket.display(),
                self.door.service
            ),
        )
        .with_hint(format!(
            "another program may hold that socket, or the {} is of another version",
            self.door.service
        ))
    }

    fn broken(&self, error: &StreamError) -> ApiError {
        match error {
            StreamError::Frame(FrameError::Unsupported { name }) => ApiError::new(
                ErrorType::Unsupported,
                format!(
                    "the {} answers with {name}, which this version does not know",
                    self.door.service
                ),
            )
            .with_hint("use the command of the same version"),
            StreamError::Frame(error) => self.strange(&error.to_string()),
            StreamError::Torn | StreamError::Io(_) => self.gone(),
        }
    }

    fn gone(&self) -> ApiError {
        ApiError::new(
            ErrorType::Unavailable,
            format!(
                "the {} at {} closed the connection before it had answered",
                self.door.service,
                self.door.socket.display()
            ),
        )
        .with_hint(format!("if it has stopped: {}", self.door.start))
    }

    fn late(&self) -> ApiError {
        ApiError::new(
            ErrorType::Unavailable,
            format!(
                "the {} at {} did not answer within {:?}",
                self.door.service,
                self.door.socket.display(),
                self.door.deadline
            ),
        )
        .with_hint("its log says what it is doing; it may still do what it was asked")
    }
}

/// True for a path that holds something, and no socket.
fn is_other_file(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| !metadata.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use tidings_protocol::session_api::Nodes;
    use tidings_protocol::wire::frame::encode;
    use tokio::net::UnixListener;

    use super::*;

    /// A door whose other side accepts one connection and sends this frame so many times.
    fn door(frame: Vec<u8>, times: usize) -> (Door, TempDir) {
        let dir = tempfile::tempdir().expect("scratch directory");
        let socket = dir.path().join("s");
        let listener = UnixListener::bind(&socket).expect("bind");
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("accept");
            for _ in 0..times {
                if framed::write_encoded(&mut stream, &frame).await.is_err() {
                    return;
                }
            }
            std::future::pending::<()>().await;
        });
        let door = Door {
            socket,
            service: "gateway",
            start: "start it".to_owned(),
            deadline: Duration::from_millis(50),
        };
        (door, dir)
    }

    async fn error(door: Door) -> ApiError {
        let mut connection = door.connect().await.expect("connect");
        let reply = connection.ask(&Request::NodesList {}).await;
        reply.expect_err("no answer")
    }

    fn part() -> Vec<u8> {
        let part = Reply::NodesList(Nodes {
            nodes: vec![],
            invitations: vec![],
        });
        encode(&Reply::Part(Box::new(part))).expect("frame")
    }

    #[tokio::test]
    async fn an_answer_that_does_not_come_is_waited_for_so_long_and_no_longer() {
        for (door, dir) in [door(vec![], 0), door(part(), 3)] {
            let error = error(door).await;
            assert_eq!(error.error_type, ErrorType::Unavailable);
            assert!(error.message.contains("did not answer within 50ms"));
            drop(dir);
        }
    }

    #[tokio::test]
    async fn an_answer_without_an_end_is_given_up() {
        let (mut door, _dir) = door(part(), usize::MAX);
        door.deadline = ANSWER_DEADLINE;
        let error = error(door).await;
        assert_eq!(error.error_type, ErrorType::InvalidData);
        assert!(error.message.contains("too many parts"), "{error}");
    }

    #[test]
    fn each_reason_for_no_connection_has_its_own_error() {
        let door = Door {
            socket: PathBuf::from("/nonexistent/s"),
            service: "gateway",
            start: "start it".to_owned(),
            deadline: ANSWER_DEADLINE,
        };
        for (kind, error_type) in [
            (ErrorKind::NotFound, ErrorType::Unavailable),
            (ErrorKind::ConnectionRefused, ErrorType::Unavailable),
            (ErrorKind::PermissionDenied, ErrorType::NotPermitted),
            (ErrorKind::WouldBlock, ErrorType::Unavailable),
        ] {
            let error = door.not_connected(&kind.into());
            assert_eq!(error.error_type, error_type, "{kind}");
            assert!(error.message.contains("/nonexistent/s"), "{error}");
        }
    }
}
