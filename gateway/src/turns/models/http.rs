//! One request to a model's provider, and the bytes of its answer as they come.

use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::Patience;
use super::endpoint::Address;
use super::error::{ModelError, Refusal};
use super::tls;

/// How much of a refusal is read: enough to tell what it means.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// How much one answer may have on the wire, in bytes.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// An answer whose bytes come.
pub(super) struct Coming {
    body: Incoming,
    patience: Patience,
    // When the first piece must have come; nothing once it has.
    first_by: Option<Instant>,
    taken: usize,
    // Reads and writes the connection; ends with this.
    _connection: JoinSet<()>,
}

/// What is sent: where, with which headers beside the usual, and the body.
pub(super) struct Letter<'a> {
    pub(super) address: &'a Address,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    /// The authorities of its server, where they are not the machine's.
    pub(super) ca_file: Option<&'a Path>,
}

/// Sends a request; the answer's head must come before the time for its first piece is over.
pub(super) async fn post(letter: Letter<'_>, patience: Patience) -> Result<Coming, ModelError> {
    let (address, ca_file) = (letter.address, letter.ca_file);
    let request = request(letter)?;
    let stream = connect(address, patience.connect).await?;
    let mut connection = JoinSet::new();
    let first_by = Instant::now() + patience.first_piece;
    let exchange = async {
        if address.is_tls {
            let stream = tls::encrypt(address, ca_file, stream).await?;
            send(stream, request, &mut connection).await
        } else {
            send(stream, request, &mut connection).await
        }
    };
    let response = timeout_at(first_by, exchange)
        .await
        .map_err(|_| ModelError::SlowStart(patience.first_piece))??;
    let status = response.status();
    let retry_after = retry_after(&response);
    let mut coming = Coming {
        body: response.into_body(),
        patience,
        first_by: Some(first_by),
        taken: 0,
        _connection: connection,
    };
    if status == StatusCode::OK {
        return Ok(coming);
    }
    let said = coming.refusal().await;
    Err(ModelError::Refused(Refusal {
        retry_after,
        ..Refusal::of(Some(status.as_u16()), said)
    }))
}

impl Coming {
    /// The next bytes, `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ModelError> {
        loop {
            let (first, next) = (self.patience.first_piece, self.patience.next_piece);
            let (by, late) = match self.first_by {
                Some(by) => (by, ModelError::SlowStart(first)),
                None => (Instant::now() + next, ModelError::Stalled(next)),
            };
            let frame = timeout_at(by, self.body.frame()).await.map_err(|_| late)?;
            let frame = match frame {
                None => return Ok(None),
                Some(Err(_)) => return Err(ModelError::Cut),
                Some(Ok(frame)) => frame,
            };
            if let Ok(bytes) = frame.into_data() {
                self.first_by = None;
                self.taken += bytes.len();
                if self.taken > MAX_ANSWER_BYTES {
                    return Err(ModelError::TooMuch("64 MiB"));
                }
                return Ok(Some(bytes));
            }
        }
    }

    /// What a provider says beside a status that is no success: as much as can be had.
    async fn refusal(&mut self) -> String {
        let mut said = Vec::new();
        while said.len() < MAX_REFUSAL_BYTES {
            match self.next().await {
                Ok(Some(bytes)) => said.extend_from_slice(&bytes),
                Ok(None) | Err(_) => break,
            }
        }
        said.truncate(MAX_REFUSAL_BYTES);
        String::from_utf8_lossy(&said).into_owned()
    }
}

fn request(letter: Letter<'_>) -> Result<Request<Full<Bytes>>, ModelError> {
    let mut request = Request::post(&letter.address.path)
        .header(HOST, &letter.address.authority)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("tidings/", env!("CARGO_PKG_VERSION")));
    for (name, value) in letter.headers {
        request = request.header(name, value);
    }
    request
        .body(Full::new(letter.body.into()))
        .map_err(|_| ModelError::Strange("what is to be sent cannot stand in a header"))
}

pub(super) fn unreachable(address: &Address, reason: &dyn ToString) -> ModelError {
    ModelError::Unreachable {
        host: address.host.clone(),
        port: address.port,
        reason: reason.to_string(),
    }
}

async fn connect(address: &Address, limit: Duration) -> Result<TcpStream, ModelError> {
    let connecting = TcpStream::connect((address.host.as_str(), address.port));
    let stream = match timeout(limit, connecting).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(unreachable(address, &error)),
        Err(_) => {
            let reason = format!("no connection within {} s", limit.as_secs_f32());
            return Err(unreachable(address, &reason));
        }
    };
    // It only makes things slower where it fails.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
    connection: &mut JoinSet<()>,
) -> Result<Response<Incoming>, ModelError> {
    let (mut sender, driver) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|_| ModelError::Cut)?;
    connection.spawn(async move {
        // What goes wrong here is seen by whoever reads the answer.
        let _ = driver.await;
    });
    sender.send_request(request).await.map_err(|error| {
        if error.is_parse() {
            ModelError::Strange("no answer of HTTP")
        } else {
            ModelError::Cut
        }
    })
}

/// Only seconds: a date would need the provider's clock.
fn retry_after(response: &Response<Incoming>) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}
