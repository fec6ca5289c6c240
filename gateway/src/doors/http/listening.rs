//! The port, and the connections on it.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tidings_protocol::EpochMs;
use tidings_protocol::session_api::{ApiError, ErrorType};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::super::Service;
use super::figures::Figures;
use super::patience::Patient;
use super::routes::{Door, router};
use super::tls::{self, Shown, TlsError};
use super::{HttpLimits, HttpOptions, MAX_HEAD_BYTES, MAX_HEADERS};
use crate::config::Config;

/// After a connection could not be accepted: the process may be out of files for a moment.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why the HTTP door does not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The address cannot be bound: another process has it, or it is not this machine's.
    #[error("cannot listen on TCP {address} for HTTP: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// Others could read along.
    #[error("HTTP on {address}, which other machines reach, needs TLS, and none is configured")]
    NeedsTls {
        /// The address.
        address: SocketAddr,
    },
    /// TLS cannot be set up.
    #[error("the TLS of the HTTP door: {0}")]
    Tls(#[from] TlsError),
}

impl From<&HttpError> for ApiError {
    fn from(error: &HttpError) -> Self {
        let (error_type, hint) = match error {
            HttpError::Bind { .. } => (
                ErrorType::Unavailable,
                "give another address with --http, or --http off",
            ),
            HttpError::NeedsTls { .. } => (
                ErrorType::Configuration,
                "name a certificate and its key with http.tlsCert and http.tlsKey, or stay on \
                 this machine: --http 127.0.0.1:7431",
            ),
            HttpError::Tls(_) => (
                ErrorType::Configuration,
                "mend the files that http.tlsCert and http.tlsKey name, or --http off",
            ),
        };
        Self::new(error_type, error.to_string()).with_hint(hint)
    }
}

/// The port of the HTTP door, open and not answering yet.
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    limits: HttpLimits,
    config: watch::Receiver<Arc<Config>>,
    shown: Option<Shown>,
}

impl Listening {
    /// Opens the port.
    pub async fn open(
        options: HttpOptions,
        config: watch::Receiver<Arc<Config>>,
    ) -> Result<Self, HttpError> {
        let asked = options.listen;
        let shown = tls::read(&config.borrow().http)?;
        if shown.is_none() && !asked.ip().is_loopback() {
            return Err(HttpError::NeedsTls { address: asked });
        }
        let failed = |source| HttpError::Bind {
            address: asked,
            source,
        };
        let listener = TcpListener::bind(asked).await.map_err(failed)?;
        Ok(Self {
            address: listener.local_addr().map_err(failed)?,
            listener,
            limits: options.limits,
            config,
            shown,
        })
    }

    /// How an address of this door begins: `http://127.0.0.1:7431`.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme(), self.address)
    }

    fn scheme(&self) -> &'static str {
        match self.shown {
            Some(_) => "https",
            None => "http",
        }
    }

    /// Answers until `stopped`; then what is under way is finished, for a moment.
    pub async fn serve(mut self, service: Service, mut stopped: watch::Receiver<bool>) {
        let expiry = Arc::new(CertificateEnd::default());
        expiry.set(self.shown.as_ref());
        let figures = Arc::new(Figures::default());
        let router = router(Door {
            service,
            address: self.address,
            scheme: self.scheme(),
            limits: self.limits.clone(),
            figures: figures.clone(),
            streams: Arc::new(Semaphore::new(self.limits.streams)),
            noting: Arc::new(Semaphore::new(1)),
            certificate: expiry.clone(),
            stopped: stopped.clone(),
        });
        let places = Arc::new(Semaphore::new(self.limits.connections));
        let mut connections = JoinSet::new();
        let mut config = self.config.clone();
        let mut is_configured = true;
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = tokio::select! {
                accepted = self.accept(&places) => accepted,
                changed = config.changed(), if is_configured => {
                    is_configured = changed.is_ok();
                    self.read_tls_again();
                    expiry.set(self.shown.as_ref());
                    continue;
                }
                _ = stopped.changed() => break,
            };
            let Some((stream, place)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let connection = Connection {
                router: router.clone(),
                shown: self.shown.clone(),
                limits: self.limits.clone(),
                figures: figures.clone(),
            };
            let stopped = stopped.clone();
            connections.spawn(async move {
                connection.serve(stream, stopped).await;
                drop(place);
            });
        }
        drop(self.listener);
        let all = async { while connections.join_next().await.is_some() {} };
        let _ = timeout(self.limits.farewell, all).await;
    }

    /// The next connection, once there is a place for it.
    async fn accept(
        &self,
        places: &Arc<Semaphore>,
    ) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
        let place = places.clone().acquire_owned().await.ok()?;
        match self.listener.accept().await {
            Ok((stream, _)) => Some((stream, place)),
            Err(error) => {
                tracing::warn!(%error, "an HTTP connection was not accepted");
                None
            }
        }
    }

    /// Reads the certificate anew. Whether there is TLS at all stays as it was at the start.
    fn read_tls_again(&mut self) {
        if self.shown.is_none() {
            return;
        }
        let read = tls::read(&self.config.borrow().http);
        match read {
            Ok(Some(shown)) => self.shown = Some(shown),
            Ok(None) => tracing::warn!("the HTTP door goes on with the TLS that it had"),
            Err(error) => tracing::error!(%error, "the HTTP door goes on with the TLS it had"),
        }
    }
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// When the certificate that the door shows expires.
#[derive(Debug, Default)]
pub(super) struct CertificateEnd(Mutex<Option<EpochMs>>);

impl CertificateEnd {
    fn set(&self, shown: Option<&Shown>) {
        let mut end = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *end = shown.map(|shown| shown.not_after);
    }

    /// When it does; `None` where there is none.
    pub(super) fn get(&self) -> Option<EpochMs> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one connection is served with.
struct Connection {
    router: Router,
    shown: Option<Shown>,
    limits: HttpLimits,
    figures: Arc<Figures>,
}

impl Connection {
    async fn serve(self, stream: TcpStream, stopped: watch::Receiver<bool>) {
        let _open = self.figures.connection();
        // Events are small, and somebody waits for each.
        let _ = stream.set_nodelay(true);
        match &self.shown {
            None => self.requests(stream, stopped).await,
            Some(shown) => {
                let shaken = timeout(self.limits.arrival, shown.acceptor.accept(stream)).await;
                match shaken {
                    Ok(Ok(stream)) => self.requests(stream, stopped).await,
                    Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                    Err(_) => tracing::debug!("a TLS handshake took too long"),
                }
            }
        }
    }

    async fn requests<S>(&self, stream: S, mut stopped: watch::Receiver<bool>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let stream = TokioIo::new(Patient::new(stream, self.limits.write_stall));
        let service = TowerToHyperService::new(self.router.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.arrival)
            .max_buf_size(MAX_HEAD_BYTES)
            .max_headers(MAX_HEADERS)
            .serve_connection(stream, service);
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            _ = stopped.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            if was_cut_off(&error) {
                self.figures.cut_off();
            }
            tracing::debug!(%error, "an HTTP connection ended");
        }
    }
}

/// True where the reader took nothing for too long.
fn was_cut_off(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error);
    source
        .and_then(|source| source.downcast_ref::<std::io::Error>())
        .is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut)
}
