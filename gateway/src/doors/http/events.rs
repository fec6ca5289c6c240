//! The streams: the log, and the wakes.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use serde::Deserialize;
use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{ApiError, ErrorType, Reply, Request, SignalsQuery};

use super::super::origin::Origin;
use super::answer::{Refusal, of_type};
use super::bearer;
use super::routes::Door;
use super::stream::{Source, Written, body, event, position};
use crate::state::TokenRecord;

const EVENT_STREAM: &str = "text/event-stream";
/// Where a reader that was cut off goes on.
const LAST_EVENT_ID: &str = "last-event-id";

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SignalsAsked {
    session: Option<String>,
    after: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WakesAsked {
    session: Option<String>,
}

/// `GET /v1/signals/stream`
pub(super) async fn signals(
    State(door): State<Arc<Door>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let token = bearer::token(&door, &headers).await?;
    let Query(asked) = Query::<SignalsAsked>::try_from_uri(&uri)
        .map_err(|_| bad_query("session=KEY and after=SEQUENCE"))?;
    let last = match headers.get(LAST_EVENT_ID) {
        None => None,
        Some(value) => Some(sequence(value.to_str().unwrap_or_default())?),
    };
    // Named, so that the position is known before anything happens.
    let head = *door.service.nodes.state.head().borrow();
    let after = last.or(asked.after).unwrap_or(head);
    if after > head {
        return Err(beyond(after, head));
    }
    let query = SignalsQuery {
        session: asked.session.as_deref().map(key).transpose()?,
        after: Some(after),
        limit: None,
    };
    let request = Request::SignalsFollow(query);
    let written = Box::new(signals_events);
    stream(&door, token, request, (written, position(after)))
}

/// `GET /v1/wakes`
pub(super) async fn wakes(
    State(door): State<Arc<Door>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Refusal> {
    let token = bearer::token(&door, &headers).await?;
    let Query(asked) =
        Query::<WakesAsked>::try_from_uri(&uri).map_err(|_| bad_query("session=KEY"))?;
    let session = asked.session.as_deref().map(key).transpose()?;
    let session = session.map(|key| door.service.watcher(key));
    let request = Request::WakesFollow {};
    let written = Box::new(move |reply: &Reply| wakes_events(reply, session.as_ref()));
    stream(&door, token, request, (written, String::new()))
}

/// The answer that goes on.
fn stream(
    door: &Arc<Door>,
    token: TokenRecord,
    request: Request,
    (written, first): (Written, String),
) -> Result<Response, Refusal> {
    let place = door.streams.clone().try_acquire_owned().map_err(|_| {
        ApiError::new(
            ErrorType::TryLater,
            format!("{} streams are open already", door.limits.streams),
        )
        .with_hint("end one, or ask for pages: POST /v1/signals_list")
    })?;
    let held = (place, door.figures.stream());
    let origin = Origin::Token(token.row.scope);
    let source = Source {
        replies: door.service.replies_to(origin, request),
        written,
        token,
    };
    Ok(of_type(
        StatusCode::OK,
        EVENT_STREAM,
        body(door, source, first, held),
    ))
}

/// A page of signals as events; what is kept no more comes first, as a gap.
fn signals_events(reply: &Reply) -> String {
    let Reply::Signals(page) = reply else {
        return String::new();
    };
    let gap = page.earliest_available_sequence.map(|oldest| {
        let gap = serde_json::json!({ "earliestAvailableSequence": oldest });
        event(None, Some("gap"), &gap)
    });
    let signals = page.signals.iter();
    let signals = signals.map(|signal| event(Some(signal.sequence), None, signal));
    gap.into_iter().chain(signals).collect()
}

/// Wakes as events, of one session where one is asked for.
fn wakes_events(reply: &Reply, session: Option<&SessionKey>) -> String {
    let Reply::Wakes(page) = reply else {
        return String::new();
    };
    page.wakes
        .iter()
        .filter(|wake| session.is_none_or(|session| *session == wake.watcher))
        .map(|wake| event(None, None, wake))
        .collect()
}

fn key(text: &str) -> Result<SessionKey, Refusal> {
    SessionKey::parse(text)
        .map_err(|error| Refusal::invalid(StatusCode::BAD_REQUEST, format!("session: {error}")))
}

fn sequence(text: &str) -> Result<u64, Refusal> {
    text.trim().parse().map_err(|_| {
        Refusal::invalid(
            StatusCode::BAD_REQUEST,
            "the Last-Event-ID header is not a sequence of this log",
        )
        .hint("leave it out to begin now, or give after=0 to begin at the oldest")
    })
}

/// A position that the log has not reached is of another log: from there on, signals of this
/// one would be passed over.
fn beyond(after: u64, head: u64) -> Refusal {
    Refusal::invalid(
        StatusCode::BAD_REQUEST,
        format!("the log ends at sequence {head}; {after} is after that"),
    )
    .hint("leave it out to begin now, or give after=0 to begin at the oldest")
}

fn bad_query(takes: &str) -> Refusal {
    Refusal::invalid(
        StatusCode::BAD_REQUEST,
        format!("the query of this stream is {takes}, both optional"),
    )
}
