//! A reply as it comes over a stream: in one frame, or put together from its parts.

use tidings_protocol::session_api::Reply;
use tidings_protocol::wire::MAX_FRAME_BYTES;
use tokio::io::AsyncRead;

use crate::framed::{self, StreamError};

/// Why there is no whole reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// The stream failed, or what it carries is no reply.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The stream ended before the reply did: the other side has gone.
    #[error("the stream ended before the answer")]
    Ended,
    /// More parts than any reply has.
    #[error("the answer has too many parts")]
    TooManyParts,
}

/// Reads one whole reply of at most `max_parts` parts.
pub async fn whole_reply<R>(stream: &mut R, max_parts: usize) -> Result<Reply, ReplyError>
where
    R: AsyncRead + Unpin,
{
    let mut whole: Option<Reply> = None;
    for _ in 0..max_parts {
        let frame = framed::read(stream, MAX_FRAME_BYTES)
            .await?
            .ok_or(ReplyError::Ended)?;
        let (reply, more) = match frame {
            error @ Reply::Error(_) => return Ok(error),
            Reply::Part(part) => (*part, true),
            last => (last, false),
        };
        let merged = match whole.take() {
            Some(so_far) => so_far.merge(reply),
            None => reply,
        };
        if !more {
            return Ok(merged);
        }
        whole = Some(merged);
    }
    Err(ReplyError::TooManyParts)
}
