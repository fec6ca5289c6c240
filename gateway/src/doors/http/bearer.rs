//! Tokens: `Authorization: Bearer`.

use axum::http::{HeaderMap, StatusCode, header};
use tidings_protocol::session_api::{ApiError, ErrorType, TokenState};

use super::super::Service;
use super::super::tokens::digest;
use super::answer::Refusal;
use super::routes::Door;
use crate::state::TokenRecord;

/// A token is far shorter; what is longer is not even looked up.
const MAX_TOKEN_BYTES: usize = 256;

/// The token that a request shows, if it opens the door.
pub(super) async fn token(door: &Door, headers: &HeaderMap) -> Result<TokenRecord, Refusal> {
    let shown = shown(headers)?;
    let state = &door.service.nodes.state;
    let found = state.token(digest(shown)).await.map_err(ApiError::from)?;
    let token = found.ok_or_else(|| turned_away("this gateway does not know the token"))?;
    check(&token)?;
    note_use(door, token.clone());
    Ok(token)
}

/// Notes a use, one at a time, and has nobody wait for it: the door opens also where nothing
/// can be written.
fn note_use(door: &Door, token: TokenRecord) {
    let Ok(place) = door.noting.clone().try_acquire_owned() else {
        return;
    };
    let state = door.service.nodes.state.clone();
    tokio::spawn(async move {
        if let Err(error) = state.token_used(&token).await {
            tracing::debug!(%error, "the use of a token was not noted");
        }
        drop(place);
    });
}

/// What a stream that the token opened is told once it opens no more.
pub(super) async fn still_good(service: &Service, token: &TokenRecord) -> Result<(), ApiError> {
    let found = service.nodes.state.token(token.digest).await?;
    let state = found.map_or(TokenState::Revoked, |found| found.row.state);
    match ended(state) {
        None => Ok(()),
        Some(why) => Err(ApiError::new(ErrorType::NotPermitted, why)),
    }
}

/// Refuses a token that has ended, with the reason.
fn check(token: &TokenRecord) -> Result<(), Refusal> {
    match ended(token.row.state) {
        None => Ok(()),
        Some(why) => Err(turned_away(why)),
    }
}

fn ended(state: TokenState) -> Option<&'static str> {
    match state {
        TokenState::Active => None,
        TokenState::Expired => Some("the token has expired"),
        TokenState::Revoked => Some("the token was revoked"),
    }
}

/// What stands behind `Bearer`.
fn shown(headers: &HeaderMap) -> Result<&str, Refusal> {
    let value = headers.get(header::AUTHORIZATION);
    let value = value.ok_or_else(|| turned_away("this takes a token"))?;
    let token = value.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    token
        .filter(|token| (1..=MAX_TOKEN_BYTES).contains(&token.len()))
        .ok_or_else(|| turned_away("the Authorization header is not Bearer and a token"))
}

fn turned_away(message: &str) -> Refusal {
    let error = ApiError::new(ErrorType::NotPermitted, message).with_hint(
        "tidings token create NAME --scope read makes one; show it as Authorization: Bearer TOKEN",
    );
    Refusal::with(StatusCode::UNAUTHORIZED, error)
}
