//! Session requests that programs on a node's machine make, relayed over its connection.

use quinn::{RecvStream, SendStream, VarInt};
use tidings_node::connection::REQUEST_DEADLINE;
use tidings_node::framed::{self, StreamError};
use tidings_protocol::Host;
use tidings_protocol::session_api::{ApiError, Call, Caller, ErrorType, Reply, Request};
use tidings_protocol::wire::{FrameError, MAX_FRAME_BYTES};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Who answers what is relayed.
pub trait SessionInterface: Send + Sync + 'static {
    /// The replies to a call from a program on `host`: one, or for a stream one after the
    /// other until the receiver is dropped.
    fn replies(&self, host: Host, call: Call) -> mpsc::Receiver<Reply>;
}

/// Reads the request that follows `relay` on a stream, and writes its replies until they
/// end or the node wants no more of them.
pub(super) async fn serve_relay(
    sessions: &dyn SessionInterface,
    host: Host,
    caller: Option<Caller>,
    (mut send, mut receive): (SendStream, RecvStream),
) -> Result<(), StreamError> {
    let request = match framed::read::<Request, _>(&mut receive, MAX_FRAME_BYTES).await {
        Ok(Some(request)) => request,
        // Whoever asked gave up before it had asked.
        Ok(None) | Err(StreamError::Torn | StreamError::Io(_)) => return Ok(()),
        Err(StreamError::Frame(error @ FrameError::Unsupported { .. })) => {
            let unknown = ApiError::new(ErrorType::Unsupported, error.to_string())
                .with_hint("update the gateway");
            return write(&mut send, Reply::Error(unknown)).await;
        }
        Err(error) => return Err(error),
    };
    let mut replies = sessions.replies(host, Call { caller, request });
    loop {
        let reply = tokio::select! {
            reply = replies.recv() => reply,
            // Whoever asked has gone.
            _ = send.stopped() => return Ok(()),
        };
        let Some(reply) = reply else {
            let _ = send.finish();
            return Ok(());
        };
        write(&mut send, reply).await?;
    }
}

async fn write(send: &mut SendStream, reply: Reply) -> Result<(), StreamError> {
    for frame in reply.into_answer()? {
        match timeout(REQUEST_DEADLINE, framed::write_encoded(send, &frame)).await {
            // Whoever reads no more, or too slowly, ends this stream and not the connection.
            Err(_) | Ok(Err(StreamError::Io(_))) => {
                let _ = send.reset(VarInt::from_u32(0));
                return Ok(());
            }
            Ok(written) => written?,
        }
    }
    Ok(())
}
