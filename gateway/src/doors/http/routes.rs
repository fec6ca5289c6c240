//! What stands where.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tidings_node::cli::nearest;
use tidings_protocol::session_api::{ApiError, ErrorType, Request as Asked};
use tidings_protocol::wire::frame::FrameMessage;
use tokio::sync::{Semaphore, watch};

use super::super::Service;
use super::answer::{Refusal, json, of_type};
use super::figures::Figures;
use super::guard::{self, Names};
use super::listening::CertificateEnd;
use super::{HttpLimits, bearer, call, events, metrics, openapi, ready};

/// Routes that are no requests of the session interface.
const OWN: [&str; 6] = [
    "/v1/openapi.json",
    "/v1/signals/stream",
    "/v1/wakes",
    "/healthz",
    "/readyz",
    "/metrics",
];
/// The media type of Prometheus' text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What every request is answered with.
pub(super) struct Door {
    pub(super) service: Service,
    pub(super) address: SocketAddr,
    pub(super) scheme: &'static str,
    pub(super) limits: HttpLimits,
    pub(super) figures: Arc<Figures>,
    pub(super) streams: Arc<Semaphore>,
    /// The place of whoever notes that a token was used.
    pub(super) noting: Arc<Semaphore>,
    pub(super) certificate: Arc<CertificateEnd>,
    pub(super) stopped: watch::Receiver<bool>,
}

/// Every route.
pub(super) fn router(door: Door) -> Router {
    let door = Arc::new(door);
    Router::new()
        .route("/v1/openapi.json", get(openapi::document))
        .route("/v1/signals/stream", get(events::signals))
        .route("/v1/wakes", get(events::wakes))
        .route("/v1/{request}", post(call::answer))
        .route("/healthz", get(ready::health))
        .route("/readyz", get(ready::ready))
        .route("/metrics", get(figures_now))
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(door.clone(), gate))
        .with_state(door)
}

/// What every request passes: it is for this gateway, and it is counted.
async fn gate(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let route = route_of(request.uri().path());
    let checked = {
        let config = door.service.info.config.borrow();
        let names = Names {
            configured: &config.http.hosts,
            listen: door.address.ip(),
            scheme: door.scheme,
        };
        guard::check(names, request.uri(), request.headers())
    };
    let response = match checked {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    door.figures.answered(route, response.status().as_u16());
    response
}

/// The route of a path, of a fixed set: whoever asks for anything cannot make labels.
fn route_of(path: &str) -> &'static str {
    let own = OWN.iter().find(|own| **own == path).copied();
    let request = || {
        let name = path.strip_prefix("/v1/")?;
        Asked::NAMES.iter().find(|known| **known == name).copied()
    };
    own.or_else(request).unwrap_or("unknown")
}

/// On this machine whoever can connect may read the figures; elsewhere a token is asked for.
async fn figures_now(
    State(door): State<Arc<Door>>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    if !door.address.ip().is_loopback() {
        bearer::token(&door, &headers).await?;
    }
    let text = metrics::text(&door).await?;
    Ok(of_type(StatusCode::OK, PROMETHEUS, text))
}

async fn nowhere(uri: Uri) -> Refusal {
    let hint = match nearest::nearest(uri.path(), &OWN) {
        Some(route) => format!("did you mean {route}? GET /v1/openapi.json shows all there is"),
        None => "GET /v1/openapi.json shows all there is".to_owned(),
    };
    ApiError::new(ErrorType::NotFound, "there is nothing at this path")
        .with_hint(hint)
        .into()
}

async fn wrong_method(method: Method, uri: Uri) -> Refusal {
    let right = if OWN.contains(&uri.path()) {
        "GET"
    } else {
        "POST"
    };
    Refusal::invalid(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("this path does not take {}", known(&method)),
    )
    .hint(format!("ask it with {right}"))
}

/// The method's name, where it is one that everybody knows.
fn known(method: &Method) -> &str {
    let name = method.as_str();
    if name.len() <= 10 {
        name
    } else {
        "this method"
    }
}

/// A document as it stands.
pub(super) fn document(bytes: &'static [u8]) -> Response {
    json(StatusCode::OK, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_one_of_a_fixed_set_whatever_is_asked_for() {
        for (path, route) in [
            ("/metrics", "/metrics"),
            ("/v1/wakes", "/v1/wakes"),
            ("/v1/session_status", "session_status"),
            ("/v1/session_statu", "unknown"),
            ("/v1/agent:main:main", "unknown"),
            ("/session_status", "unknown"),
            ("/", "unknown"),
        ] {
            assert_eq!(route_of(path), route, "{path}");
        }
    }
}
