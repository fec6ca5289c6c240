//! A Unix socket in a state directory, for the commands, hooks and MCP servers of this
//! machine. Gateway and node agent serve the same requests over the same framing.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tidings_protocol::session_api::{ApiError, Call, ErrorType, Introduction, Reply, Said};
use tidings_protocol::wire::frame::encode;
use tidings_protocol::wire::{FrameError, MAX_FRAME_BYTES};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::waiting::Waiting;
use crate::framed::{self, StreamError};

/// The gateway's socket in its state directory.
pub const GATEWAY_SOCKET: &str = "gateway.sock";
/// A node agent's socket in its state directory.
pub const NODE_SOCKET: &str = "node.sock";
/// The longest path that a Unix socket can be bound to, in bytes (Linux; macOS has 104).
pub const MAX_SOCKET_PATH_BYTES: usize = if cfg!(target_os = "macos") { 103 } else { 107 };
/// Connections served at once. For the next, one that waits for its next request makes room; if
/// all of them are busy or follow something, it is told to try later.
const MAX_CONNECTIONS: usize = 1_024;
/// How long the place of a connection that was told to go may take to become free.
const ROOM_PATIENCE: Duration = Duration::from_secs(5);
/// How long a connection may say nothing, or leave an answer unread, before it is closed.
const PATIENCE: Duration = Duration::from_mins(10);

/// Why the socket cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// The state directory's path is too long for a socket in it.
    #[error(
        "the socket path {path} has {} bytes; a Unix socket allows {MAX_SOCKET_PATH_BYTES}",
        .path.as_os_str().len()
    )]
    PathTooLong {
        /// The socket's path.
        path: PathBuf,
    },
    /// The socket cannot be made.
    #[error("cannot open the socket {path}: {source}")]
    Io {
        /// The socket's path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Who answers the requests of a socket.
pub trait Responder: Send + Sync + 'static {
    /// The reply to a call.
    fn answer(&self, call: Call) -> impl Future<Output = Reply> + Send;

    /// Replies to a call for a stream, one after the other, until the receiver is dropped.
    fn follow(&self, call: Call) -> mpsc::Receiver<Reply>;
}

/// Opens the socket. Whoever calls holds the lock of the state directory, so a socket that
/// stands there is left over from a dead process.
pub fn bind(path: PathBuf) -> Result<UnixListener, SocketError> {
    if path.as_os_str().len() > MAX_SOCKET_PATH_BYTES {
        return Err(SocketError::PathTooLong { path });
    }
    let open = || {
        match std::fs::symlink_metadata(&path) {
            Ok(there) if there.file_type().is_socket() => std::fs::remove_file(&path)?,
            Ok(_) | Err(_) => {}
        }
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    };
    open().map_err(|source| SocketError::Io {
        path: path.clone(),
        source,
    })
}

/// Serves the socket until `stopped`.
pub async fn serve<R: Responder>(
    listener: UnixListener,
    responder: Arc<R>,
    stopped: watch::Receiver<bool>,
) {
    serve_so_many(MAX_CONNECTIONS, listener, responder, stopped).await;
}

async fn serve_so_many<R: Responder>(
    most: usize,
    listener: UnixListener,
    responder: Arc<R>,
    mut stopped: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(most));
    let waiting = Arc::new(Waiting::default());
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection to the socket was not accepted");
                continue;
            }
        };
        let Some(place) = place(&places, &waiting).await else {
            turn_away(&stream);
            continue;
        };
        let (responder, waiting) = (responder.clone(), waiting.clone());
        connections.spawn(async move {
            if let Err(error) = serve_connection(stream, &*responder, &waiting).await {
                tracing::debug!(%error, "a connection to the socket ended");
            }
            drop(place);
        });
    }
}

/// A place, if need be of a connection that only waits.
async fn place(places: &Arc<Semaphore>, waiting: &Waiting) -> Option<OwnedSemaphorePermit> {
    if let Ok(place) = places.clone().try_acquire_owned() {
        return Some(place);
    }
    if !waiting.make_room() {
        return None;
    }
    let place = timeout(ROOM_PATIENCE, places.clone().acquire_owned()).await;
    place.ok()?.ok()
}

/// Says that there are too many, where that fits into the socket's buffer at once.
fn turn_away(stream: &UnixStream) {
    if let Ok(frame) = encode(&Reply::Error(too_many())) {
        let _ = stream.try_write(&frame);
    }
}

fn too_many() -> ApiError {
    ApiError::new(
        ErrorType::TryLater,
        format!("{MAX_CONNECTIONS} programs are connected already"),
    )
    .with_hint("end some of them: each follower and each MCP server holds a connection")
}

async fn serve_connection<R: Responder>(
    stream: UnixStream,
    responder: &R,
    waiting: &Waiting,
) -> Result<(), StreamError> {
    let own_uid = rustix::process::geteuid().as_raw();
    let peer_uid = stream.peer_cred()?.uid();
    let (mut receive, mut send) = stream.into_split();
    if peer_uid != own_uid && peer_uid != 0 {
        let error = ApiError::new(
            ErrorType::NotPermitted,
            format!("this socket belongs to user {own_uid}, not to user {peer_uid}"),
        );
        return framed::write(&mut send, &Reply::Error(error)).await;
    }
    let mut caller = None;
    loop {
        let mut wait = waiting.begin();
        let said = tokio::select! {
            said = timeout(PATIENCE, next_said(&mut receive)) => said,
            () = wait.is_over() => return Ok(()),
        };
        let has_place = wait.end();
        let reply = match said.unwrap_or(Ok(None)) {
            Ok(None) => return Ok(()),
            Ok(Some(_)) if !has_place => {
                return write_reply(&mut send, Reply::Error(too_many())).await;
            }
            Ok(Some(Said::Introduction(Introduction::Caller(who)))) => {
                caller = Some(who);
                continue;
            }
            Ok(Some(Said::Request(request))) => {
                let call = Call {
                    caller: caller.clone(),
                    request,
                };
                if call.request.is_stream() {
                    return follow(responder.follow(call), receive, send).await;
                }
                responder.answer(call).await
            }
            Err(StreamError::Frame(error @ FrameError::Unsupported { .. })) => {
                Reply::Error(ApiError::new(ErrorType::Unsupported, error.to_string()))
            }
            Err(StreamError::Frame(error)) => {
                let reply = ApiError::new(ErrorType::InvalidRequest, error.to_string());
                framed::write(&mut send, &Reply::Error(reply)).await?;
                return Err(error.into());
            }
            Err(error) => return Err(error),
        };
        write_reply(&mut send, reply).await?;
    }
}

async fn next_said(receive: &mut OwnedReadHalf) -> Result<Option<Said>, StreamError> {
    match framed::read_body(receive, MAX_FRAME_BYTES).await? {
        Some(body) => Ok(Some(Said::decode(&body)?)),
        None => Ok(None),
    }
}

async fn write_reply(send: &mut OwnedWriteHalf, reply: Reply) -> Result<(), StreamError> {
    for frame in reply.into_answer()? {
        timeout(PATIENCE, framed::write_encoded(send, &frame))
            .await
            .unwrap_or(Err(StreamError::Torn))?;
    }
    Ok(())
}

/// Hands out replies as they come, until either side ends.
async fn follow(
    mut replies: mpsc::Receiver<Reply>,
    mut receive: OwnedReadHalf,
    mut send: OwnedWriteHalf,
) -> Result<(), StreamError> {
    let gone = async {
        // Nothing more is asked on this connection: whatever comes is its end.
        let _ = tokio::io::AsyncReadExt::read(&mut receive, &mut [0; 1]).await;
    };
    tokio::pin!(gone);
    loop {
        let reply = tokio::select! {
            reply = replies.recv() => reply,
            () = &mut gone => return Ok(()),
        };
        match reply {
            Some(reply) => write_reply(&mut send, reply).await?,
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tidings_protocol::session_api::{Caller, Request};
    use tidings_protocol::{Catalog, ThreadId};

    use super::*;

    struct Echo;

    impl Responder for Echo {
        async fn answer(&self, call: Call) -> Reply {
            let who = call.caller.map(|caller| caller.thread_id.to_string());
            let message = format!("{}: {:?}", who.unwrap_or_default(), call.request);
            Reply::Error(ApiError::new(ErrorType::NotFound, message))
        }

        fn follow(&self, _call: Call) -> mpsc::Receiver<Reply> {
            let (send, receive) = mpsc::channel(1);
            tokio::spawn(async move {
                let hello = ApiError::new(ErrorType::NotFound, "followed");
                let _ = send.send(Reply::Error(hello)).await;
                send.closed().await;
            });
            receive
        }
    }

    struct Running {
        path: PathBuf,
        stop: watch::Sender<bool>,
        task: tokio::task::JoinHandle<()>,
        _scratch: tempfile::TempDir,
    }

    fn start() -> Running {
        start_with(MAX_CONNECTIONS)
    }

    fn start_with(most: usize) -> Running {
        let scratch = tempfile::tempdir().expect("scratch");
        let path = scratch.path().join(NODE_SOCKET);
        let listener = bind(path.clone()).expect("bind");
        let (stop, stopped) = watch::channel(false);
        Running {
            path,
            stop,
            task: tokio::spawn(serve_so_many(most, listener, Arc::new(Echo), stopped)),
            _scratch: scratch,
        }
    }

    async fn raw(path: &PathBuf, bytes: &[u8]) -> Option<Reply> {
        let mut stream = UnixStream::connect(path).await.expect("connect");
        tokio::io::AsyncWriteExt::write_all(&mut stream, bytes)
            .await
            .expect("write");
        framed::read(&mut stream, MAX_FRAME_BYTES)
            .await
            .expect("a frame or the end")
    }

    async fn echo(stream: &mut UnixStream, request: &Request) -> String {
        framed::write(stream, request).await.expect("write");
        let reply: Option<Reply> = framed::read(stream, MAX_FRAME_BYTES).await.expect("read");
        let Some(Reply::Error(error)) = reply else {
            panic!("no reply");
        };
        error.message
    }

    #[tokio::test]
    async fn requests_are_answered_in_turn_on_one_connection() {
        let running = start();
        let mut stream = UnixStream::connect(&running.path).await.expect("connect");
        for request in [Request::Status {}, Request::NodesList {}] {
            assert_eq!(echo(&mut stream, &request).await, format!(": {request:?}"));
        }
        running.stop.send_replace(true);
        running.task.await.expect("ends");
    }

    #[tokio::test]
    async fn who_introduces_itself_makes_the_requests_that_follow_until_the_next_one_does() {
        let running = start();
        let mut stream = UnixStream::connect(&running.path).await.expect("connect");
        let introduce = |thread: &str| {
            Introduction::Caller(Caller {
                catalog: Catalog::Claude,
                thread_id: ThreadId::parse(thread).expect("an id"),
            })
        };
        for (thread, requests) in [("one", 2), ("two", 1)] {
            framed::write(&mut stream, &introduce(thread))
                .await
                .expect("write");
            for _ in 0..requests {
                assert_eq!(
                    echo(&mut stream, &Request::Status {}).await,
                    format!("{thread}: Status")
                );
            }
        }
    }

    #[tokio::test]
    async fn what_is_no_request_gets_a_named_error() {
        let running = start();
        for (bytes, expected) in [
            (&b"\0\0\0\x06\x81\xa3abc\xc0"[..], ErrorType::Unsupported),
            (b"\0\0\0\x01\xc1", ErrorType::InvalidRequest),
            (b"GET / HTTP/1.1\r\n\r\n", ErrorType::InvalidRequest),
        ] {
            let Some(Reply::Error(error)) = raw(&running.path, bytes).await else {
                panic!("no error for {bytes:?}");
            };
            assert_eq!(error.error_type, expected, "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn connections_that_only_wait_keep_nobody_out() {
        let running = start_with(2);
        let mut silent = UnixStream::connect(&running.path).await.expect("connect");
        let mut between = UnixStream::connect(&running.path).await.expect("connect");
        echo(&mut between, &Request::Status {}).await;
        // Both places are taken. Who has waited longest goes.
        let mut next = UnixStream::connect(&running.path).await.expect("connect");
        assert_eq!(echo(&mut next, &Request::Status {}).await, ": Status");
        let end: Option<Reply> = framed::read(&mut silent, 1_024).await.expect("the end");
        assert_eq!(end, None);
        assert_eq!(echo(&mut between, &Request::Status {}).await, ": Status");
    }

    #[tokio::test]
    async fn whoever_follows_something_keeps_his_place() {
        let running = start_with(1);
        let mut follower = UnixStream::connect(&running.path).await.expect("connect");
        let follow = Request::WakesFollow {};
        assert_eq!(echo(&mut follower, &follow).await, "followed");
        let Some(Reply::Error(error)) = raw(&running.path, b"").await else {
            panic!("no error");
        };
        assert_eq!(error.error_type, ErrorType::TryLater);
    }

    #[tokio::test]
    async fn a_path_too_long_for_a_socket_is_a_named_error() {
        let scratch = tempfile::tempdir().expect("scratch");
        let error = bind(scratch.path().join("d".repeat(120))).expect_err("too long");
        assert!(matches!(error, SocketError::PathTooLong { .. }), "{error}");
    }

    #[tokio::test]
    async fn a_socket_left_over_is_replaced_and_a_file_is_not() {
        let scratch = tempfile::tempdir().expect("scratch");
        let path = scratch.path().join("s");
        drop(bind(path.clone()).expect("first"));
        drop(bind(path.clone()).expect("replaces what is left over"));
        std::fs::remove_file(&path).expect("remove");
        std::fs::write(&path, "mine").expect("a file");
        assert!(bind(path).is_err());
    }
}
