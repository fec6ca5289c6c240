//! Frames over anything that reads and writes bytes: QUIC streams and local sockets.

use tidings_protocol::wire::FrameError;
use tidings_protocol::wire::frame::{FrameMessage, HEADER_BYTES, body_length, decode, encode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Why a frame could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The frame is no good: the other side's fault, and not to be tried again.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The stream ended inside a frame.
    #[error("the stream ended inside a frame")]
    Torn,
    /// The stream failed: trying again on a new one may help.
    #[error("the stream failed: {0}")]
    Io(#[from] std::io::Error),
}

/// Writes one frame.
pub async fn write<M, W>(stream: &mut W, message: &M) -> Result<(), StreamError>
where
    M: FrameMessage,
    W: AsyncWrite + Unpin,
{
    write_encoded(stream, &encode(message)?).await
}

/// Writes one frame that is encoded already.
pub async fn write_encoded<W>(stream: &mut W, frame: &[u8]) -> Result<(), StreamError>
where
    W: AsyncWrite + Unpin,
{
    stream.write_all(frame).await?;
    stream.flush().await?;
    Ok(())
}

/// Reads one frame of at most `limit` bytes; `None` when the stream ended before it.
pub async fn read<M, R>(stream: &mut R, limit: usize) -> Result<Option<M>, StreamError>
where
    M: FrameMessage,
    R: AsyncRead + Unpin,
{
    match read_body(stream, limit).await? {
        Some(body) => Ok(Some(decode(&body)?)),
        None => Ok(None),
    }
}

/// Reads the body of one frame of at most `limit` bytes; `None` when the stream ended before
/// it.
pub async fn read_body<R>(stream: &mut R, limit: usize) -> Result<Option<Vec<u8>>, StreamError>
where
    R: AsyncRead + Unpin,
{
    let mut header = [0; HEADER_BYTES];
    let mut filled = 0;
    while filled < HEADER_BYTES {
        match stream.read(&mut header[filled..]).await? {
            0 if filled == 0 => return Ok(None),
            0 => return Err(StreamError::Torn),
            n => filled += n,
        }
    }
    // The body grows as bytes arrive: a header alone costs nobody memory.
    let length = body_length(header, limit)?;
    let mut body = Vec::with_capacity(length.min(8 * 1024));
    let read = (&mut *stream)
        .take(length as u64)
        .read_to_end(&mut body)
        .await?;
    if read < length {
        return Err(StreamError::Torn);
    }
    Ok(Some(body))
}

#[cfg(test)]
mod tests {
    use tidings_protocol::wire::{MAX_FRAME_BYTES, Message};

    use super::*;

    fn message() -> Message {
        Message::LinksEnd { count: 3 }
    }

    async fn read_bytes(bytes: &[u8]) -> Result<Option<Message>, StreamError> {
        read(&mut &*bytes, MAX_FRAME_BYTES).await
    }

    #[tokio::test]
    async fn frames_come_out_as_they_went_in_and_the_end_is_none() {
        let mut bytes = Vec::new();
        write(&mut bytes, &message()).await.expect("write");
        write(&mut bytes, &message()).await.expect("write");
        let mut stream = &*bytes;
        for _ in 0..2 {
            let read: Option<Message> = read(&mut stream, 100).await.expect("read");
            assert_eq!(read, Some(message()));
        }
        assert!(
            read::<Message, _>(&mut stream, 100)
                .await
                .expect("read")
                .is_none()
        );
    }

    #[tokio::test]
    async fn a_bad_frame_is_a_named_error() {
        let mut whole = Vec::new();
        write(&mut whole, &message()).await.expect("write");
        for cut in 1..whole.len() {
            assert!(
                matches!(read_bytes(&whole[..cut]).await, Err(StreamError::Torn)),
                "{cut}"
            );
        }
        assert!(matches!(
            read_bytes(&[0xff; 8]).await,
            Err(StreamError::Frame(FrameError::Oversized { .. }))
        ));
        assert!(matches!(
            read_bytes(&[0, 0, 0, 1, 0xc1]).await,
            Err(StreamError::Frame(FrameError::Undecodable { .. }))
        ));
        let unknown = b"\x00\x00\x00\x05\x81\xa3abc\xc0";
        let read = read_bytes(&[&[0, 0, 0, 6], &unknown[4..]].concat()).await;
        assert!(
            matches!(&read, Err(StreamError::Frame(FrameError::Unsupported { name })) if name == "abc"),
            "{read:?}"
        );
    }
}
